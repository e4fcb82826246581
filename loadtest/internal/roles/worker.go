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

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// Work runs a custom worker on its own connection: a Go program that serves handlers. Without
// a name the worker has a random one. The role answers requests with do.
func Work(ctx context.Context, to bus.Options, o workers.Options, do func(context.Context, []byte) (any, error)) (*proc.Role, error) {
	o.Name = cmp.Or(o.Name, uuid.NewString())
	w := workers.New(o)
	to.Name, to.Retry = workers.ConnectionPrefix+w.Name(), true
	nc, err := bus.Connect(ctx, to)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(ctx, nc, w) }()
	return &proc.Role{Do: do, Close: func() error {
		stop()
		err := <-ended
		nc.Close()
		return err
	}}, nil
}

// Handlers is a runner with handlers by name.
type Handlers map[string]func(hook string) workers.HandlerFunc

// Load returns the handler that h names.
func (all Handlers) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	if of := all[h.Handler]; of != nil {
		return of(h.Name), nil
	}
	return nil, fmt.Errorf("this program has no handler %q", h.Handler)
}

// Close does nothing.
func (Handlers) Close() error { return nil }

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

// startWaiter runs a worker with one handler, which waits or uses processor time.
func startWaiter(ctx context.Context, c WaiterConfig) (*proc.Role, error) {
	handler := waits(c.Wait.Std())
	if c.Burn {
		handler = burns(c.Wait.Std())
	}
	runner := Handlers{WaitHandler: func(string) workers.HandlerFunc { return handler }}
	return Work(ctx, bus.Options{URL: c.NATS}, workers.Options{
		Pools: []string{c.Pool}, Capacity: c.Slots, Runners: map[schema.Kind]workers.Runner{schema.Builtin: runner},
	}, Settle)
}

// waits returns a handler that waits and allows.
func waits(d time.Duration) workers.HandlerFunc {
	return func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
		if !load.Pause(ctx, d) {
			return schema.Result{}, context.Cause(ctx)
		}
		return schema.Allowed(), nil
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

// threadTime returns the processor time of this thread.
func threadTime() (time.Duration, error) {
	const ofThread = 1 // RUSAGE_THREAD, which package syscall does not name
	var u syscall.Rusage
	if err := syscall.Getrusage(ofThread, &u); err != nil {
		return 0, fmt.Errorf("asking for a thread's CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
