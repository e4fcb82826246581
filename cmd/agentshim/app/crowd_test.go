package app

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
)

// serveAt serves a fabric at an address, until stop is called.
func serveAt(t *testing.T, f *bustest.Fabric, address string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := server.Start(ctx, server.Options{Listen: address, Dir: t.TempDir(), SyncInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect(ctx, bus.Options{Name: "fabric"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Serve(ctx, nc); err != nil {
		t.Fatal(err)
	}
	return s.ClientURL(), func() {
		nc.Close()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestACrowdOfShimsSharesAStateFolder runs a hundred shims on one state folder, first
// without a fabric, then with one. Without a fabric each shim denies the guarded call.
// Afterwards the shims hand in each of these calls.
func TestACrowdOfShimsSharesAStateFolder(t *testing.T) {
	const crowd = 100
	f := bustest.NewFabric("f-crowd")
	f.Version, f.Signer = 7, bustest.Signer(1)
	f.Guards = []schema.PolicyHook{{Hook: "guard", Event: schema.PreToolUse, Guards: true}}
	url, stop := serveAt(t, f, "127.0.0.1:0")
	state := t.TempDir()
	run := func(n int) (answers []string) {
		answers = make([]string, n)
		var all sync.WaitGroup
		slots := make(chan struct{}, 25)
		for i := range n {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c := exec.CommandContext(ctx, os.Args[0])
				c.Env = append(os.Environ(), natsVar+"="+url, stateVar+"="+state)
				c.Stdin = strings.NewReader(`{"hook_type":"PreToolUse","agent_id":"a","tool_name":"Bash"}`)
				var stderr bytes.Buffer
				c.Stderr = &stderr
				out, err := c.Output()
				if err != nil {
					t.Errorf("%v: %s", err, &stderr)
				}
				answers[i] = string(out)
			})
		}
		all.Wait()
		return answers
	}
	run(25) // all of them store the policy at once
	stop()
	for _, a := range run(crowd) {
		if !strings.Contains(a, `"decision":"deny"`) || !strings.Contains(a, "guard") {
			t.Fatalf("somebody said %s", a)
		}
	}
	_, stop = serveAt(t, f, strings.TrimPrefix(url, "nats://"))
	defer stop()
	for range 3 {
		for _, a := range run(25) {
			if !strings.Contains(a, `"decision":"continue"`) {
				t.Fatalf("somebody said %s", a)
			}
		}
	}
	f.Lock()
	defer f.Unlock()
	if len(f.Unjudged) != crowd {
		t.Errorf("%d calls of %d were handed in", len(f.Unjudged), crowd)
	}
}
