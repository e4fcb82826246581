package state_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
)

// What is stored in the place of a version is not that version, however sound it looks:
// what was active stays so, and applying it again mends it.
func TestAVersionThatWasChangedIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		seen, stop := watch(t, c)
		publish(t, c, config("a"), 1, true)
		if got, _ := told(seen); len(got) == 0 || got[len(got)-1] != "1 a, keep [1]" {
			t.Errorf("%q", got)
		}
		if kept, err := c.Versions(t.Context()); err != nil || len(kept[0].Digest) != 64 {
			t.Errorf("%+v, %v", kept, err)
		}
		forged := config("forged")
		forged.Version = 1
		data, err := schema.Marshal(forged)
		if err != nil {
			t.Fatal(err)
		}
		put(t, js, "v.1", string(data))
		if cfg, err := c.Get(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "not what was proposed") {
			t.Errorf("%+v, %v", cfg.Hooks, err)
		}
		if cfg, err := open(t, js).Current(t.Context()); err == nil {
			t.Errorf("who starts anew takes %+v", cfg.Hooks)
		}
		later, end := watch(t, open(t, js))
		<-time.After(time.Minute)
		sees(t, later)
		sees(t, seen)
		publish(t, c, config("a"), 2, true) // not the same as what is stored
		<-time.After(time.Minute)
		if got, _ := told(seen); len(got) == 0 || got[len(got)-1] != "2 a, keep [2 1]" {
			t.Errorf("%q", got)
		}
		if got, _ := told(later); len(got) == 0 || got[len(got)-1] != "2 a, keep [2 1]" {
			t.Errorf("who started meanwhile: %q", got)
		}
		for _, err := range []error{stop(), end()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// A version that is proposed is looked at likewise, and one of an earlier release has no digest.
func TestDigestsAreOfWhatWasProposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		propose(t, c, "a", state.Proposal{})
		put(t, js, "v.1", `{"hooks":[{"name":"x"}]}`)
		seen, stop := watch(t, open(t, js))
		<-time.After(time.Minute)
		if bad := sees(t, seen, "nothing, then the bad 1, keep [1]").Bad; bad == nil || !strings.Contains(bad.Err.Error(), "not what was proposed") {
			t.Errorf("%+v", bad)
		}
		put(t, js, "current", `{"version":1,"last":1,"kept":[{"version":1}]}`)
		<-time.After(time.Minute)
		if got, _ := told(seen); len(got) == 0 || got[len(got)-1] != "1 x, keep [1]" {
			t.Errorf("without a digest: %q", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
