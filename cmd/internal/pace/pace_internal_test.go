package pace

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is the number of concurrent calls of a crowd.
const crowd = 4

// The process returns to one processor only some time after a crowd.
func TestACrowdOfCallsUsesAllProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []bool
		p := begin(crowd, func(all bool) { said = append(said, all) })
		is := func(want ...bool) {
			t.Helper()
			if !slices.Equal(said, want) {
				t.Errorf("%v, not %v", said, want)
			}
			said = nil
		}
		is(false)
		for active := range int64(crowd) {
			p.Begun(active)
		}
		p.Ended(0)
		is()
		p.Begun(crowd)
		p.Begun(crowd + 1)
		is(true)
		p.Ended(crowd)
		p.Ended(0) // the next calls come at once
		p.Begun(crowd)
		is()
		<-time.After(crowdFor)
		p.Ended(1)
		is()
		p.Ended(0)
		is(false)
		p.Begun(1)
		p.Ended(0)
		is()
	})
}

func TestGOMAXPROCSWins(t *testing.T) {
	t.Setenv("GOMAXPROCS", "7")
	before := runtime.GOMAXPROCS(0)
	p, end := Start(crowd)
	p.Begun(crowd)
	p.Ended(0)
	end()
	if now := runtime.GOMAXPROCS(0); p != nil || now != before {
		t.Errorf("it runs on %d processors, before on %d", now, before)
	}
}
