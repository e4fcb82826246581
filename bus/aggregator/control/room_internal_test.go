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
		t.Error("a part found room where no other request did")
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

// TestOtherRequestsDoNotDelayAFreeze: the slots of requests that may take long are full.
func TestOtherRequestsDoNotDelayAFreeze(t *testing.T) {
	r := newRoom()
	for range maxSlow {
		if _, err := r.take(&verb{slots: slow}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range verbs() {
		_, err := r.take(&v, nil)
		switch v.name {
		case schema.VerbFreeze, schema.VerbThaw:
			if err != nil {
				t.Errorf("%s is refused: %v", v.name, err)
			}
		case schema.VerbStatus:
			if err == nil {
				t.Errorf("%s has a slot beyond %d", v.name, maxSlow)
			}
		}
	}
}
