package client_test

import (
	"context"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
)

// connectToBroker starts a broker with the hooks, as the command broker does, and connects a
// client to it. In your program, the broker runs elsewhere: call client.Connect with its URL.
func connectToBroker(hooks string) (ctx context.Context, c *client.Client, stop func()) {
	ctx, c, _, stop = connectAndLocate(hooks)
	return ctx, c, stop
}

// connectAndLocate also returns the broker's URL, for requests of an operator.
func connectAndLocate(hooks string) (ctx context.Context, c *client.Client, url string, stop func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	dir, err := os.MkdirTemp("", "hookfabric-example-")
	if err != nil {
		log.Fatal(err)
	}
	config := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(config, []byte(hooks), 0o600); err != nil {
		log.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	b, err := app.New(ctx, app.Options{Config: config, Data: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	c, err = client.Connect(ctx, client.Options{URL: b.URL(), Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	return ctx, c, b.URL(), func() {
		c.Close()
		if err := b.Close(ctx); err != nil {
			log.Print(err)
		}
		cancel()
		os.RemoveAll(dir)
	}
}
