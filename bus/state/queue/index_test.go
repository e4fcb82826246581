package queue

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestTheIndexBelievesWhatIsNewest(t *testing.T) {
	it := &schema.Item{Key: "a-a.p.1", Sequence: 3, Source: "x"}
	x := newIndex()
	x.advance(5)
	if x.put(it) != nil {
		t.Error("an item that the mirror told of before came back")
	}
	x = newIndex()
	if e := x.put(it); e == nil || x.put(it) != nil || !x.any("a-a") {
		t.Errorf("%+v", e)
	}
	x.end(it.Key, 9, true)
	if x.put(it) != nil {
		t.Error("an item whose end is known came back")
	}
	v := x.view(scopes{own: "a-a"}, &cursor{DoneAbove: []uint64{3, 4}})
	if _, there := v.there(3); !there {
		t.Error("others may not know yet that the item is gone")
	}
	for revision := range uint64(10) {
		x.advance(revision)
	}
	v = x.view(scopes{own: "a-a"}, &cursor{DoneAbove: []uint64{3, 4}})
	if _, there := v.there(3); there || len(x.ended)+len(x.leaving)+len(x.lines)+len(x.sources) != 0 {
		t.Errorf("what is gone is kept: %+v", x)
	}
}
