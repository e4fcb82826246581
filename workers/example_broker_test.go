package workers_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// startBroker runs a broker with the hooks, as the command broker does.
func startBroker(hooks string) (ctx context.Context, url string, stop func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
	return ctx, b.URL(), func() {
		if err := b.Close(ctx); err != nil {
			log.Print(err)
		}
		cancel()
		os.RemoveAll(dir)
	}
}

// askAboutTransfer asks the fabric about a call of the tool transfer, as an agent does.
// It repeats the call while the worker starts.
func askAboutTransfer(ctx context.Context, url string, amount int) string {
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	for {
		v, err := c.Ask(ctx, &schema.Event{
			HookType: schema.PreToolUse, AgentID: "cashier", ToolName: "transfer",
			ToolInput: jsontext.Value(fmt.Sprintf(`{"amount":%d}`, amount)),
		})
		switch {
		case err != nil:
			return err.Error()
		case v.ExecutedHooks[0].Outcome == schema.NoWorker:
			continue
		case v.Reason != "":
			return fmt.Sprintf("%s: %s", v.Decision, v.Reason)
		}
		return string(v.Decision)
	}
}
