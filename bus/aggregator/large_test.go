package aggregator_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

// largeCalls is a fabric in which the calls of the agent wild are held. It is asked about large
// events of 900 KiB, of which one agent has two under way.
type largeCalls struct {
	*fabric

	hold chan struct{}
}

func startLarge(t *testing.T, change ...func(*schema.Hook)) *largeCalls {
	t.Helper()
	l := &largeCalls{hold: make(chan struct{})}
	l.fabric = startWith(t, aggregator.Options{}, library{"guard": func(_ context.Context, e *schema.Event) (schema.Result, error) {
		if e.AgentID == "wild" {
			<-l.hold
		}
		return schema.Allowed(), nil
	}}, hook("guard", change...))
	return l
}

// large sends a large event of an agent, whose shim waits for 10 s.
func (l *largeCalls) large(agent string) *asking {
	l.t.Helper()
	return l.largeWith(agent, strings.Repeat("x", 900<<10))
}

func (l *largeCalls) largeWith(agent, text string) *asking {
	l.t.Helper()
	m := of(agent, 10*time.Second)
	m.Data = []byte(`{"hook_type":"PreToolUse","tool_name":"Bash","tool_input":{"command":"` + text + `"}}`)
	a := l.send(m)
	synctest.Wait()
	return a
}

// TestLargeEventsOfOneAgentWaitForEachOther checks that one agent's large events under way are
// bounded in bytes, and that further ones wait. The agent's small events, and the large events of
// other agents, are judged at once.
func TestLargeEventsOfOneAgentWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startLarge(t, failClosed)
		wild := []*asking{f.large("wild"), f.large("wild"), f.large("wild")}
		for name, c := range map[string]*asking{"another agent": f.large("quiet"), "a small one": f.send(of("quiet", 10*time.Second))} {
			if v, after := c.verdict(); v.Decision != schema.Allow || after != 0 {
				t.Errorf("%s, after %v: %+v", name, after, v)
			}
		}
		small := f.send(of("wild", 10*time.Second))
		<-time.After(4 * time.Second)
		third := wild[2]
		third.mu.Lock()
		if n := len(third.beats); n < 14 {
			t.Errorf("%d signs of life in 4 s", n)
		}
		third.mu.Unlock()
		close(f.hold)
		for i, c := range append(wild, small) {
			if v, after := c.verdict(); v.Decision != schema.Allow || after != 4*time.Second {
				t.Errorf("call %d, after %v: %+v", i, after, v)
			}
		}
		if n := f.value("limited_total", "limit=bytes"); n != 0 {
			t.Errorf("%v were counted", n)
		}
		for range 3 {
			want(t, first(f.large("wild").verdict()), schema.Allow, "guard:ok")
		}
	})
}

func first(v schema.Verdict, _ time.Duration) schema.Verdict { return v }

// TestLargeEventsThatWaitForTooLongFollowTheirPolicies checks that the failure policies answer a
// large event that waited for half of its time. They also answer at once a large event for which
// the queue has no room.
func TestLargeEventsThatWaitForTooLongFollowTheirPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		change   []func(*schema.Hook)
		decision schema.Decision
	}{
		"a hook that fails open":     {nil, schema.Continue},
		"a hook that is fail-closed": {[]func(*schema.Hook){failClosed}, schema.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startLarge(t, c.change...)
				defer close(f.hold)
				f.large("wild")
				f.large("wild")
				var waiting []*asking
				for range 36 { // 31.7 MiB
					waiting = append(waiting, f.large("wild"))
				}
				crowded, quiet := f.large("wild"), f.large("quiet")
				unread := f.largeWith("wild", `tool_name \u0022tool_name\u0022`+strings.Repeat("x", 900<<10))
				want(t, first(quiet.verdict()), schema.Allow, "guard:ok")
				for _, at := range []struct {
					calls []*asking
					after time.Duration
				}{{[]*asking{crowded}, 0}, {waiting, 5 * time.Second}} {
					for _, call := range at.calls {
						v, after := call.verdict()
						want(t, v, c.decision, "guard:busy")
						if after != at.after || !strings.Contains(strings.Join(v.HookErrors, " "), `"wild" has 2 MiB of large events under way`) {
							t.Errorf("after %v: %+v", after, v)
						}
					}
				}
				v, after := unread.verdict()
				want(t, v, c.decision, "")
				if after != 0 || len(v.HookErrors) != 1 {
					t.Errorf("after %v: %+v", after, v)
				}
				if n := f.value("limited_total", "limit=bytes"); n != 38 {
					t.Errorf("%v were counted", n)
				}
			})
		})
	}
}
