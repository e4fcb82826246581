package control

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// TestPartsLeaveRoomForOtherRequests checks that requests with parts of conversations leave room
// for all other requests.
func TestPartsLeaveRoomForOtherRequests(t *testing.T) {
	r := newRoom()
	take := func(name string, size int) (func(), error) { return r.take(&verb{name: name}, make([]byte, size)) }
	var release []func()
	for {
		done, err := take(schema.VerbKeep, schema.MaxPart)
		if err != nil {
			break
		}
		release = append(release, done)
	}
	n := 0
	for range maxKeeps / verbShare {
		done, err := take(schema.VerbAck, verbShare)
		if err != nil {
			break
		}
		n++
		release = append(release, done)
	}
	if n != maxKeeps/verbShare {
		t.Errorf("%d acknowledgements found room", n)
	}
	if _, err := take(schema.VerbKeep, verbShare); err == nil {
		t.Error("there is room for nobody, and a part found some")
	}
	for _, done := range release {
		done()
	}
	if done, err := take(schema.VerbKeep, maxKeeps); err != nil {
		t.Errorf("nothing is under way: %v", err)
	} else {
		done()
	}
}
