package server

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p probe[int]
		if v, ok := p.run(func() int { return 7 }); v != 7 || !ok {
			t.Errorf("a call that returns gave %d, %v", v, ok)
		}
		block, calls := make(chan struct{}), 0
		hang := func() int { calls++; <-block; return 8 }
		for _, want := range []time.Duration{hangsAfter, 0} {
			began := time.Now()
			if v, ok := p.run(hang); ok || time.Since(began) != want {
				t.Errorf("a call that hangs gave %d, %v after %v, not after %v", v, ok, time.Since(began), want)
			}
		}
		close(block)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("%d calls were in progress", calls)
		}
		if v, ok := p.run(func() int { return 9 }); v != 9 || !ok {
			t.Errorf("the call after a late one gave %d, %v", v, ok)
		}
	})
}
