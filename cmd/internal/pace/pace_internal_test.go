package daemon

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A daemon runs on one processor until a crowd asks, and again when it has been
// gone for a while.
func TestACrowdIsServedByAllProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []int
		now := 8
		p := newPace(func(n int) (before int) {
			before, now = now, n
			said = append(said, n)
			return before
		})
		is := func(want ...int) {
			t.Helper()
			if !slices.Equal(said, want) {
				t.Errorf("%v, not %v", said, want)
			}
			said = nil
		}
		is(1)
		for active := range int64(crowd) {
			p.begun(active)
		}
		p.ended(0)
		is()
		p.begun(crowd)
		p.begun(crowd + 1)
		is(8)
		p.ended(crowd)
		p.ended(0) // and the next ones come at once
		p.begun(crowd)
		is()
		<-time.After(crowdFor)
		p.ended(1)
		is()
		p.ended(0)
		is(1)
		p.begun(1)
		p.ended(0)
		is()
	})
}

func TestWhereNobodyMaySayTheProcessorsStay(t *testing.T) {
	p := newPace(nil)
	p.begun(crowd)
	p.ended(0)
	if p.many {
		t.Error("it follows the crowd")
	}
}
