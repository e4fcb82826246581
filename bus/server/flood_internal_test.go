package server

import "testing"

// A large fleet sends much at all times: its connections are looked at once in a while, and when
// what comes in all grows by what one agent may send.
func TestAFleetThatSendsMuchIsLookedAtOnceInAWhile(t *testing.T) {
	most, fleet := sent{messages: 10_000, bytes: 32 << 20}, sent{messages: 100_000, bytes: 200 << 20}
	var f floodCause
	if f.looks(sent{messages: 20_000, bytes: 32 << 20}, most) {
		t.Error("it is looked although no credentials can have sent too much unseen")
	}
	looks := 0
	for range 10 * floodAgain {
		if f.looks(fleet, most) {
			looks++
			f.none(fleet)
		}
	}
	if looks < 9 || looks > 11 {
		t.Errorf("looked %d times", looks)
	}
	for name, more := range map[string]sent{"messages": {messages: 10_001}, "bytes": {bytes: 32<<20 + 1}} {
		if !f.looks(fleet.plus(more), most) {
			t.Errorf("it is not looked when more %s come", name)
		}
	}
	f.looks(sent{}, most)
	if !f.looks(fleet, most) {
		t.Error("it is not looked when as much comes again after a rest")
	}
}
