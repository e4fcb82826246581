//go:build !race

package schema

import "testing"

// With the race detector, pools drop some of their values, so the number of allocations
// means nothing.
func TestPlainValuesTakeFewAllocations(t *testing.T) {
	reply := &BatchReply{Worker: "host-1", Outcomes: []Outcome{{Hook: 0, Result: Allowed()}, {Hook: 3, Result: Denied("no such luck")}}}
	data, _ := Marshal(reply)
	if n := testing.AllocsPerRun(100, func() { _, _ = Marshal(reply) }); n > 1 {
		t.Errorf("writing a reply takes %v allocations; it is one text", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = Unmarshal(data, new(BatchReply)) }); n > 3 {
		t.Errorf("reading a reply takes %v allocations; it is a text, a list and the reply", n)
	}
	room, record := make([]byte, 0, 4096), fullRecord()
	if n := testing.AllocsPerRun(100, func() { _, _ = AppendJSON(room, record) }); n > 1 {
		t.Errorf("writing a record into room that is there takes %v allocations", n)
	}
}
