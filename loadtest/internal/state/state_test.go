package state

import (
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

func TestTheWritesOfAPartAreJudged(t *testing.T) {
	d := new(report.Document)
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
			case roles.Enqueue:
				puts += s.items
			case roles.Ask, roles.AskAndAck:
				takes += s.items
			}
		}
		if puts != takes {
			t.Errorf("the step %q puts %d items into the queue and takes %d", s.name, puts, takes)
		}
	}
}
