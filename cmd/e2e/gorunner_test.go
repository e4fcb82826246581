package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// goRunner is the hooks of gohooks.
type goRunner struct{}

// Load makes the handler of that name:
//
//	wait    allows after up to a tenth of a second
//	refuse  refuses after up to a tenth of a second
//	hold    allows once the file is there that the option "until" names
//	late    is not loaded before the file is there that the option "until" names
func (goRunner) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	until, _ := h.Options["until"].(string)
	switch h.Handler {
	case "wait":
		return waiting(schema.Allowed()), nil
	case "refuse":
		return waiting(schema.Denied(fmt.Sprintf("refused by the hook %q", h.Name))), nil
	case "hold":
		return workers.HandlerFunc(func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
			return schema.Allowed(), awaitFile(ctx, until)
		}), nil
	case "late":
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return waiting(schema.Allowed()), awaitFile(ctx, until)
	}
	return nil, fmt.Errorf("this program serves no handler %q", h.Handler)
}

// Close has nothing to end.
func (goRunner) Close() error { return nil }

// waiting is a handler that answers after a while, as hooks that query a service do.
func waiting(answer schema.Result) workers.Handler {
	return workers.HandlerFunc(func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
		t := time.NewTimer(rand.N(100 * time.Millisecond))
		defer t.Stop()
		select {
		case <-t.C:
			return answer, nil
		case <-ctx.Done():
			return schema.Result{}, context.Cause(ctx)
		}
	})
}

// awaitFile waits until a file exists.
func awaitFile(ctx context.Context, path string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
