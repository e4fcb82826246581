package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// reuser answers in the batch's reused memory: the first hook denies and the others
// allow, with the event's id as the reason.
type reuser struct{}

func (reuser) Call(_ context.Context, _, worker string, b *schema.Batch) (schema.BatchReply, error) {
	reply := schema.BatchReply{Worker: worker, Outcomes: b.Room[:0]}
	for _, i := range b.Hooks {
		o := schema.Outcome{Hook: i, Result: schema.Result{Decision: schema.Allow, Reason: b.ID}}
		if i == 0 {
			o.Result.Decision = schema.Deny
		}
		reply.Outcomes = append(reply.Outcomes, o)
	}
	return reply, nil
}

// TestReusedMemoryDoesNotChangeReports compares the reports about a call when they are
// made and after later calls have reused its memory.
func TestReusedMemoryDoesNotChangeReports(t *testing.T) {
	hook := schema.Hook{Event: schema.PreToolUse, Pool: "p", Timeout: schema.Duration(time.Minute), Readonly: true, Idempotent: true}
	cfg := schema.Config{Version: 1}
	for _, name := range []string{"refuses", "beside", "shadow"} {
		hook.Name = name
		if name == "shadow" {
			hook.Mode = schema.Shadow
		}
		cfg.Hooks = append(cfg.Hooks, hook)
	}
	for _, n := range []int{2, 3} { // without the shadow hook, and with it
		cfg := cfg
		cfg.Hooks = cfg.Hooks[:n]
		snap, err := dispatch.Compile(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		members := dispatch.NewMembers(1)
		members.Beat(&schema.Beat{Pool: "p", Worker: "w", Capacity: 8, Versions: []uint64{1}})
		asides, shadows := make(map[string]schema.Verdict), make(chan *dispatch.Shadowed, 4)
		d := dispatch.New(dispatch.Options{Caller: reuser{}, Members: members, NewID: func() string { return "b" }, Watch: dispatch.Watch{
			Aside:  func(r *dispatch.Request, _ *schema.Hook, part schema.Verdict) { asides[r.ID] = part },
			Shadow: func(_ *dispatch.Request, s *dispatch.Shadowed) { shadows <- s },
		}})
		verdicts := make(map[string]schema.Verdict)
		for _, id := range []string{"one", "two", "three"} {
			r := &dispatch.Request{
				Routing: schema.Routing{Event: schema.PreToolUse, Agent: "a", Tool: "Bash", ID: id},
				Attempt: 1, Deadline: time.Now().Add(time.Minute), Body: []byte(`{}`),
			}
			verdicts[id] = d.Dispatch(t.Context(), snap, snap.Plan("a", schema.PreToolUse, "Bash"), r)
			if n == 3 {
				if s := <-shadows; s.Decided != schema.Deny || s.Would != schema.Deny || s.Part.Reason != id {
					t.Errorf("the report of the shadow hook of the call %s is %+v", id, s)
				}
			}
		}
		for id, v := range verdicts {
			for name, part := range map[string]schema.Verdict{"refuses": v, "beside": asides[id]} {
				if x := part.ExecutedHooks; part.Reason != id || len(x) != 1 || x[0].Hook != name || x[0].Reason != id {
					t.Errorf("with %d hooks, the answer of the hook %s about the call %s has become %+v", n, name, id, part)
				}
			}
		}
	}
}
