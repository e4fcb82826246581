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

// mark returns a hooks.yaml that identifies itself. n determines the number of hooks, their names
// and pools, whether they run at the same time, and whether the last one refuses.
func mark(n int) string {
	var b strings.Builder
	b.WriteString("presets: []\nhooks:\n  PreToolUse:\n")
	hooks := names(n)
	for i, name := range hooks {
		handler := "allow"
		switch last := refuses(n) && i == len(hooks)-1; {
		case (i+n)%2 == 0 && last:
			handler = "refuse, pool: crew"
		case (i+n)%2 == 0:
			handler = "wait, pool: crew"
		case last:
			handler = "deny"
		}
		fmt.Fprintf(&b, "    - {name: %s, type: builtin, handler: %s, readonly: %t, idempotent: true, fail_closed: true}\n", name, handler, i%3 > 0)
	}
	return b.String()
}

// names are the hooks of a mark, in order.
func names(n int) (all []string) {
	for i := range 2 + n%5 {
		all = append(all, fmt.Sprintf("v%d-%c", n, 'a'+i))
	}
	return all
}

// refuses reports whether the last hook of a mark refuses.
func refuses(n int) bool { return n%3 == 0 }

// A sight is what a verdict says of the configuration behind it.
type sight struct {
	version  uint64
	decision schema.Decision
	reason   string
	hooks    string // each with its outcome, in order
}

// sightOf is what one verdict says.
func sightOf(v *schema.Verdict) sight {
	var hooks []string
	for _, x := range v.ExecutedHooks {
		hooks = append(hooks, x.Hook+":"+string(x.Outcome))
	}
	return sight{v.ConfigVersion, v.Decision, v.Reason, strings.Join(hooks, " ")}
}

// promise is what every verdict by a version with mark n has to say.
func promise(version uint64, n int) sight {
	s := sight{version: version, decision: schema.Allow, hooks: strings.Join(names(n), ":ok ") + ":ok"}
	if refuses(n) {
		all := names(n)
		s.decision, s.reason = schema.Deny, fmt.Sprintf("refused by the hook %q", all[len(all)-1])
	}
	return s
}

// A watch runs callers that call all the time and count their verdicts.
type watch struct {
	stop  context.CancelFunc
	done  sync.WaitGroup
	count atomic.Int64
	// floor is the oldest version that may judge calls that begin now.
	floor atomic.Uint64
	each  [callers]watched // read only once done
}

// watched has the verdicts and errors that one caller received.
type watched struct {
	sights map[sight]int
	failed []error
	old    []string // verdicts by versions below the floor
	slow   time.Duration
}

// startWatch asks through c until finish.
func startWatch(t testing.TB, c *client.Client) *watch {
	ctx, stop := context.WithCancel(t.Context())
	w := &watch{stop: stop}
	for i := range w.each {
		me := &w.each[i]
		me.sights = make(map[sight]int)
		w.done.Go(func() {
			next := time.NewTicker(pace)
			defer next.Stop()
			for ctx.Err() == nil {
				me.ask(context.WithoutCancel(ctx), c, w.floor.Load())
				w.count.Add(1)
				<-next.C
			}
		})
	}
	t.Cleanup(func() { stop(); w.done.Wait() })
	return w
}

// ask makes one call; one that has begun is answered, also after the end.
func (w *watched) ask(ctx context.Context, c *client.Client, floor uint64) {
	began := time.Now()
	v, err := ask(ctx, c, "Tool")
	w.slow = max(w.slow, time.Since(began))
	switch {
	case err != nil:
		w.failed = append(w.failed, err)
	case v.ConfigVersion < floor:
		w.old = append(w.old, fmt.Sprintf("by version %d, after %d had been active everywhere", v.ConfigVersion, floor))
	}
	if err == nil {
		w.sights[sightOf(v)]++
	}
}

// more waits until n further calls were answered.
func (w *watch) more(t testing.TB, n int64) {
	t.Helper()
	target := w.count.Load() + n
	if err := eventually(fmt.Sprintf("%d more calls", n), func() bool { return w.count.Load() >= target }); err != nil {
		t.Fatal(err)
	}
}

// finish ends the calls and returns the results of all callers.
func (w *watch) finish() watched {
	w.stop()
	w.done.Wait()
	all := watched{sights: make(map[sight]int)}
	for i := range w.each {
		me := &w.each[i]
		for s, n := range me.sights {
			all.sights[s] += n
		}
		all.failed, all.old, all.slow = append(all.failed, me.failed...), append(all.old, me.old...), max(all.slow, me.slow)
	}
	return all
}

// check fails the test if a call failed, or got a verdict that is not exactly
// what its version says, or by an older version than it may.
func (w *watched) check(t testing.TB, says map[uint64]sight) {
	t.Helper()
	for _, err := range w.failed[:min(len(w.failed), 5)] {
		t.Errorf("a call got no verdict: %v", err)
	}
	for _, old := range w.old[:min(len(w.old), 5)] {
		t.Errorf("a call was judged %s", old)
	}
	for s, n := range w.sights {
		if !s.of(says[s.version]) {
			t.Errorf("%d verdicts are not what version %d says:\ngot  %+v\nwant %+v", n, s.version, s, says[s.version])
		}
	}
}

// of reports whether it is what a version says, which fails closed: a hook whose pool
// is too busy, as it may be on a machine that does much else, denies.
func (s sight) of(want sight) bool {
	until, busy := strings.CutSuffix(s.hooks, ":busy")
	return s == want || busy && s.decision == want.decision && strings.HasPrefix(want.hooks, until+":ok")
}

// String is the figures in one line.
func (w *watched) String() string {
	perVersion, calls := make(map[uint64]int), len(w.failed)
	for s, n := range w.sights {
		perVersion[s.version] += n
		calls += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls, %d without a verdict, %d too old, longest wait %v; by version", calls, len(w.failed), len(w.old), w.slow.Round(time.Millisecond))
	for _, v := range slices.Sorted(maps.Keys(perVersion)) {
		fmt.Fprintf(&b, " %d:%d", v, perVersion[v])
	}
	return b.String()
}
