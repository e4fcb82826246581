package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
)

// TestARevocationCutsOffOpenConnections reports how soon: the broker looks twice a second.
func TestARevocationCutsOffOpenConnections(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	creds := func(args ...string) {
		t.Helper()
		p := start(t, "broker", append(append([]string{"creds"}, args...), "--data", data)...)
		if code, err := p.wait(); err != nil || code != 0 {
			t.Fatalf("creds %q ended with %d, %v:\n%s", args, code, err, p.said)
		}
	}
	creds("init")
	b := startBroker(t, "--data", data)
	const times = 10
	var took []time.Duration
	for i := range times {
		name := fmt.Sprint("agent-", i)
		file := filepath.Join(t.TempDir(), name+".creds")
		creds("add", "agent", name, "--out", file)
		states := make(chan bool, 10)
		var nc interface{ Close() }
		if err := eventually("the broker lets the agent in", func() bool {
			c, err := bus.Connect(t.Context(), bus.Options{URL: b.url, Creds: file, OnState: func(connected bool) { states <- connected }})
			nc = c
			return err == nil
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		if !<-states {
			t.Fatal("it was never connected")
		}
		creds("revoke", name)
		revoked := time.Now()
		select {
		case <-states:
			took = append(took, time.Since(revoked))
		case <-time.After(patience):
			t.Fatalf("%s is still connected %v after it was revoked", name, patience)
		}
	}
	slices.Sort(took)
	t.Logf("of %d revocations each cut an open connection off, after the command's end: the median after %v, the last after %v",
		times, took[times/2].Round(time.Millisecond), took[times-1].Round(time.Millisecond))
}
