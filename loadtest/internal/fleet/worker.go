package fleet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// Worker is the role of a worker with the fleet's hooks.
const Worker = "fleet-worker"

// WorkerConfig configures such a worker.
type WorkerConfig struct {
	NATS  string `json:"nats"`
	Creds string `json:"creds,omitzero"`
	// Slots is how many batches it runs at once.
	Slots int `json:"slots"`
}

// startWorker runs a custom worker with hooks in Go.
func startWorker(ctx context.Context, c WorkerConfig) (*proc.Role, error) {
	one := func(h workers.HandlerFunc) func(string) workers.HandlerFunc {
		return func(string) workers.HandlerFunc { return h }
	}
	runner := roles.Handlers{guardHandler: one(guards), stampHandler: stamps, slowHandler: one(slows), observeHandler: one(observes)}
	return roles.Work(ctx, bus.Options{URL: c.NATS, Creds: c.Creds}, workers.Options{
		Pools: []string{pool, further}, Capacity: c.Slots, Runners: map[schema.Kind]workers.Runner{schema.Builtin: runner},
	}, roles.Settle)
}

// Whole is the role of a fabric that is one process: a broker with its server, and a
// worker with the fleet's hooks.
const Whole = "fleet-whole"

// WholeConfig configures such a fabric.
type WholeConfig struct {
	Broker roles.BrokerConfig `json:"broker"`
	// Slots is how many batches its worker runs at once.
	Slots int `json:"slots"`
}

func startWhole(ctx context.Context, c WholeConfig) (*proc.Role, error) {
	b, err := roles.StartBroker(ctx, c.Broker)
	if err != nil {
		return nil, err
	}
	at, ok := b.Facts.(roles.Address)
	if !ok {
		return nil, errors.Join(fmt.Errorf("unexpected state of the broker: %v", b.Facts), b.Close())
	}
	w, err := startWorker(ctx, WorkerConfig{NATS: at.URL, Slots: c.Slots})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &proc.Role{Facts: b.Facts, Do: b.Do, Close: func() error { return errors.Join(w.Close(), b.Close()) }}, nil
}

// guards decides according to the nonce, which it returns as the reason.
func guards(_ context.Context, e *schema.Event) (schema.Result, error) {
	_, m, err := marked(e.ToolInput)
	if err != nil {
		return schema.Result{}, err
	}
	deny, err := m.denies()
	if err != nil {
		return schema.Result{}, err
	}
	r := schema.Allowed()
	if deny {
		r.Decision = schema.Deny
	}
	r.Reason = m.Nonce
	return r, nil
}

// stamps returns a handler that adds the hook's stamp to the input.
func stamps(hook string) workers.HandlerFunc {
	return func(_ context.Context, e *schema.Event) (schema.Result, error) {
		input, err := stamped(e.ToolInput, hook)
		if err != nil {
			return schema.Result{}, err
		}
		return schema.Rewritten(input), nil
	}
}

// slowest limits how long the slow hook takes. The nonce determines how long.
const slowest = 100 * time.Millisecond

func slows(ctx context.Context, e *schema.Event) (schema.Result, error) {
	_, m, err := marked(e.ToolInput)
	if err != nil {
		return schema.Result{}, err
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.Nonce))
	if !load.Pause(ctx, time.Duration(h.Sum32())%slowest) {
		return schema.Result{}, context.Cause(ctx)
	}
	r := schema.Allowed()
	r.Reason = m.Nonce
	return r, nil
}

// observes checks that hooks let the call pass, with the input that they left, and that its
// output is the tool's.
func observes(_ context.Context, e *schema.Event) (schema.Result, error) {
	if err := observed(e); err != nil {
		return schema.Denied(err.Error()), nil
	}
	return schema.Result{}, nil
}

func observed(e *schema.Event) error {
	_, m, err := marked(e.ToolInput)
	if err != nil {
		return err
	}
	if deny, err := m.denies(); err != nil || deny {
		return errors.Join(errors.New("the tool ran although the guard denies it"), err)
	}
	var output struct {
		Nonce string `json:"nonce"`
	}
	if err := schema.Unmarshal(e.ToolOutput, &output); err != nil {
		return fmt.Errorf("the tool's output: %w", err)
	}
	sum, err := checksum(e.ToolOutput)
	if err != nil {
		return err
	}
	if output.Nonce != m.Nonce || sum != m.Output {
		return fmt.Errorf("the output is that of %s and has the checksum %s, want that of %s with %s", output.Nonce, sum, m.Nonce, m.Output)
	}
	return unstamped(e.ToolInput)
}
