package decide_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// freezes changes the frozen agents.
func (w *world) freezes(version uint64, patterns ...string) {
	w.Lock()
	defer w.Unlock()
	w.FreezeVersion, w.Freezes = version, nil
	for _, p := range patterns {
		w.Freezes = append(w.Freezes, schema.Freeze{Agents: p, Reason: "odd", By: "me", Since: time.Now().UTC()})
	}
}

// A shim that knows of a freeze keeps refusing calls while the fabric does not answer, also calls
// that no hook guards. A shim that was cut off when the freeze began learns of it with its first answer.
func TestACutOffShimGoesByTheFreezeItHeardOf(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		w.freezes(3, "a")
		w.wants("Read", schema.None, "") // the test's fabric itself does not enforce freezes
		w.gone()
		deny := w.wants("Read", schema.Deny, `refused without a verdict (agents "a" were frozen`)
		for _, part := range []string{"`Read` REFUSED", "by me", "odd", "broker thaw --agent 'a'", "vote", "agentshim cannot check whether", "unreachable"} {
			if !strings.Contains(deny.Verdict.Reason, part) {
				t.Errorf("the reason does not say %q: %s", part, deny.Verdict.Reason)
			}
		}
		if !deny.Verdict.Frozen || deny.Unjudged == nil {
			t.Errorf("%+v", deny)
		}
		w.wants("mcp__workflow__vote", schema.None, "allowed without a verdict")
		w.wants("Bash", schema.Deny, "were frozen") // also a call that a hook guards
		other := calls("Read")
		other.Event.AgentID = "b"
		if got, _ := w.asks(other); got.Verdict.Decision != schema.None {
			t.Errorf("another agent: %+v", got.Verdict)
		}
		after := decide.Question{Event: &schema.Event{HookType: schema.PostToolUse, AgentID: "b", ToolName: "Write"}, Unreachable: decide.UnreachableAllow}
		if got, _ := w.asks(after); got.Verdict.Frozen {
			t.Errorf("what has happened already: %+v", got.Verdict)
		}
		w.back()
		w.freezes(4) // thawed while it was cut off
		w.wants("Read", schema.None, "")
		w.gone()
		w.wants("Read", schema.None, "no fail-closed hook guards it")
	})
}

// A resident judge requests the policy in the background.
func TestAResidentShimHearsOfAFreeze(t *testing.T) {
	within(t, func(w *world) {
		var to said
		j := decide.NewResident(w.link(&to))
		defer j.Close()
		ask := func() decide.Judgement {
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			defer cancel()
			return j.Ask(ctx, calls("Read"))
		}
		ask()
		w.freezes(3, "*")
		ask()
		synctest.Wait()
		w.gone()
		if got := ask(); got.Verdict.Decision != schema.Deny || !got.Verdict.Frozen {
			t.Errorf("%+v\n%s", got.Verdict, to.String())
		}
	})
}

// The shim rejects a policy without a freeze if another broker has already reported the freeze.
// It also rejects a replayed policy.
func TestAPolicyFromBeforeAFreezeIsNotTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		told  uint64 // by the verdict
		fresh bool
		says  string
	}{
		"a broker that is behind":   {4, true, ""},
		"one that somebody replays": {2, false, "older than the stored one"},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(w *world) {
				w.freezes(3, "*")
				w.wants("Read", schema.None, "")
				w.freezes(c.told)
				w.Answer = func(verb string, m *nats.Msg) bool {
					if verb != schema.VerbPolicy {
						return false
					}
					var req schema.PolicyRequest
					if err := schema.Unmarshal(m.Data, &req); err != nil || !c.fresh {
						req.Nonce = "another one's"
					}
					w.FreezeVersion = 2
					bustest.Respond(m, must(w.Policy(req.Nonce)))
					w.FreezeVersion = c.told
					return true
				}
				w.wants("Read", schema.None, c.says)
				w.gone()
				w.wants("Read", schema.Deny, "were frozen")
			})
		})
	}
}

func must(a *schema.PolicyAnswer, err error) *schema.PolicyAnswer {
	if err != nil {
		panic(err)
	}
	return a
}
