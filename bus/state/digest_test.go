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

// Nodes reject a stored version that was changed, even a valid one. The active version stays, and
// applying the configuration again repairs it.
func TestAModifiedVersionIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		seen, stop := watch(t, c)
		publish(t, c, config("a"), 1, true)
		if got, _ := received(seen); len(got) == 0 || got[len(got)-1] != "1 a, keep [1]" {
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
			t.Errorf("a new process uses %+v", cfg.Hooks)
		}
		later, end := watch(t, open(t, js))
		<-time.After(time.Minute)
		sees(t, later)
		sees(t, seen)
		publish(t, c, config("a"), 2, true) // differs from the stored bytes
		<-time.After(time.Minute)
		if got, _ := received(seen); len(got) == 0 || got[len(got)-1] != "2 a, keep [2 1]" {
			t.Errorf("%q", got)
		}
		if got, _ := received(later); len(got) == 0 || got[len(got)-1] != "2 a, keep [2 1]" {
			t.Errorf("a process that started before: %q", got)
		}
		for _, err := range []error{stop(), end()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// Versions of earlier releases have no digest.
func TestAModifiedProposalIsRejected(t *testing.T) {
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
		if got, _ := received(seen); len(got) == 0 || got[len(got)-1] != "1 x, keep [1]" {
			t.Errorf("without a digest: %q", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
