package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// WaitHandler is the name under which a waiter serves its one handler.
const WaitHandler = "wait"

// WaiterConfig is what a worker whose hooks wait is to be started with.
type WaiterConfig struct {
	// NATS is the broker's server.
	NATS string `json:"nats"`
	// Pool is the pool it serves.
	Pool string `json:"pool"`
	// Wait is how long each hook waits before it allows.
	Wait schema.Duration `json:"wait"`
	// Slots is how many of them run at once: the worker's own bound.
	Slots int `json:"slots"`
}

// startWaiter runs a worker of somebody's own: a Go program that serves one
// handler on a connection of its own.
func startWaiter(ctx context.Context, c WaiterConfig) (*proc.Role, error) {
	w := workers.New(workers.Options{
		Name: uuid.NewString(), Pools: []string{c.Pool}, Capacity: c.Slots,
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: waiting(c.Wait.Std())},
	})
	nc, err := connect(c.NATS, workers.ConnectionPrefix+w.Name())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(ctx, nc, w) }()
	return &proc.Role{Do: settle, Close: func() error {
		stop()
		err := <-ended
		nc.Close()
		return err
	}}, nil
}

// waiting is the runner of the one handler there is: it waits so long.
type waiting time.Duration

// Load knows one name.
func (w waiting) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	if h.Handler != WaitHandler {
		return nil, fmt.Errorf("this program serves only the handler %q, not %q", WaitHandler, h.Handler)
	}
	return waits(time.Duration(w)), nil
}

// Close has nothing to end.
func (waiting) Close() error { return nil }

// waits is a handler that waits and allows.
func waits(d time.Duration) workers.HandlerFunc {
	return func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return schema.Allowed(), nil
		case <-ctx.Done():
			return schema.Result{}, context.Cause(ctx)
		}
	}
}
