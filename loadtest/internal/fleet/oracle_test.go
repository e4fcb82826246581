package fleet

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// newCall returns a call of a class.
func newCall(t *testing.T, k class, deny bool) *call {
	t.Helper()
	m, err := readMix()
	if err != nil {
		t.Fatal(err)
	}
	number := uint64(1000)
	if deny {
		number++
	}
	return m.fill(&call{class: k, deny: deny}, rand.New(rand.NewPCG(1, 1)), number)
}

// right returns the correct verdict for a call.
func right(t *testing.T, c *call) *schema.Verdict {
	t.Helper()
	v := &schema.Verdict{Decision: schema.Continue}
	for _, name := range c.class.chain() {
		h := schema.ExecutedHook{Hook: name, Outcome: schema.OK}
		switch {
		case name == insideDeny || name == guard && c.deny:
			h.Decision = schema.Deny
		case !strings.HasPrefix(name, stampHandler):
			h.Decision = schema.Allow
		default:
			from := c.input
			if v.UpdatedInput != nil {
				from = v.UpdatedInput
			}
			var err error
			if v.UpdatedInput, err = stamped(from, name); err != nil {
				t.Fatal(err)
			}
		}
		if name == guard || name == slowHook {
			h.Reason = c.nonce
		}
		v.ExecutedHooks = append(v.ExecutedHooks, h)
		if h.Decision != schema.None {
			v.Decision = h.Decision
		}
		if h.Decision == schema.Deny {
			v.Reason = "no"
			break
		}
	}
	return v
}

// broken returns the promises that an oracle found broken.
func broken(o *oracle) []string {
	var all []string
	for _, c := range o.cut().Checks {
		if c.Wrong > 0 {
			all = append(all, c.Name)
		}
	}
	slices.Sort(all)
	return all
}

func TestTheOracleIsContentWithWhatIsRight(t *testing.T) {
	for _, k := range classes() {
		for _, deny := range []bool{false, true} {
			if (k == refused) != deny && k != remote && k != rewritten {
				continue
			}
			o := newOracle(time.Second, false)
			c := newCall(t, k, deny)
			o.before(c, answer{verdict: right(t, c), took: time.Millisecond})
			if wrong := broken(o); len(wrong) > 0 {
				t.Errorf("%s: %q", c, wrong)
			}
		}
	}
}

// failing makes a hook of the verdict fail, with the decision of its failure policy.
func failing(v *schema.Verdict, i int, decision schema.Decision) {
	v.ExecutedHooks[i].Outcome, v.ExecutedHooks[i].Decision, v.ExecutedHooks[i].Reason = schema.Lost, decision, ""
	if decision == schema.Deny {
		v.ExecutedHooks, v.Decision, v.Reason, v.UpdatedInput = v.ExecutedHooks[:i+1], schema.Deny, "hook is fail-closed", nil
	}
}

func TestTheOracleSeesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		class   class
		deny    bool
		excused bool
		spoil   func(v *schema.Verdict)
		took    time.Duration
		want    []string
	}{
		"a call that is denied by the broker and passes": {
			class: refused, deny: true, want: []string{deniesHonoured, guardsAsked},
			spoil: func(v *schema.Verdict) { v.Decision = schema.Allow },
		},
		"a call that its guard denies and passes": {
			class: remote, deny: true, want: []string{deniesHonoured, guardsAsked},
			spoil: func(v *schema.Verdict) { v.Decision = schema.Continue },
		},
		"a call that its guard denies and that a hook behind it rewrites": {
			class: rewritten, deny: true, want: []string{deniesHonoured, guardsAsked, inputsRight, trailsRight},
			spoil: func(v *schema.Verdict) {
				v.Decision, v.UpdatedInput = schema.Continue, jsontext.Value(`{}`)
				v.ExecutedHooks = append(v.ExecutedHooks, schema.ExecutedHook{Hook: stampFirst, Outcome: schema.OK})
			},
		},
		"the same while processes die": {
			class: remote, deny: true, excused: true, want: []string{deniesHonoured, guardsAsked},
			spoil: func(v *schema.Verdict) { v.Decision = schema.Allow },
		},
		"a guarded call that passes without its guard": {
			class: remote, want: []string{guardsAsked, trailsRight},
			spoil: func(v *schema.Verdict) { v.ExecutedHooks = nil },
		},
		"a guarded call that passes though its guard failed": {
			class: remote, excused: true, want: []string{guardsAsked},
			spoil: func(v *schema.Verdict) { failing(v, 0, schema.None) },
		},
		"a call that is denied and had no reason to be": {
			class: inside, want: []string{noneElse},
			spoil: func(v *schema.Verdict) { v.Decision, v.Reason = schema.Deny, "just so" },
		},
		"a question where nobody asked": {
			class: unmatched, want: []string{noneElse},
			spoil: func(v *schema.Verdict) { v.Decision = schema.Ask },
		},
		"a refusal by failure policy while nothing dies": {
			class: remote, want: []string{hooksAnswered},
			spoil: func(v *schema.Verdict) { failing(v, 0, schema.Deny) },
		},
		"a refusal by failure policy while processes die is none": {
			class: remote, excused: true,
			spoil: func(v *schema.Verdict) { failing(v, 0, schema.Deny) },
		},
		"one that does not say why": {
			class: remote, excused: true, want: []string{noneElse},
			spoil: func(v *schema.Verdict) { failing(v, 0, schema.Deny); v.Reason = "" },
		},
		"a chain that was left out": {
			class: rewritten, want: []string{inputsRight},
			spoil: func(v *schema.Verdict) { v.UpdatedInput = nil },
		},
		"a chain whose last hook saw what the first one saw": {
			class: rewritten, want: []string{inputsRight},
			spoil: func(v *schema.Verdict) {
				fields, m, _ := marked(v.UpdatedInput)
				m.Stamps[2].Saw = m.Stamps[0].Saw
				v.UpdatedInput, _ = remarked(fields, m)
			},
		},
		"a chain out of order": {
			class: rewritten, want: []string{inputsRight, trailsRight},
			spoil: func(v *schema.Verdict) {
				h := v.ExecutedHooks
				h[1], h[2] = h[2], h[1]
			},
		},
		"a rewrite of what nobody rewrites": {
			class: inside, want: []string{inputsRight},
			spoil: func(v *schema.Verdict) { v.UpdatedInput = jsontext.Value(`{}`) },
		},
		"a rewriting hook that failed open left nothing": {
			class: rewritten, excused: true, want: []string{inputsRight},
			spoil: func(v *schema.Verdict) { failing(v, 2, schema.None) },
		},
		"a hook too many": {
			class: unmatched, want: []string{trailsRight},
			spoil: func(v *schema.Verdict) {
				v.ExecutedHooks = []schema.ExecutedHook{{Hook: insideAllow, Outcome: schema.OK}}
			},
		},
		"what the fabric hands over itself is none": {
			class: unmatched,
			spoil: func(v *schema.Verdict) {
				v.ExecutedHooks = []schema.ExecutedHook{{Hook: schema.HumanInput, Outcome: schema.OK}}
			},
		},
		"a slow hook that spoke of another call": {
			class: slow, want: []string{ownVerdict},
			spoil: func(v *schema.Verdict) { v.ExecutedHooks[0].Reason = "other" },
		},
		"a guard that spoke of another call": {
			class: remote, want: []string{ownVerdict, guardsAsked},
			spoil: func(v *schema.Verdict) { v.ExecutedHooks[0].Reason = "other" },
		},
		"an answer after its deadline": {
			class: unmatched, took: time.Second + 1, want: []string{inTime, waitsEnd},
			spoil: func(*schema.Verdict) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, one := newOracle(time.Second, c.excused), newCall(t, c.class, c.deny)
			v := right(t, one)
			c.spoil(v)
			o.before(one, answer{verdict: v, took: c.took})
			slices.Sort(c.want)
			if got := broken(o); !slices.Equal(got, c.want) {
				t.Errorf("broken are %q, want %q", got, c.want)
			}
		})
	}
}

// TestAPromiseIsNotHeldWhereNothingWouldShowThatItIsBroken checks that Seen counts only
// cases in which the check could have failed.
func TestAPromiseIsNotHeldWhereNothingWouldShowThatItIsBroken(t *testing.T) {
	for k, want := range map[class]int64{unmatched: 0, inside: 0, refused: 0, remote: 1, rewritten: 1, slow: 1} {
		o, c := newOracle(time.Second, false), newCall(t, k, k == refused)
		o.before(c, answer{verdict: right(t, c)})
		checks := report.Document{Checks: o.cut().Checks}
		if got := checks.Check(ownVerdict).Seen; got != want {
			t.Errorf("whose a verdict on %s is was seen %d times", k, got)
		}
	}
}

func TestACallWithoutAVerdictIsAFaultUnlessExcused(t *testing.T) {
	for excused, want := range map[bool]int{false: 1, true: 0} {
		o := newOracle(time.Second, excused)
		o.unanswered(newCall(t, inside, false), errors.New("no answer"), time.Second)
		f := o.cut()
		if f.Failures["calls without a verdict"] != 1 || len(f.Checks) != want+1 {
			t.Errorf("excused is %v, and it found %+v", excused, f)
		}
	}
}

// seenBy makes the observer judge a call with an input.
func seenBy(t *testing.T, c *call, input jsontext.Value, spoil func(e *schema.Event)) []string {
	t.Helper()
	e, err := c.after(input)
	if err != nil {
		t.Fatal(err)
	}
	spoil(e)
	r, err := observes(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if r.Decision == schema.None {
		r.Decision = schema.Continue
	}
	o := newOracle(time.Second, false)
	o.after(c, answer{verdict: &schema.Verdict{Decision: r.Decision, Reason: r.Reason,
		ExecutedHooks: []schema.ExecutedHook{{Hook: observer, Outcome: schema.OK}}}})
	return broken(o)
}

func TestTheObserverSeesWhatIsWrong(t *testing.T) {
	c := newCall(t, rewritten, false)
	input := right(t, c).UpdatedInput
	again := func(change func(m *mark)) func(*schema.Event) {
		return func(e *schema.Event) {
			fields, m, _ := marked(e.ToolInput)
			change(&m)
			e.ToolInput, _ = remarked(fields, m)
		}
	}
	for name, spoil := range map[string]func(*schema.Event){
		"another output":             func(e *schema.Event) { e.ToolOutput = jsontext.Value(`{"nonce":"` + c.nonce + `"}`) },
		"the output of another call": func(e *schema.Event) { e.ToolOutput = jsontext.Value(`{"nonce":"zz"}`) },
		"a stamp too few":            again(func(m *mark) { m.Stamps = m.Stamps[1:] }),
		"stamps in another order":    again(func(m *mark) { slices.Reverse(m.Stamps) }),
		"another input": func(e *schema.Event) {
			e.ToolInput = with(e.ToolInput, `"more":true`)
		},
		"a call that its guard denies": again(func(m *mark) { m.Nonce = nonce(7) }),
	} {
		if got := seenBy(t, c, input, spoil); !slices.Equal(got, []string{seenAfter}) {
			t.Errorf("%s: broken are %q", name, got)
		}
	}
	if got := seenBy(t, c, input, func(*schema.Event) {}); len(got) > 0 {
		t.Errorf("of what is right, broken are %q", got)
	}
}

func TestAnObserverWhoseWordIsLostIsHeard(t *testing.T) {
	o, c := newOracle(time.Second, true), newCall(t, remote, false)
	o.after(c, answer{verdict: &schema.Verdict{Decision: schema.Continue,
		ExecutedHooks: []schema.ExecutedHook{{Hook: observer, Outcome: schema.OK, Decision: schema.Deny}}}})
	if got := broken(o); !slices.Equal(got, []string{seenAfter}) {
		t.Errorf("broken are %q", got)
	}
}

// TestTheSharesAreThoseAskedFor draws many calls and checks their shares.
func TestTheSharesAreThoseAskedFor(t *testing.T) {
	m, err := readMix()
	if err != nil {
		t.Fatal(err)
	}
	s, random := defaultShares(), rand.New(rand.NewPCG(3, 4))
	const n = 20_000
	denied, of := 0, map[class]float64{}
	for range n {
		c := m.draw(random, s)
		if of[c.class]++; c.deny {
			denied++
		}
		_, k, err := marked(c.input)
		if err != nil {
			t.Fatal(err)
		}
		if deny, err := k.denies(); err != nil || deny != c.deny || k.Nonce != c.nonce {
			t.Fatalf("%s is to be denied: %v, and its nonce says %v, %v", c, c.deny, deny, err)
		}
	}
	near := func(what string, got, want float64) {
		if got/n < want-0.01 || got/n > want+0.01 {
			t.Errorf("%s is %.3f of all, want %.3f", what, got/n, want)
		}
	}
	near("denied", float64(denied), s.Deny)
	near("rewritten", of[rewritten], s.Rewrite+s.Deny/3)
	near("unmatched", of[unmatched], s.Unmatched)
	near("inside", of[inside], s.Inside)
	near("slow", of[slow], s.Slow)
	near("remote", of[remote], 1-s.Sum()+s.Deny/3)
}

func TestAnAnswerIsNotLateForAProcessThatDidNotRun(t *testing.T) {
	for lag, want := range map[time.Duration]int{50 * time.Millisecond: 0, 49 * time.Millisecond: 2} {
		o, c := newOracle(time.Second, true), newCall(t, unmatched, false)
		o.lag = func() time.Duration { return lag }
		o.before(c, answer{verdict: right(t, c), took: time.Second + 50*time.Millisecond})
		if got := broken(o); len(got) != want {
			t.Errorf("with a lag of %v broken are %q", lag, got)
		}
	}
}

// The fabric may refuse the call of a runaway agent, but must not let it pass unjudged.
func TestCallsOfAnAgentThatRunsAway(t *testing.T) {
	c := newCall(t, remote, false)
	over := schema.ExecutedHook{Hook: guard, Decision: schema.Deny, Outcome: schema.Busy, Error: "have an operator raise --agent-rate of the brokers"}
	for name, x := range map[string]struct {
		verdict *schema.Verdict
		limited bool
		broken  []string
	}{
		"one that is judged":         {right(t, c), false, nil},
		"one over the limit":         {&schema.Verdict{Decision: schema.Deny, Reason: "guard gave no answer", ExecutedHooks: []schema.ExecutedHook{over}}, true, nil},
		"one that passes over it":    {&schema.Verdict{Decision: schema.Continue, ExecutedHooks: []schema.ExecutedHook{over}}, true, []string{guardsAsked}},
		"one that no hook was asked": {&schema.Verdict{Decision: schema.Continue}, false, []string{guardsAsked}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOracle(time.Second, false)
			if got := o.runaway(c, x.verdict); got != x.limited {
				t.Errorf("over the limit: %v", got)
			}
			if got := broken(o); !slices.Equal(got, x.broken) {
				t.Errorf("%q, want %q", got, x.broken)
			}
		})
	}
}

func TestAnAgentThatIsJudgedTooOftenIsAFault(t *testing.T) {
	for _, x := range []struct {
		judged, limited int64
		broken          []string
	}{{20, 900, nil}, {20, 0, []string{limitKept}}, {500, 500, []string{limitKept}}, {0, 0, nil}} {
		d := &driver{oracle: newOracle(time.Second, false)}
		d.Scenario.Runaway = scenario.Runaway{Agents: 1, Limit: 10, Times: 50}
		w := &wild{agent: &agent{name: "wild"}}
		w.judged.Store(x.judged)
		w.limited.Store(x.limited)
		w.first.Store(time.Now().UnixNano())
		d.wild = append(d.wild, w)
		d.limits()
		if got := broken(d.oracle); !slices.Equal(got, x.broken) {
			t.Errorf("%+v: %q", x, got)
		}
	}
}
