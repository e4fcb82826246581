package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// deadline is how long a call may take, and callers how many ask at a time. A caller begins at most one call in each
// pace, so that tests that run at the same time share the machine.
const (
	deadline = 10 * time.Second
	callers  = 16
	pace     = 40 * time.Millisecond
)

// The tools that are asked about; each is judged by hooks of its own.
const (
	free    = "Free"    // two idempotent hooks that allow
	guarded = "Guarded" // an idempotent one that denies, fail-closed
	once    = "Once"    // one that denies, fail-closed, and must not run twice
	loose   = "Loose"   // one that allows, and must not run twice
)

// crewHooks are the hooks of a pool of their own: %[1]s is the kind of their
// handlers, %[2]s the one that allows and %[3]s the one that denies.
const crewHooks = `presets: []
hooks:
  PreToolUse:
    - {name: free-a, matcher: Free, type: %[1]s, handler: %[2]s, pool: crew, timeout: 3, readonly: true}
    - {name: free-b, matcher: Free, type: %[1]s, handler: %[2]s, pool: crew, timeout: 3, readonly: true}
    - {name: guard, matcher: Guarded, type: %[1]s, handler: %[3]s, pool: crew, timeout: 3, readonly: true, fail_closed: true}
    - {name: guard-once, matcher: Once, type: %[1]s, handler: %[3]s, pool: crew, timeout: 3, readonly: true, idempotent: false, fail_closed: true}
    - {name: loose, matcher: Loose, type: %[1]s, handler: %[2]s, pool: crew, timeout: 3, readonly: true, idempotent: false}
`

// A called is one call and what came of it.
type called struct {
	tool    string
	began   time.Time
	took    time.Duration
	verdict *schema.Verdict
	err     error
}

// A load is callers that ask one question after the other.
type load struct {
	stop  context.CancelFunc
	done  sync.WaitGroup
	count atomic.Int64
	each  [callers][]called // read only once done
}

// startLoad asks through c until finish.
func startLoad(t testing.TB, c *client.Client) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{stop: stop}
	for i := range callers {
		l.done.Go(func() {
			tools := []string{free, guarded, free, once, free, loose}
			next := time.NewTicker(pace)
			defer next.Stop()
			for n := i; ctx.Err() == nil; n++ {
				one := called{tool: tools[n%len(tools)], began: time.Now()}
				// A call that has begun is answered, also after the end.
				one.verdict, one.err = ask(context.WithoutCancel(ctx), c, one.tool)
				one.took = time.Since(one.began)
				l.each[i] = append(l.each[i], one)
				l.count.Add(1)
				<-next.C
			}
		})
	}
	t.Cleanup(func() { stop(); l.done.Wait() })
	return l
}

// more waits until n further calls were answered.
func (l *load) more(t testing.TB, n int64) {
	t.Helper()
	target := l.count.Load() + n
	if err := eventually(fmt.Sprintf("%d more calls", n), func() bool { return l.count.Load() >= target }); err != nil {
		t.Fatal(err)
	}
}

// finish ends the load and returns all calls.
func (l *load) finish() []called {
	l.stop()
	l.done.Wait()
	return slices.Concat(l.each[:]...)
}

// A tally is what the calls of a load came to.
type tally struct {
	calls    int
	longest  map[string]time.Duration
	outcomes map[string]map[schema.OutcomeKind]int
	failed   []called // without a verdict
	wrong    []called // with one that must not be
	slowest  called
}

// count holds every call against what its tool's hooks promise.
func count(calls []called) *tally {
	s := &tally{
		calls: len(calls), longest: make(map[string]time.Duration),
		outcomes: make(map[string]map[schema.OutcomeKind]int),
	}
	for _, c := range calls {
		s.longest[c.tool] = max(s.longest[c.tool], c.took)
		if c.took > s.slowest.took {
			s.slowest = c
		}
		if c.err != nil {
			s.failed = append(s.failed, c)
			continue
		}
		if !promised(c) {
			s.wrong = append(s.wrong, c)
		}
		for _, x := range c.verdict.ExecutedHooks {
			if s.outcomes[c.tool] == nil {
				s.outcomes[c.tool] = make(map[schema.OutcomeKind]int)
			}
			s.outcomes[c.tool][x.Outcome]++
		}
	}
	return s
}

// promised reports whether its tool may get this verdict although processes died: a fail-closed hook denies,
// and an idempotent one answers.
func promised(c called) bool {
	switch c.tool {
	case guarded:
		return c.verdict.Decision == schema.Deny && answered(c)
	case once:
		return c.verdict.Decision == schema.Deny
	case free:
		return c.verdict.Decision == schema.Allow && len(c.verdict.ExecutedHooks) == 2 && answered(c)
	}
	return !schema.PreToolUse.Blocks(c.verdict.Decision)
}

func answered(c called) bool {
	return !slices.ContainsFunc(c.verdict.ExecutedHooks, func(x schema.ExecutedHook) bool { return x.Outcome != schema.OK })
}

// check fails the test if a call was not what it had to be.
func (s *tally) check(t testing.TB) {
	t.Helper()
	for _, c := range s.failed[:min(len(s.failed), 5)] {
		t.Errorf("a %s call got no verdict after %v: %v", c.tool, c.took, c.err)
	}
	if n := len(s.failed); n > 0 {
		t.Errorf("%d of %d calls got no verdict", n, s.calls)
	}
	s.checkVerdicts(t)
}

// checkVerdicts is check for runs in which some calls may get no verdict.
func (s *tally) checkVerdicts(t testing.TB) {
	t.Helper()
	for _, c := range s.wrong[:min(len(s.wrong), 5)] {
		t.Errorf("a %s call got %s (%+v) after %v", c.tool, c.verdict.Decision, c.verdict.ExecutedHooks, c.took)
	}
	if n := len(s.wrong); n > 0 {
		t.Errorf("%d of %d calls got the wrong verdict", n, s.calls)
	}
	if s.slowest.took >= deadline {
		t.Errorf("a call took %v, longer than its deadline", s.slowest.took)
	}
}

// String is the figures in one line.
func (s *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls, %d without a verdict, longest wait %v", s.calls, len(s.failed), s.slowest.took.Round(time.Millisecond))
	for _, tool := range slices.Sorted(maps.Keys(s.longest)) {
		fmt.Fprintf(&b, "; %s %v %v", tool, s.longest[tool].Round(time.Millisecond), s.outcomes[tool])
	}
	return b.String()
}
