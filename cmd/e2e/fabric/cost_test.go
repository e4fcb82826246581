package fabric_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/cmd/internal/runners"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// BenchmarkCall is a whole call, from the agent's side to its verdict, through a
// broker and, for hooks of a pool of its own, a worker behind a socket: what all of
// them allocate together, and, by a profile, where. How fast it is in processes of
// their own, loadtest says.
func BenchmarkCall(b *testing.B) {
	c := benched(b)
	for _, tool := range []string{"nothing", "default-1", "default-8", "remote-1", "remote-8"} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/callers=%d", tool, callers), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(callers)
				if callers == 1 {
					for b.Loop() {
						benchAsk(b, c, tool)
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						benchAsk(b, c, tool)
					}
				})
			})
		}
	}
}

func benchAsk(b *testing.B, c *client.Client, tool string) {
	if v := benchVerdict(b, c, tool); tool != "nothing" && v.Decision != schema.Allow {
		b.Fatalf("the hooks for %s decided %q: %q", tool, v.Decision, v.HookErrors)
	}
}

func benchVerdict(b *testing.B, c *client.Client, tool string) *schema.Verdict {
	e := &schema.Event{
		HookType: schema.PreToolUse, AgentID: "load", SessionID: "0d4c3f1e-load", Runtime: "generic", ToolName: tool, Timestamp: time.Now().UTC(),
		ToolInput: []byte(`{"command":"make test 2>&1 | tail -n 40 # ` + strings.Repeat("x", 700) + `","timeout":120}`),
	}
	v, err := c.Ask(b.Context(), e)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// benched is a client of a broker that listens on loopback, beside a worker there.
func benched(b *testing.B) *client.Client {
	b.Helper()
	dir, log := b.TempDir(), slog.New(slog.DiscardHandler)
	yaml := "presets: []\nhooks:\n  PreToolUse:\n"
	for _, pool := range []string{"default", "remote"} {
		for _, n := range []int{1, 8} {
			for i := range n {
				yaml += fmt.Sprintf("    - {name: %s-%d-%d, matcher: %s-%d, type: builtin, handler: allow, pool: %s}\n", pool, n, i, pool, n, pool)
			}
		}
	}
	config := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		b.Fatal(err)
	}
	broker, err := app.New(b.Context(), app.Options{Config: config, Data: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", Sync: time.Minute, Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := broker.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	benchWorker(b, broker.URL(), log)
	c, err := client.Connect(b.Context(), client.Options{URL: broker.URL(), Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	for end := time.Now().Add(stopTime); benchVerdict(b, c, "remote-1").Decision != schema.Allow; {
		if time.Now().After(end) {
			b.Fatal("the worker never came")
		}
	}
	return c
}

// benchWorker serves the pool "remote" as a hookworker does.
func benchWorker(b *testing.B, url string, log *slog.Logger) {
	b.Helper()
	nc, err := bus.Connect(b.Context(), bus.Options{URL: url, Name: workers.ConnectionPrefix + "w"})
	if err != nil {
		b.Fatal(err)
	}
	w := workers.New(workers.Options{
		Name: "w", Pools: []string{"remote"}, Inline: []schema.Kind{schema.Builtin},
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: runners.Builtins(builtin.Catalog(log))}, Logger: log,
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- workers.Run(ctx, nc, w) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		nc.Close()
	})
}
