package kv_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

func TestWhichErrorsMeanThatNothingIsStored(t *testing.T) {
	late := fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	broken := errors.New("no space left on device")
	for name, c := range map[string]struct {
		err    error
		waited time.Duration
		failed bool
	}{
		"it was stored":                       {},
		"it was refused":                      {err: jetstream.ErrKeyRevisionMismatch},
		"it was cancelled":                    {err: context.Canceled, waited: time.Minute},
		"there was no answer in a short time": {err: late, waited: 100 * time.Millisecond},
		"there was no answer in a long time":  {err: late, waited: 3 * time.Second, failed: true},
		"the server cannot":                   {err: broken, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s kv.Stored
				began := time.Now()
				<-time.After(c.waited)
				if s.Note(c.err, began); (s.Unstored() != nil) != c.failed {
					t.Errorf("it returns %v", s.Unstored())
				}
				if <-time.After(time.Minute); s.Unstored() != nil {
					t.Errorf("a minute later it returns %v", s.Unstored())
				}
				s.Note(broken, time.Now())
				if s.Note(nil, time.Now()); s.Unstored() != nil {
					t.Errorf("after a stored write it returns %v", s.Unstored())
				}
			})
		})
	}
}
