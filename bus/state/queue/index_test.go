package queue

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestTheIndexKeepsTheNewestRevision(t *testing.T) {
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
	if _, there := v.there(3); there || len(x.ended)+len(x.leaving)+len(x.lists)+len(x.sources) != 0 {
		t.Errorf("what is gone is kept: %+v", x)
	}
}

func TestAnItemListCountsItsMatchers(t *testing.T) {
	x := newIndex()
	items := []*schema.Item{
		{Key: "a-a.p.1", Sequence: 1, Matcher: "X*"}, {Key: "a-a.p.2", Sequence: 2, Matcher: "X*"}, {Key: "a-a.p.3", Sequence: 3},
	}
	for _, it := range items {
		x.put(it)
	}
	l := x.lists["a-a"]
	for i, c := range []struct{ other, fitting, none bool }{{true, true, true}, {false, true, false}, {false, true, false}} {
		if l.fits("Y") != c.other || l.fits("X1") != c.fitting || l.fits("") != c.none {
			t.Errorf("after %d ends: another tool %v, a fitting one %v, none %v", i, l.fits("Y"), l.fits("X1"), l.fits(""))
		}
		x.end(items[len(items)-1-i].Key, uint64(10+i), false)
	}
	if len(l.matches) > 0 || l.fits("X1") {
		t.Errorf("an empty line fits %v", l.matches)
	}
}
