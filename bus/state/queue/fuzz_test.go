package queue

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// FuzzCursor reads anything as a cursor: what is accepted can be changed and
// tidied without harm, and says the same when it was written and read again.
func FuzzCursor(f *testing.F) {
	f.Add([]byte(`{"since":3,"at":9,"acked_to":5,"done_above":[7,8],"ends":[{"seq":7,"state":"expired"}],"leases":[{"event":"e","seqs":[9],"left":30,"peers":{"seen":{"agent2":"agent2.1"}}}],"peers":{"vote_only":true}}`))
	f.Add([]byte(`{"done_above":[2,1]}`))
	f.Add([]byte(`{"leases":[{"event":"","seqs":null,"left":-1}]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		c, err := readCursor(value)
		if err != nil {
			return
		}
		n := c.clone(time.Second)
		e := &entry{item: schema.Item{Sequence: 7, Source: "x"}}
		for _, l := range c.Leases {
			for _, seq := range n.drop(l.Event) {
				n.finish(seq)
			}
		}
		n.tidy(&view{position: 6, own: []*entry{e}}, "a")
		if n.AckedTo < c.AckedTo || n.At < c.At || len(n.Leases) != 0 || !slices.IsSorted(n.DoneAbove) {
			t.Errorf("%+v became %+v", c, n)
		}
		written, err := schema.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := readCursor(written); err != nil || back.AckedTo != n.AckedTo || !slices.Equal(back.DoneAbove, n.DoneAbove) || !reflect.DeepEqual(back.Peers, n.Peers) {
			t.Errorf("%s: %+v, %v", written, back, err)
		}
	})
}

// FuzzItem reads anything as an item: one that is accepted can be put into the
// mirror, and is the same when it was written and read again.
func FuzzItem(f *testing.F) {
	f.Add("a-x.p.1", []byte(`{"source":"human","strategy":"tool_result","content":"x","matcher":"A|B*","expiry":"1h"}`))
	f.Add("s-=20.p.k-n", []byte(`{"source":"subagent","strategy":"user_message","subagent":{"id":"1","status":"failed"}}`))
	f.Add("all.p.u-1", []byte(`{"matcher":"["}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		it, err := decode(kv.Entry{Key: key, Value: value, Revision: 1})
		if err != nil {
			return
		}
		x := newIndex()
		if e := x.put(it); e == nil || x.get(key) != e || e.fits("", false) != (e.match == nil) {
			t.Errorf("%+v", e)
		}
		if x.end(key, 2, false); x.get(key) != nil || len(x.lists) != 0 {
			t.Error("it is still there")
		}
		if markKey(key) == "" {
			t.Error("it has no mark")
		}
		if it.Number == 0 && it.Name == "" {
			return // keyOf makes up another name
		}
		if back, err := keyOf(it); err != nil || back != key {
			t.Errorf("%q is written %q: %v", key, back, err)
		}
	})
}
