package aggregator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
)

// over returns a round whose grace period is over.
func over() *schema.Round {
	return &schema.Round{Agent: "a", Start: 9, Warned: true, Since: schema.Duration(time.Minute)}
}

// using returns a question about the use of a tool.
func using(tool, id string) *nats.Msg {
	q := event(schema.PreToolUse)
	q.Header.Set(schema.HeaderTool, tool)
	q.Data = []byte(`{"tool_name":"` + tool + `"}`)
	return with(q, id, 1)
}

func TestAfterTheGraceOnlyTerminalToolsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		lib := library{"before": says(schema.Result{}), "after": says(schema.Result{})}
		f := remembering(t, m, lib, hook("before"), stage(schema.RoundTimeoutPre, schema.PreToolUse), hook("after"))
		want(t, f.ask(using("Bash", id(1))), schema.Continue, "before:ok after:ok")
		m.round = over()
		v := f.ask(using("Bash", id(2)))
		want(t, v, schema.Deny, "before:ok round_timeout_pre:ok")
		if !strings.Contains(v.Reason, "attempt 1") || v.Terminate != nil {
			t.Errorf("%+v", v)
		}
		want(t, f.ask(using("mcp__server__vote", id(3))), schema.Continue, "before:ok after:ok")
		synctest.Wait()
		if got := strings.Join(m.recorded(""), "; "); got != "latest a; denied a 9 "+id(2)+"; passed a" {
			t.Error(got)
		}
		if n := f.value("hard_timeouts_total"); n != 1 {
			t.Errorf("%v were counted", n)
		}
	})
}

func TestAHookBeforeTheGateEndsTheCallUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.round = over()
		f := remembering(t, m, library{"no": says(schema.Denied("policy"))}, hook("no"), stage(schema.RoundTimeoutPre, schema.PreToolUse))
		v := f.ask(using("Bash", id(1)))
		want(t, v, schema.Deny, "no:ok")
		if v.Reason != "policy" || len(m.recorded("denied")) > 0 {
			t.Errorf("%+v, %q", v, m.recorded(""))
		}
	})
}

// TestWhatIsOverInARoundBeforeRefusesAndEndsNothingInThisOne checks a broker that was cut off and
// may still know only the round before.
func TestWhatIsOverInARoundBeforeRefusesAndEndsNothingInThisOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.round = over()
		m.round.Terminate, m.round.Denials = true, rounds.MaxDenials
		f := remembering(t, m, library{"after": says(schema.Result{})},
			stage(schema.RoundTimeoutPre, schema.PreToolUse), hook("after"), stage(schema.HumanInput, schema.PostToolUse))
		m.leads = &schema.Round{Agent: "a", Start: 12, Number: 1}
		want(t, f.ask(using("Bash", id(1))), schema.Continue, "after:ok")
		if v := f.ask(event(schema.PostToolUse)); v.Terminate != nil {
			t.Errorf("%+v", v)
		}
		if denied := m.recorded("denied"); len(denied) > 0 {
			t.Errorf("%q", denied)
		}
	})
}

func TestTheWarningOfARoundBeforeIsToldAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.round = &schema.Round{Agent: "a", Start: 9}
		m.leads = &schema.Round{Agent: "a", Start: 12, Number: 1}
		f := remembering(t, m, library{}, stage(schema.RoundTimeoutPost, schema.PostToolUse))
		m.put(&schema.Item{Source: schema.SourceTimeout, Producer: deliver.RoundProducer, Number: 9, TimeLimit: &schema.TimeLimit{}})
		v := f.ask(event(schema.PostToolUse))
		if len(v.Injections) != 1 || !strings.Contains(v.Injections[0].Content, "You need not do anything") {
			t.Errorf("%+v", v)
		}
	})
}

func TestADenialThatCanNotBeCountedIsOne(t *testing.T) {
	for name, broken := range map[string]func(*memory){
		"gone": func(m *memory) { m.gone = true }, "slow": func(m *memory) { m.slow = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				m.round = over()
				broken(m)
				f := remembering(t, m, library{}, stage(schema.RoundTimeoutPre, schema.PreToolUse))
				v, after := f.send(using("Bash", id(1))).verdict()
				if want(t, v, schema.Deny, "round_timeout_pre:ok"); after > 150*time.Millisecond {
					t.Errorf("it took %v", after)
				}
				synctest.Wait()
				if got := m.recorded("denied"); !slices.Equal(got, []string{"denied a 9 " + id(1)}) {
					t.Errorf("it is counted later by %q", got)
				}
			})
		})
	}
}

func TestARoundThatWasKnownLongAgoOnlyRefusesAndEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.round, m.gone, m.stale = over(), true, true
		m.round.Terminate = true
		f := remembering(t, m, library{}, stage(schema.RoundTimeoutPre, schema.PreToolUse))
		v := f.ask(using("Bash", id(1)))
		want(t, v, schema.Continue, "")
		if v.Terminate != nil {
			t.Errorf("%+v", v.Terminate)
		}
	})
}

func TestTheTenthDenialEndsTheRunButForTerminalTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.round = over()
		f := remembering(t, m, library{}, stage(schema.RoundTimeoutPre, schema.PreToolUse), stage(schema.HumanInput, schema.PostToolUse))
		for i := range 10 {
			v := f.ask(using("Bash", id(i)))
			if want(t, v, schema.Deny, "round_timeout_pre:ok"); (v.Terminate != nil) != (i == 9) {
				t.Errorf("denial %d: %+v", i+1, v)
			}
		}
		if v := f.ask(using("vote", id(20))); v.Decision != schema.Continue || v.Terminate != nil {
			t.Errorf("a terminal tool: %+v", v)
		}
		for _, e := range []schema.EventType{schema.PostToolUse, schema.BeforeLLMCall, schema.QueryEnd} {
			if v := f.ask(event(e)); v.Terminate == nil || v.Terminate.Reason == "" {
				t.Errorf("%s: %+v", e, v)
			}
		}
		other := event(schema.PostToolUse)
		other.Subject = strings.Replace(other.Subject, ".a.", ".b.", 1)
		if v := f.ask(other); v.Terminate != nil {
			t.Errorf("another agent: %+v", v)
		}
	})
}

// gateThat is a gate that panics in the method that it names.
type gateThat string

func (g gateThat) Passes(string) bool {
	if g == "passes" {
		panic("ouch")
	}
	return false
}

func (g gateThat) Refuse(string, *schema.Round) schema.Result {
	if g == "refuses" {
		panic("ouch")
	}
	return schema.Allowed()
}

func TestAGateThatBreaksRefuses(t *testing.T) {
	for _, where := range []string{"load", "passes", "refuses", "says yes"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				if where != "load" {
					m.round = over()
				}
				f := startWith(t, aggregator.Options{Memory: m.all(), Stages: func(*schema.Hook) (any, error) {
					if where == "load" {
						return nil, fmt.Errorf("the option \"tools\" is not there")
					}
					return gateThat(where), nil
				}}, library{}, stage(schema.RoundTimeoutPre, schema.PreToolUse))
				v := f.ask(using("Bash", id(1)))
				if v.Decision != schema.Deny {
					t.Errorf("%+v", v)
				}
				if where == "load" {
					want(t, v, schema.Deny, "round_timeout_pre:load_error")
				}
			})
		})
	}
}

func TestStagesThatCanNotBeMadeAreLoadErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := remembering(t, newMemory(), library{}, stage(schema.HumanInput, schema.PostToolUse, func(h *schema.Hook) {
			h.Options = map[string]any{"colour": "red"}
		}))
		if st := f.status(""); !strings.Contains(st.LoadErrors[schema.HumanInput], "colour") {
			t.Errorf("%+v", st)
		}
		errs, err := f.agg.Prepare(schema.Config{Version: 2, Hooks: []schema.Hook{stage(schema.RoundTimeoutPre, schema.PreToolUse)}})
		if len(errs) > 0 || err != nil {
			t.Errorf("%v, %v", errs, err)
		}
	})
}

func TestARoundWhoseTimeIsOverIsWarnedOnce(t *testing.T) {
	for name, active := range map[string]bool{"at the agent's next event": true, "also an agent that does nothing": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				f := remembering(t, m, library{}, stage(schema.RoundTimeoutPost, schema.PostToolUse), stage(schema.RoundTimeoutPre, schema.PreToolUse))
				m.mu.Lock()
				m.round = &schema.Round{Agent: "a", Start: 9, WrapUp: true}
				m.mu.Unlock()
				if !active {
					<-after1m()
				}
				v := f.ask(event(schema.PostToolUse))
				if listInjections(v) != "round_timeout_post/timeout/1" || !strings.Contains(v.Injections[0].Content, "vote") {
					t.Errorf("%+v", v)
				}
				f.ask(event(schema.PostToolUse))
				<-after1m()
				if got := m.recorded("enqueue"); len(got) != 1 || got[0] != "enqueue {a } round 9" {
					t.Errorf("%q", got)
				}
				if n := f.value("soft_timeouts_total"); n != 1 {
					t.Errorf("%v were counted", n)
				}
			})
		})
	}
}

func TestAWarningThatFindsNoRoomInTheQueueComesWithAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.RoundTimeoutPost, schema.PostToolUse), stage(schema.RoundTimeoutPre, schema.PreToolUse))
		m.mu.Lock()
		m.full, m.round = true, &schema.Round{Agent: "a", Start: 9, WrapUp: true}
		m.mu.Unlock()
		first := with(event(schema.PostToolUse), id(1), 1)
		if v := f.ask(first); len(v.Injections) != 1 || !strings.Contains(v.Injections[0].Content, "vote") || v.Injections[0].Source != schema.SourceTimeout || v.Injections[0].Sequence == 0 {
			t.Fatalf("the warning does not come: %+v", v)
		}
		if v := f.ask(with(event(schema.PostToolUse), id(2), 1)); len(v.Injections) > 0 {
			t.Errorf("it comes twice within a lease: %+v", v)
		}
		want(t, f.ask(using("Bash", id(3))), schema.Continue, "")
		<-time.After(queue.LeaseFor)
		again := with(event(schema.PostToolUse), id(4), 1)
		if v := f.ask(again); len(v.Injections) != 1 {
			t.Errorf("the warning was not acknowledged, and does not come again: %+v", v)
		}
		if got := m.recorded("warned"); len(got) > 0 {
			t.Errorf("the grace began before the warning was delivered: %q", got)
		}
		acking := with(event(schema.PostToolUse), id(5), 1)
		acking.Header.Set(schema.HeaderAck, id(4))
		f.ask(acking)
		synctest.Wait()
		if got := m.recorded("warned"); len(got) != 1 || got[0] != "warned a 9" {
			t.Errorf("%q", got)
		}
		m.mu.Lock()
		m.round.Since = schema.Duration(time.Minute)
		m.mu.Unlock()
		if v := f.ask(using("Bash", id(6))); v.Decision != schema.Deny {
			t.Errorf("after the grace: %+v", v)
		}
		if n := f.value("soft_timeouts_total"); n != 1 {
			t.Errorf("%v warnings were counted", n)
		}
	})
}

func TestWithoutItsHookNobodyIsWarned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
		m.mu.Lock()
		m.round = &schema.Round{Agent: "a", Start: 9, WrapUp: true}
		m.mu.Unlock()
		<-after1m()
		f.ask(event(schema.PostToolUse))
		if got := m.recorded("enqueue"); len(got) > 0 {
			t.Errorf("%q", got)
		}
	})
}
