package roles

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// WaitHandler is the name of a waiter's only handler.
const WaitHandler = "wait"

// WaiterConfig configures a worker whose hooks wait.
type WaiterConfig struct {
	// NATS is the URL of the broker's server.
	NATS string `json:"nats"`
	// Pool is the pool it serves.
	Pool string `json:"pool"`
	// Wait is how long each hook waits before it allows.
	Wait schema.Duration `json:"wait"`
	// Burn makes it use that much processor time instead.
	Burn bool `json:"burn,omitzero"`
	// Slots is how many of them run at once: the worker's own limit.
	Slots int `json:"slots"`
}

// startWaiter runs a custom worker: a Go program that serves one handler on its own
// connection.
func startWaiter(ctx context.Context, c WaiterConfig) (*proc.Role, error) {
	w := workers.New(workers.Options{
		Name: uuid.NewString(), Pools: []string{c.Pool}, Capacity: c.Slots,
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: waiting{c.Wait.Std(), c.Burn}},
	})
	nc, err := connect(c.NATS, workers.ConnectionPrefix+w.Name())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(ctx, nc, w) }()
	return &proc.Role{Do: Settle, Close: func() error {
		stop()
		err := <-ended
		nc.Close()
		return err
	}}, nil
}

// waiting is the runner of that handler. It waits, or uses processor time.
type waiting struct {
	long time.Duration
	burn bool
}

// Load returns the handler if h names it.
func (w waiting) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	switch {
	case h.Handler != WaitHandler:
		return nil, fmt.Errorf("this program serves only the handler %q, not %q", WaitHandler, h.Handler)
	case w.burn:
		return burns(w.long), nil
	}
	return waits(w.long), nil
}

// Close does nothing.
func (waiting) Close() error { return nil }

// waits returns a handler that waits and allows.
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

// burns returns a handler that uses processor time and allows. d is the time of its own
// thread, not of the clock: with fewer processors than handlers each takes longer.
func burns(d time.Duration) workers.HandlerFunc {
	return func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began, err := threadTime()
		sum := make([]byte, 16<<10)
		for used := began; err == nil && used-began < d && ctx.Err() == nil; used, err = threadTime() {
			h := sha256.Sum256(sum)
			copy(sum, h[:])
		}
		return schema.Allowed(), cmp.Or(err, context.Cause(ctx))
	}
}

// ofThread is RUSAGE_THREAD, which package syscall does not name.
const ofThread = 1

// threadTime returns the processor time of this thread.
func threadTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(ofThread, &u); err != nil {
		return 0, fmt.Errorf("asking for a thread's CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
