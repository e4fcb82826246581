package app

import (
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
)

// A shim may die at any point. The agent's next shim delivers the items that the agent did
// not get. An item is delivered twice only if a shim handed it over and died before it
// acknowledged it.
func TestWhereverAShimDiesNothingIsLost(t *testing.T) {
	for _, c := range []struct {
		step        string
		told, again bool // the agent has the whole answer; the next shim brings the item
	}{
		{"received", false, true},
		{halfWritten, false, true},
		{"written", true, true},
		{"acknowledged", true, false},
		{"nowhere", true, false},
	} {
		t.Run(c.step, func(t *testing.T) {
			w := newWorld(t)
			w.Put(bustest.Item(1, "one"))
			stdout, died := w.process(c.step)
			if died != (c.step != "nowhere") {
				t.Fatalf("it died: %v", died)
			}
			told := len(stdout) > 0 && stdout[len(stdout)-1] == '\n'
			if told != c.told || told && len(w.read(stdout).Injections) != 1 {
				t.Errorf("the agent was told %q", stdout)
			}
			w.endLeases()
			if v := w.says(payload); (len(v.Injections) == 1) != c.again {
				t.Errorf("the next shim says %+v", v)
			}
			w.endLeases()
			if v := w.says(payload); len(v.Injections) != 0 || w.waiting() != 0 {
				t.Errorf("the one after it says %+v; %d items wait", v, w.waiting())
			}
		})
	}
}
