package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// The promises that the oracle checks for every call.
const (
	deniesHonoured = "every call that had to be denied was denied"
	noneElse       = "no call was denied that had to pass"
	guardsAsked    = "no guarded call passed without its guard"
	inputsRight    = "every rewritten input was the result of its chain of hooks"
	trailsRight    = "the hooks that ran were the right ones, in their order"
	ownVerdict     = "every verdict with a hook's reason belonged to its own call"
	inTime         = "no answer came after its deadline"
	waitsEnd       = "no call waited beyond its deadline"
	seenAfter      = "hooks after the tool saw its unchanged input and output"
	allAnswered    = "every call was answered"
	hooksAnswered  = "every hook that got a call answered"
)

// An oracle has the expected results of calls, and counts the actual ones. It is safe for
// concurrent use.
type oracle struct {
	deadline time.Duration
	// excused means that processes die, or that the load is too high. Calls and hooks
	// without an answer are then not faults, but wrong answers are.
	excused bool
	// lag returns how late this process itself was recently.
	lag func() time.Duration

	mu       sync.Mutex // guards what follows
	checks   report.Document
	failures map[string]int64
}

func newOracle(deadline time.Duration, excused bool) *oracle {
	return &oracle{deadline: deadline, excused: excused, lag: func() time.Duration { return 0 }, failures: map[string]int64{}}
}

// found has the counts of an oracle.
type found struct {
	Checks []report.Check `json:"checks,omitzero"`
	// Failures counts calls and hooks without an answer, by cause.
	Failures map[string]int64 `json:"failures,omitzero"`
}

// cut returns the counts since the last call of cut.
func (o *oracle) cut() found {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := found{Checks: o.checks.Checks, Failures: maps.Clone(o.failures)}
	o.checks.Checks = nil
	clear(o.failures)
	return f
}

// hold counts a promise that was tested. If fault is not empty, it also counts that the
// promise was broken.
func (o *oracle) hold(promise, fault string) {
	c := o.checks.Check(promise)
	c.Seen++
	if fault != "" {
		c.Fail(fault)
	}
}

// fail counts a call or a hook without an answer. This is also a broken promise unless it
// is excused.
func (o *oracle) fail(promise, what, detail string) {
	o.failures[what]++
	if !o.excused {
		o.hold(promise, detail)
	}
}

// late reports whether a call took too long. It counts a call separately that was too long
// only because this process did not run for a while.
func (o *oracle) late(took time.Duration) bool {
	switch {
	case took <= o.deadline:
		return false
	case took <= o.deadline+o.lag():
		o.failures["calls that exceeded their deadline while their driver was not running"]++
		return false
	}
	return true
}

// unanswered counts a call that got no verdict, and how long it took.
func (o *oracle) unanswered(c *call, err error, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hold(waitsEnd, faultIf(o.late(took), "%s: the driver gave up after %v", c, took))
	o.fail(allAnswered, "calls without a verdict", fmt.Sprintf("%s: %v", c, err))
}

// unsent counts a call that was not sent.
func (o *oracle) unsent(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail(allAnswered, "calls that were not sent", fmt.Sprintf("%s: too many calls were in flight", c))
}

// cutOff counts a call that was cut off within its deadline because its driver ended. This
// is not a fault, and no figure includes the call.
func (o *oracle) cutOff() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failures["calls that were in flight at the end of the run"]++
}

// unacknowledged counts a connection that got no answer to its last acknowledgements before
// its driver ended.
func (o *oracle) unacknowledged() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failures["connections whose last acknowledgements got no answer"]++
}

func (c *call) String() string { return fmt.Sprintf("%s %s (%s)", c.class, c.tool.Name, c.nonce) }

// An answer is a verdict on an event.
type answer struct {
	verdict *schema.Verdict
	took    time.Duration
}

// before checks the verdict before the tool.
func (o *oracle) before(c *call, a answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ran := o.answered(c, a, c.class.chain())
	o.decision(c, a.verdict, ran)
	o.rewrite(c, a.verdict, ran)
}

// after checks the verdict after the tool.
func (o *oracle) after(c *call, a answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var chain []string
	if c.class.observed() {
		chain = []string{observer}
	}
	ran := o.answered(c, a, chain)
	if len(ran) > 0 && ran[0].Outcome == schema.OK {
		fault := ""
		if a.verdict.Decision != schema.Continue || ran[0].Decision == schema.Deny {
			fault = fmt.Sprintf("%s: %s: %s", c, a.verdict.Decision, a.verdict.Reason)
		}
		o.hold(seenAfter, fault)
	}
	o.rewrite(c, a.verdict, nil)
}

// answered makes the checks that are the same before and after the tool, and returns the
// hooks that ran.
func (o *oracle) answered(c *call, a answer, chain []string) (ran []schema.ExecutedHook) {
	v := a.verdict
	if !o.excused {
		o.hold(allAnswered, "")
	}
	late := o.late(a.took)
	o.hold(waitsEnd, faultIf(late, "%s: it took %v", c, a.took))
	o.hold(inTime, faultIf(late, "%s: the answer came after %v", c, a.took))
	var names []string
	for _, h := range v.ExecutedHooks {
		if slices.Contains(stages(), h.Hook) {
			continue
		}
		ran = append(ran, h)
		names = append(names, h.Hook)
		if h.Outcome != schema.OK {
			o.fail(hooksAnswered, fmt.Sprintf("hook %s: %s", h.Hook, h.Outcome), fmt.Sprintf("%s: %s came to %s: %s", c, h.Hook, h.Outcome, h.Error))
			continue
		}
		if !o.excused {
			o.hold(hooksAnswered, "")
		}
		if h.Hook == guard || h.Hook == slowHook {
			// Other verdicts do not show which call they are for, because the event's id is
			// not in them.
			o.hold(ownVerdict, faultIf(h.Reason != c.nonce, "%s: %s answered for %q", c, h.Hook, h.Reason))
		}
	}
	if v.Decision == schema.Deny && len(names) > 0 && len(names) < len(chain) {
		chain = chain[:len(names)] // a hook that denies ends the chain
	}
	o.hold(trailsRight, faultIf(!slices.Equal(names, chain), "%s: %q ran, want %q; %s %s", c, names, chain, v.Decision, strings.Join(v.HookErrors, "; ")))
	return ran
}

// decision compares the decision with the expected one.
func (o *oracle) decision(c *call, v *schema.Verdict, ran []schema.ExecutedHook) {
	denied := v.Decision == schema.Deny
	if c.deny {
		o.hold(deniesHonoured, faultIf(!denied, "%s: the verdict is %s", c, v.Decision))
	}
	failed := slices.ContainsFunc(ran, func(h schema.ExecutedHook) bool { return h.Outcome != schema.OK && closed(h.Hook) })
	switch {
	case c.deny:
	case denied && failed && v.Reason != "":
		o.failures["calls refused by failure policy"]++
	default:
		passed := v.Decision == schema.Allow || v.Decision == schema.Continue
		o.hold(noneElse, faultIf(!passed, "%s: %s: %s", c, v.Decision, v.Reason))
	}
	if !c.class.guarded() {
		return
	}
	asked := slices.ContainsFunc(ran, func(h schema.ExecutedHook) bool {
		// The fabric reports that the hook ran; the nonce comes from its worker.
		return h.Hook == guard && h.Outcome == schema.OK && h.Decision == schema.Allow && h.Reason == c.nonce
	})
	o.hold(guardsAsked, faultIf(!denied && !asked, "%s: the verdict is %s, and the hooks were %v", c, v.Decision, ran))
}

// rewrite compares the input in the verdict with the expected one: each hook that answered
// changes the input that the one before left.
func (o *oracle) rewrite(c *call, v *schema.Verdict, ran []schema.ExecutedHook) {
	var want jsontext.Value
	if v.Decision != schema.Deny {
		for _, h := range ran {
			if h.Outcome != schema.OK || !strings.HasPrefix(h.Hook, stampHandler) {
				continue
			}
			from := want
			if from == nil {
				from = c.input
			}
			next, err := stamped(from, h.Hook)
			if err != nil {
				o.hold(inputsRight, fmt.Sprintf("%s: %v", c, err))
				return
			}
			want = next
		}
	}
	if want == nil && v.UpdatedInput == nil {
		return
	}
	got := v.UpdatedInput.Clone()
	if got != nil {
		if err := got.Canonicalize(); err != nil {
			o.hold(inputsRight, fmt.Sprintf("%s: %v", c, err))
			return
		}
	}
	o.hold(inputsRight, faultIf(string(got) != string(want), "%s: the input is %s, want %s", c, got, want))
}

// faultIf returns a formatted fault if broken is true, else "".
func faultIf(broken bool, format string, args ...any) string {
	if !broken {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
