package e2e_test

import (
	"syscall"
	"testing"
	"time"
)

// lapse is how long a change may wait for a broker that was lost: until its
// lease has ended, with room for a busy machine.
const lapse = 25 * time.Second

// TestPartitionedBrokerAnswersByTheActiveVersion takes one of two brokers away
// from the others, changes the configuration more often than nodes keep
// versions, and lets it come back to the calls and requests that it was sent.
func TestPartitionedBrokerAnswersByTheActiveVersion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		long       bool
		away, back func(testing.TB, *parted)
		// whole: messages that are sent to it during this time arrive later.
		whole bool
	}{
		{"stopped", false,
			func(t testing.TB, p *parted) { p.lost.freeze(t) },
			func(t testing.TB, p *parted) { p.lost.must(t, syscall.SIGCONT) }, true},
		{"behind a wire that carries nothing", false,
			func(_ testing.TB, p *parted) { p.wire.Hold() },
			func(_ testing.TB, p *parted) { p.wire.Resume() }, false},
		{"behind a wire that is cut", true,
			func(_ testing.TB, p *parted) { p.wire.Cut() },
			func(_ testing.TB, p *parted) { p.wire.Resume() }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.long && !long() {
				t.Skip("A BROKER WHOSE WIRE IS CUT IS NOT TESTED: that takes HOOKFABRIC_LONG=1")
			}
			p := startParted(t)
			w := startWatch(t, dial(t, p.url))
			w.more(t, 50)
			tc.away(t, p)
			p.send(t, 50)
			began := time.Now()
			w.floor.Store(p.insist(t, 2))
			waited := time.Since(began)
			for n := 3; n <= 6; n++ {
				w.floor.Store(p.insist(t, n))
			}
			p.send(t, 50)
			newest := w.floor.Load()
			tc.back(t, p)
			late := p.awaitBack(t, newest)
			w.more(t, 50)
			all := w.finish()
			t.Logf("the first change waited %v; the lost broker answered %d calls late; %d requests to change met it; %v",
				waited.Round(100*time.Millisecond), late, p.unheard(), &all)
			all.check(t, p.says)
			if waited > lapse {
				t.Errorf("the first change waited %v, longer than %v", waited, lapse)
			}
			p.checkRefused(t, newest, tc.whole)
		})
	}
}
