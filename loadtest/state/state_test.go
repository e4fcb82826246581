package state

import (
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

func TestTheWritesOfAPartAreJudged(t *testing.T) {
	d := new(result.Document)
	judge(d, oneDelivery, takers, true, "")
	judge(d, oneDelivery, takers, false, "50 calls took 51 writes")
	c := d.Checks[0]
	if c.Seen != 2*takers || c.Wrong != 1 || c.Examples[0] != "50 calls took 51 writes" || d.OK() {
		t.Errorf("the check is %+v", c)
	}
}

// TestEveryStepConsumesItsItems compares the items that a step needs with those that it delivers.
func TestEveryStepConsumesItsItems(t *testing.T) {
	for _, s := range steps() {
		puts, takes := 0, 0
		for _, do := range []string{s.before, s.do.Do, s.after} {
			switch do {
			case Enqueue:
				puts += s.items
			case ask, askAndAck:
				takes += s.items
			}
		}
		if puts != takes {
			t.Errorf("the step %q puts %d items into the queue and takes %d", s.name, puts, takes)
		}
	}
}

func TestItemsOfAVerdictAreCounted(t *testing.T) {
	v := &schema.Verdict{Injections: []schema.Injection{{Sequence: 3}, {Sequences: []uint64{4, 5, 6}}, {}}}
	if n := delivered(v); n != 4 {
		t.Errorf("%d items", n)
	}
}
