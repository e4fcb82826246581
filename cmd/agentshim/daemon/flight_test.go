package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// bench is a judge whose verdicts the test sets.
type bench struct {
	mu     sync.Mutex
	asked  []schema.Event
	handed []string
	says   func(ctx context.Context, q decide.Question) decide.Judgement
}

func (b *bench) Ask(ctx context.Context, q decide.Question) decide.Judgement {
	b.mu.Lock()
	b.asked = append(b.asked, *q.Event)
	n := len(b.asked)
	b.mu.Unlock()
	if b.says != nil {
		return b.says(ctx, q)
	}
	return decide.Judgement{Verdict: &schema.Verdict{
		EventID: fmt.Sprint("e", n), Decision: schema.Deny, Reason: fmt.Sprint("verdict ", n), Injections: []schema.Injection{{Content: "careful", Sequence: 1}}}}
}

func (b *bench) Handed(_ context.Context, v *schema.Verdict, _ time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handed = append(b.handed, v.EventID)
}

func (*bench) Needs(context.Context, string) (client.Needs, error) {
	return client.Needs{}, errNoQueue
}

func (*bench) Mode(context.Context, string, *bool) (schema.ModeAnswer, error) {
	return schema.ModeAnswer{}, errNoQueue
}

func (*bench) Checkpoint(context.Context, string) error { return errNoQueue }

func (b *bench) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked)
}

// first returns the first event that bench judged.
func (b *bench) first() schema.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[0]
}

// call returns a question about a tool call.
func call(t schema.EventType, key, input string) decide.Question {
	return decide.Question{Key: key, ByID: true, Pair: "p1", Event: &schema.Event{
		HookType: t, AgentID: "a", Runtime: "claude", ToolName: "Bash", ToolInput: jsontext.Value(input)}}
}

func TestDeliveriesOfOneCallAreOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := &bench{says: func(context.Context, decide.Question) decide.Judgement {
			<-release
			return decide.Judgement{Verdict: &schema.Verdict{EventID: "e1", Decision: schema.Deny, Injections: []schema.Injection{{Content: "careful"}}}}
		}}
		all := newFlights(b)
		const n = 50
		full := 0
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range n {
			wait.Go(func() {
				d := &delivery{all: all}
				v := d.Ask(t.Context(), call(schema.PreToolUse, "pre/1", `{"command":"ls"}`)).Verdict
				mu.Lock()
				defer mu.Unlock()
				full += len(v.Injections)
				if v.Decision != schema.Deny {
					t.Errorf("one of them hears %q", v.Decision)
				}
				d.written(t.Context())
			})
		}
		synctest.Wait()
		close(release)
		wait.Wait()
		if b.count() != 1 || full != 1 || len(b.handed) != 1 {
			t.Errorf("asked %d times; %d were told what was waiting, and %d said so", b.count(), full, len(b.handed))
		}
	})
}

func TestWhatCountsAsAnotherCall(t *testing.T) {
	first := call(schema.PreToolUse, "pre/1", `{"command":"ls","in":"."}`)
	with := func(change func(q *decide.Question)) decide.Question {
		q := first
		e := *first.Event
		q.Event = &e
		change(&q)
		return q
	}
	for name, c := range map[string]struct {
		q    decide.Question
		wait time.Duration
		same bool
	}{
		"the same again":                {q: with(func(*decide.Question) {}), same: true},
		"written otherwise":             {q: with(func(q *decide.Question) { q.Event.ToolInput = jsontext.Value(` { "in":".", "command" : "ls"}`) }), same: true},
		"refused, minutes later":        {q: with(func(*decide.Question) {}), wait: 4 * time.Minute, same: true},
		"much later":                    {q: with(func(*decide.Question) {}), wait: 6 * time.Minute},
		"another input under the id":    {q: with(func(q *decide.Question) { q.Event.ToolInput = jsontext.Value(`{"command":"rm -rf /"}`) })},
		"another tool under the id":     {q: with(func(q *decide.Question) { q.Event.ToolName = "Write" })},
		"another agent under the id":    {q: with(func(q *decide.Question) { q.Event.AgentID = "b" })},
		"another runtime under the id":  {q: with(func(q *decide.Question) { q.Event.Runtime = "codex" })},
		"what could not be read":        {q: with(func(q *decide.Question) { q.Unreadable = errors.New("junk") })},
		"a call that has no key at all": {q: with(func(q *decide.Question) { q.Key = "" })},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{}
				all := newFlights(b)
				(&delivery{all: all}).Ask(t.Context(), first)
				<-time.After(c.wait)
				v := (&delivery{all: all}).Ask(t.Context(), c.q).Verdict
				if same := b.count() == 1; same != c.same || same != (v.Reason == "verdict 1") {
					t.Errorf("asked %d times, and told %q", b.count(), v.Reason)
				}
			})
		})
	}
}

// A call without an id is a new call after the earlier one was over, or soon after its
// verdict.
func TestACallWithoutAnIDIsSharedForAMomentOnly(t *testing.T) {
	hashed := func(kind schema.EventType, output string) decide.Question {
		q := call(kind, "x/hash", `{}`)
		q.ByID, q.Event.ToolOutput = false, jsontext.Value(output)
		if kind == schema.PostToolUse {
			q.Key = "post/hash"
		}
		return q
	}
	synctest.Test(t, func(t *testing.T) {
		b := &bench{}
		all := newFlights(b)
		ask := func(q decide.Question) { (&delivery{all: all}).Ask(t.Context(), q) }
		steps := []struct {
			what string
			q    decide.Question
			wait time.Duration
			want int
		}{
			{"the first layer", hashed(schema.PreToolUse, ""), 0, 1},
			{"the second layer", hashed(schema.PreToolUse, ""), time.Second, 1},
			{"what came of it", hashed(schema.PostToolUse, `"one"`), 0, 2},
			{"what came of it, told twice", hashed(schema.PostToolUse, `"one"`), 0, 2},
			{"what came of another one", hashed(schema.PostToolUse, `"two"`), 0, 3},
			{"the same call, made again", hashed(schema.PreToolUse, ""), 0, 4},
			{"and again, when nobody said that it was over", hashed(schema.PreToolUse, ""), knownByHash, 5},
		}
		for _, s := range steps {
			<-time.After(s.wait)
			if ask(s.q); b.count() != s.want {
				t.Errorf("%s: asked %d times, not %d", s.what, b.count(), s.want)
			}
		}
		if all.shared != (sharing{byContent: 2}) {
			t.Errorf("counted: %+v", all.shared)
		}
	})
}

// A change since a verdict counts: the daemon has the call judged again. It hands over the
// items of a call that is judged again only once.
func TestACallThatIsJudgedAgainIsToldOnce(t *testing.T) {
	for name, again := range map[string]bool{"another layer": false, "one that did not hear the answer": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{says: injects}
				all, told := newFlights(b), 0
				ask := func(written, again bool) {
					q := call(schema.PreToolUse, "1", `{}`)
					q.Again = again
					d := &delivery{all: all}
					told += len(d.Ask(t.Context(), q).Verdict.Injections)
					if written {
						d.written(t.Context())
					}
				}
				ask(!again, false)
				<-time.After(10 * time.Second)
				ask(true, again)
				want := 1
				if again {
					want = 2
				}
				if b.count() != 2 || told != want || b.asked[1].Mute == again {
					t.Errorf("asked %d times, told %d times", b.count(), told)
				}
			})
		})
	}
}

func TestAVerdictIsNotSharedForLongerThanItHolds(t *testing.T) {
	pass := schema.Verdict{Decision: schema.Allow, Fabric: "f", ConfigVersion: 7, FreezeVersion: 1}
	deny := pass
	deny.Decision = schema.Deny
	for name, c := range map[string]struct {
		kind   schema.EventType
		first  schema.Verdict
		change func(v *schema.Verdict) // what a verdict on another call says between the two; nil: no such call
		wait   time.Duration
		same   bool
	}{
		"it passed, and another layer follows":      {schema.PreToolUse, pass, nil, 2 * time.Second, true},
		"it passed a while ago":                     {schema.PreToolUse, pass, nil, passesFor, false},
		"a prompt passed a while ago":               {schema.UserPromptSubmit, pass, nil, passesFor, false},
		"it was refused a while ago":                {schema.PreToolUse, deny, nil, time.Minute, true},
		"it is over since a while ago":              {schema.PostToolUse, pass, nil, time.Minute, true},
		"another call came under the same versions": {schema.PreToolUse, pass, func(*schema.Verdict) {}, time.Second, true},
		"something was frozen":                      {schema.PreToolUse, pass, func(v *schema.Verdict) { v.FreezeVersion++ }, time.Second, false},
		"something was thawed":                      {schema.PreToolUse, deny, func(v *schema.Verdict) { v.FreezeVersion++ }, time.Second, false},
		"the configuration changed":                 {schema.PreToolUse, pass, func(v *schema.Verdict) { v.ConfigVersion++ }, time.Second, false},
		"it changed after a call was over":          {schema.PostToolUse, pass, func(v *schema.Verdict) { v.ConfigVersion++ }, time.Second, false},
		"another fabric answers":                    {schema.PreToolUse, pass, func(v *schema.Verdict) { v.Fabric = "g" }, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				says := c.first
				b := &bench{says: func(context.Context, decide.Question) decide.Judgement {
					v := says
					return decide.Judgement{Verdict: &v}
				}}
				all := newFlights(b)
				ask := func(q decide.Question) { (&delivery{all: all}).Ask(t.Context(), q) }
				ask(call(c.kind, "1", `{}`))
				want := 1
				if c.change != nil {
					c.change(&says)
					other := call(c.kind, "2", `{}`)
					other.Pair = "p2"
					ask(other)
					want++
				}
				<-time.After(c.wait)
				if !c.same {
					want++
				}
				if ask(call(c.kind, "1", `{}`)); b.count() != want {
					t.Errorf("asked %d times, not %d", b.count(), want)
				}
			})
		})
	}
}

// A proxy learns from the hook whose call it is, also if the user took long to approve the
// call.
func TestWhoseCallItIsIsKnownForLongerThanItsVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{says: func(context.Context, decide.Question) decide.Judgement {
			return decide.Judgement{Verdict: &schema.Verdict{Decision: schema.Ask}}
		}}
		all := newFlights(b)
		(&delivery{all: all}).Ask(t.Context(), call(schema.PreToolUse, "pre/1", `{}`))
		<-time.After(time.Minute)
		q := call(schema.PreToolUse, "pre/1", `{}`)
		q.Event.AgentID = "guess"
		if (&delivery{all: all, borrow: true}).Ask(t.Context(), q); b.count() != 2 || b.asked[1].AgentID != "a" {
			t.Errorf("asked %d times; the last one is %+v", b.count(), b.asked[len(b.asked)-1])
		}
	})
}

func TestAProxyIsToldWhatTheHookWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{says: func(_ context.Context, q decide.Question) decide.Judgement {
			return decide.Judgement{Verdict: &schema.Verdict{EventID: string(q.Event.HookType), UpdatedInput: jsontext.Value(`{"command":"ls -l"}`)}}
		}}
		all := newFlights(b)
		(&delivery{all: all}).Ask(t.Context(), call(schema.PreToolUse, "pre/1", `{"command":"ls"}`))
		proxy := func(kind schema.EventType, key, input string) decide.Judgement {
			q := call(kind, key, input)
			q.Event.AgentID = "claude-guess"
			return (&delivery{all: all, borrow: true}).Ask(t.Context(), q)
		}
		// The runtime calls the server with the input that the hook rewrote.
		if v := proxy(schema.PreToolUse, "pre/1", `{"command":"ls -l"}`).Verdict; b.count() != 1 || v.UpdatedInput == nil {
			t.Errorf("asked %d times, %+v", b.count(), v)
		}
		if proxy(schema.PostToolUse, "post/1", `{"command":"ls -l"}`); b.count() != 2 || b.asked[1].AgentID != "a" {
			t.Errorf("asked %d times; the last one is %+v", b.count(), b.asked[len(b.asked)-1])
		}
		if (&delivery{all: all}).Ask(t.Context(), call(schema.PostToolUse, "post/1", `{"command":"ls"}`)); b.count() != 2 {
			t.Errorf("asked %d times", b.count())
		}
		if proxy(schema.PreToolUse, "pre/1", `{"command":"rm"}`); b.count() != 3 {
			t.Error("a call that the hook never saw passes under its id")
		}
	})
}

// A proxy that does not know its agent uses the hook's agent only if it is unambiguous.
func TestAProxyBorrowsNoAgentThatMayBeAnother(t *testing.T) {
	b := &bench{}
	all := newFlights(b)
	other := call(schema.PreToolUse, "pre/1", `{"command":"ls"}`)
	other.Event.AgentID = "b"
	(&delivery{all: all}).Ask(t.Context(), call(schema.PreToolUse, "pre/1", `{"command":"ls"}`))
	guess := call(schema.PreToolUse, "pre/1", `{"command":"ls"}`)
	guess.Event.AgentID, guess.Event.ToolName = "guess", "Write"
	if (&delivery{all: all, borrow: true}).Ask(t.Context(), guess); b.count() != 2 || b.asked[1].AgentID != "guess" {
		t.Errorf("another tool is asked about for %q", b.asked[len(b.asked)-1].AgentID)
	}
	all = newFlights(b)
	(&delivery{all: all}).Ask(t.Context(), call(schema.PreToolUse, "pre/1", `{"command":"ls"}`))
	(&delivery{all: all}).Ask(t.Context(), other)
	guess.Event.ToolName = "Bash"
	if (&delivery{all: all, borrow: true}).Ask(t.Context(), guess); b.count() != 5 || b.asked[4].AgentID != "guess" {
		t.Errorf("of two agents it is taken for %q", b.asked[len(b.asked)-1].AgentID)
	}
}

func TestWhatOneDeliveryNeverWroteIsForTheNext(t *testing.T) {
	b := &bench{}
	all := newFlights(b)
	q := call(schema.PreToolUse, "pre/1", `{}`)
	first, second, third := &delivery{all: all}, &delivery{all: all}, &delivery{all: all}
	if v := first.Ask(t.Context(), q).Verdict; len(v.Injections) != 1 {
		t.Fatalf("%+v", v)
	}
	first.gone()
	if v := second.Ask(t.Context(), q).Verdict; len(v.Injections) != 1 {
		t.Errorf("it is lost: %+v", v)
	}
	second.written(t.Context())
	second.gone()
	if v := third.Ask(t.Context(), q).Verdict; len(v.Injections) != 0 {
		t.Errorf("it is told twice: %+v", v)
	}
	if third.written(t.Context()); len(b.handed) != 1 {
		t.Errorf("handed over: %v", b.handed)
	}
}

// A first delivery that ran out of time, or failed, does not affect the others.
func TestAFailureIsNotShared(t *testing.T) {
	for name, fail := range map[string]func(context.Context) decide.Judgement{
		"no time": func(ctx context.Context) decide.Judgement {
			<-ctx.Done()
			return decide.Judgement{Verdict: &schema.Verdict{}, Unjudged: context.Cause(ctx)}
		},
		"a panic": func(ctx context.Context) decide.Judgement { <-ctx.Done(); panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{}
				b.says = func(ctx context.Context, _ decide.Question) decide.Judgement {
					if b.count() == 1 {
						return fail(ctx)
					}
					return decide.Judgement{Verdict: &schema.Verdict{Decision: schema.Deny}}
				}
				all := newFlights(b)
				var wait sync.WaitGroup
				wait.Go(func() {
					defer func() { _ = recover() }()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					(&delivery{all: all}).Ask(ctx, call(schema.PreToolUse, "pre/1", `{}`))
				})
				synctest.Wait()
				v := (&delivery{all: all}).Ask(t.Context(), call(schema.PreToolUse, "pre/1", `{}`)).Verdict
				wait.Wait()
				if v.Decision != schema.Deny || b.count() != 2 {
					t.Errorf("asked %d times, %q", b.count(), v.Decision)
				}
			})
		})
	}
}

func TestWhatIsKnownIsBounded(t *testing.T) {
	all := newFlights(&bench{})
	for i := range maxFlights + 100 {
		q := call(schema.PreToolUse, fmt.Sprint("pre/", i), `{}`)
		q.Pair = fmt.Sprint(i)
		(&delivery{all: all}).Ask(t.Context(), q)
	}
	if len(all.byKey) != maxFlights || len(all.byPair) != maxFlights || len(all.queues[1]) != maxFlights {
		t.Errorf("%d keys, %d pairs, %d in the queue", len(all.byKey), len(all.byPair), len(all.queues[1]))
	}
}
