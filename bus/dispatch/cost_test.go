package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// prompt answers at once that each hook allows.
type prompt struct{ outcomes []schema.Outcome }

func (p *prompt) Call(_ context.Context, _, worker string, b *schema.Batch) (schema.BatchReply, error) {
	return schema.BatchReply{Worker: worker, Outcomes: p.outcomes[:len(b.Hooks)]}, nil
}

// TestACallAllocatesLittle limits the allocations of a call with one batch, besides those
// for its messages. More hooks take larger objects, not more. It protects the budget of a call
// that 'loadtest bench' checks.
func TestACallAllocatesLittle(t *testing.T) {
	bustest.PlainOnly(t, "how much is allocated, which the detector adds to")
	for _, hooks := range []int{1, 8} {
		p, cfg := &prompt{}, schema.Config{Version: 1}
		for i := range hooks {
			cfg.Hooks = append(cfg.Hooks, schema.Hook{
				Name: string(rune('a' + i)), Event: schema.PreToolUse, Pool: "remote", Timeout: schema.Duration(time.Minute),
			})
			p.outcomes = append(p.outcomes, schema.Outcome{Hook: i, Result: schema.Allowed()})
		}
		snap, err := dispatch.Compile(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		members := dispatch.NewMembers(1)
		members.Beat(&schema.Beat{Pool: "remote", Worker: "w", Capacity: 1, Versions: []uint64{1}})
		d := dispatch.New(dispatch.Options{Caller: p, Members: members, NewID: func() string { return "b" }})
		plan := snap.Plan("a", schema.PreToolUse, "Bash")
		r := &dispatch.Request{
			Routing: schema.Routing{Event: schema.PreToolUse, Agent: "a", Tool: "Bash"},
			Attempt: 1, Deadline: time.Now().Add(time.Hour), Body: []byte(`{}`),
		}
		var v schema.Verdict
		n := testing.AllocsPerRun(100, func() { v = d.Dispatch(t.Context(), snap, plan, r) })
		if v.Decision != schema.Allow || len(v.ExecutedHooks) != hooks {
			t.Fatalf("the verdict is %+v", v)
		}
		if n > 9 {
			t.Errorf("a call of %d hooks of one pool makes %v objects", hooks, n)
		}
	}
}
