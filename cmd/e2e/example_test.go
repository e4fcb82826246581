package e2e_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// The README and workers/README.md show this configuration and the functions below it, as they are here.
const transferHooks = `
hooks:
  PreToolUse:
    - {name: transfer-limit, matcher: transfer, type: builtin, handler: limit, pool: payments, fail_closed: true}
`

// serveLimits runs the hooks of the pool "payments" until ctx ends.
func serveLimits(ctx context.Context, url string) error {
	nc, err := bus.Connect(ctx, bus.Options{URL: url, Name: workers.ConnectionPrefix + "limits-1"})
	if err != nil {
		return err
	}
	defer nc.Close()
	return workers.Serve(ctx, nc, "payments", map[string]workers.Handler{
		"limit": workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
			var input struct {
				Amount float64 `json:"amount"`
			}
			if err := schema.Unmarshal(e.ToolInput, &input); err != nil {
				return schema.Result{}, err // no answer: the hook's failure policy decides
			}
			if input.Amount > 100 {
				return schema.Asked("a person has to agree to more than 100"), nil
			}
			return schema.Result{}, nil // no opinion
		}),
	})
}

// askAboutTransfer asks before a tool is used. Programs with many calls keep
// one client and share it: it is safe for many goroutines.
func askAboutTransfer(ctx context.Context, url string, amount int) (*schema.Verdict, error) {
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Ask(ctx, &schema.Event{
		HookType:  schema.PreToolUse,
		AgentID:   "cashier",
		ToolName:  "transfer",
		ToolInput: jsontext.Value(fmt.Sprintf(`{"amount":%d}`, amount)),
	})
}

// A program with hooks of its own, and one that asks about a tool call.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, stop := startExampleBroker(ctx, transferHooks)
	defer stop()

	// A program that needs to know when a worker is ready waits for its first heartbeat.
	nc, err := nats.Connect(url)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	beats, err := nc.SubscribeSync(bus.BeatsWildcard)
	if err != nil {
		log.Fatal(err)
	}
	if err := nc.FlushWithContext(ctx); err != nil {
		log.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serveLimits(ctx, url) }()
	for pool := ""; pool != "payments"; {
		beat, err := beats.NextMsgWithContext(ctx)
		if err != nil {
			log.Fatal(err)
		}
		pool, _, _ = bus.ParseBeatSubject(beat.Subject)
	}

	for _, amount := range []int{20, 2000} {
		v, err := askAboutTransfer(ctx, url, amount)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s %q\n", amount, v.Decision, v.Reason)
	}
	cancel()
	if err := <-served; err != nil {
		log.Fatal(err)
	}
	// Output:
	// 20: continue ""
	// 2000: ask "a person has to agree to more than 100"
}

// startExampleBroker runs a broker as `broker` does, on a free port.
func startExampleBroker(ctx context.Context, hooks string) (url string, stop func()) {
	dir, err := os.MkdirTemp("", "hookfabric-example-")
	if err != nil {
		log.Fatal(err)
	}
	config := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(config, []byte(hooks), 0o600); err != nil {
		log.Fatal(err)
	}
	b, err := app.New(ctx, app.Options{
		Config: config, Data: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	return b.URL(), func() {
		if err := b.Close(context.WithoutCancel(ctx)); err != nil {
			log.Print(err)
		}
		os.RemoveAll(dir)
	}
}
