package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// unloadable is mark 1 with one hook more, which no worker of the crew can load.
var unloadable = mark(1) + "    - {name: riddle, type: builtin, handler: no-such-thing, pool: crew}\n"

// TestAVersionThatWorkersCannotLoadIsRefused applies, under load, what some node cannot
// load and what is no configuration at all; then the operator insists.
func TestAVersionThatWorkersCannotLoadIsRefused(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 2)
	w := startWatch(t, dial(t, s.url))
	w.more(t, 50)
	before := s.pointer(t)
	path := s.file(t, "riddle.yaml", unloadable)
	refused := s.operate(t, 1, "apply", path)
	for _, node := range []string{"w0", "w1"} {
		want := fmt.Sprintf(`node %s cannot load hook riddle: this program serves no handler "no-such-thing"`, node)
		if !strings.Contains(refused.said.String(), want) {
			t.Errorf("it did not say %q:\n%s", want, refused.said)
		}
	}
	written := s.written(t)
	s.operate(t, 1, "apply", s.file(t, "faulty.yaml", strings.ReplaceAll(mark(2), "readonly", "raedonly")))
	w.more(t, 100)
	if n := written(); n > 0 {
		t.Errorf("a file with faults was written to the fabric: %d messages", n)
	}
	if after := s.pointer(t); after.Version != before.Version || after.Proposed.Version > 0 {
		t.Errorf("before: %+v, after: %+v", before, after)
	}
	forced := answerOf(t, s.operate(t, 0, "apply", path, "--force", "--json"))
	want := promise(forced.Version, 1)
	want.decision, want.hooks = schema.Deny, want.hooks+" riddle:load_error"
	want.reason = `hook "riddle" guards this call and gave no answer: its handler cannot be loaded: this program serves no handler "no-such-thing"`
	s.says[forced.Version] = want
	w.floor.Store(forced.Version)
	w.more(t, 50)
	all := w.finish()
	t.Log(&all)
	all.check(t, s.says)
}

// written counts what is written about configurations from now on.
func (s *spread) written(t testing.TB) (count func() int) {
	t.Helper()
	var subs []*nats.Subscription
	for _, subject := range []string{"$KV.hook_config.v.*", "$KV.hook_config.current"} {
		sub, err := s.nc.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		subs = append(subs, sub)
	}
	return func() (n int) {
		for _, sub := range subs {
			waiting, _, err := sub.Pending()
			if err != nil {
				t.Fatal(err)
			}
			n += waiting
		}
		return n
	}
}

// slow is mark n with one hook more, which workers load only when the file that
// is returned is there.
func (s *spread) slow(t testing.TB, n int) (path, until string) {
	t.Helper()
	until = filepath.Join(s.dir, fmt.Sprintf("load-v%d", n))
	text := mark(n) + fmt.Sprintf("    - {name: v%d-late, matcher: Other, type: builtin, handler: late, pool: crew, options: {until: %q}}\n", n, until)
	return s.file(t, fmt.Sprintf("v%d.yaml", n), text), until
}

// TestChangesWaitForEachOther applies a configuration while workers are still
// loading another one: both become active, one after the other.
func TestChangesWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 2)
	w := startWatch(t, dial(t, s.url))
	path, until := s.slow(t, 2)
	running := []*process{start(t, "broker", "apply", path, "--json", "--nats", s.url)}
	s.awaitProposed(t)
	for n := 3; n <= 6; n++ {
		path := s.file(t, fmt.Sprintf("v%d.yaml", n), mark(n))
		running = append(running, start(t, "broker", "apply", path, "--json", "--nats", s.url))
	}
	w.more(t, 50)
	if p := s.pointer(t); p.Version != 1 {
		t.Errorf("version %d is active before workers have loaded it", p.Version)
	}
	s.file(t, filepath.Base(until), "")
	var versions []uint64
	for i, p := range running {
		if code, err := p.wait(); err != nil || code != 0 {
			t.Fatalf("it ended with %d, %v:\n%s", code, err, p.said)
		}
		version := answerOf(t, p).Version
		s.says[version] = promise(version, i+2)
		versions = append(versions, version)
	}
	w.floor.Store(slices.Max(versions))
	w.more(t, 50)
	all := w.finish()
	t.Logf("versions %v; %v", versions, &all)
	all.check(t, s.says)
	if slices.Min(versions) != versions[0] || len(slices.Compact(slices.Sorted(slices.Values(versions)))) != len(versions) {
		t.Errorf("the changes became versions %v", versions)
	}
}

func (s *spread) awaitProposed(t testing.TB) {
	t.Helper()
	if err := eventually("a version is proposed", func() bool { return s.proposed(t) }); err != nil {
		t.Fatal(err)
	}
}

// TestKilledCoordinatorLeavesNothingHalfApplied kills the broker that applies a
// configuration while workers are still loading it. The next change, by the
// other broker, takes over.
func TestKilledCoordinatorLeavesNothingHalfApplied(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 2)
	w := startWatch(t, dial(t, s.url))
	path, until := s.slow(t, 2)
	abandoned := start(t, "broker", "apply", path, "--nats", s.url)
	s.awaitProposed(t)
	s.brokers[s.proposer(t)].kill()
	killed := time.Now()
	w.more(t, 100)
	s.file(t, filepath.Base(until), "")
	next := start(t, "broker", "apply", s.file(t, "v3.yaml", mark(3)), "--json", "--nats", s.url)
	<-next.ended // it gives up by itself
	waited := time.Since(killed)
	a := answerOf(t, next)
	s.says[a.Version] = promise(a.Version, 3)
	w.floor.Store(a.Version)
	w.more(t, 50)
	all := w.finish()
	t.Logf("the next change was active %v after the kill; %v", waited.Round(100*time.Millisecond), &all)
	all.check(t, s.says)
	if p := s.pointer(t); !a.Changed || p.Version != a.Version || p.Proposed.Version > 0 {
		t.Errorf("the next change was answered %+v, and the pointer is %+v", a, p)
	}
	if waited > lapse {
		t.Errorf("the next change waited %v, longer than %v", waited, lapse)
	}
	abandoned.must(t, syscall.SIGTERM)
	if code, err := abandoned.wait(); err != nil || code == 0 {
		t.Errorf("who asked for what was never applied ended with %d, %v:\n%s", code, err, abandoned.said)
	}
}
