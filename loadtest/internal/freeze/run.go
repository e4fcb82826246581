package freeze

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// operator is the name of the connection that freezes.
const operator = "loadtest freeze"

// hooks has no hook: only a freeze refuses calls.
const hooks = "presets: []\nhooks: {}\n"

const (
	// Shims is the default number of shims, fewShims that of a quick run.
	Shims    = 1000
	fewShims = 100
	// every is the interval between two calls of a shim.
	every = 500 * time.Millisecond
	// brokers is the number of brokers.
	brokers = 2
)

// Check returns an error for an invalid number of shims.
func Check(o *bench.Options) error {
	const most = 10_000
	if n := shimsOf(o); n < 1 || n > most {
		return fmt.Errorf("--shims is %d; write 1 to %d", n, most)
	}
	return nil
}

// shimsOf returns the number of shims. Only a quick run has none in its options.
func shimsOf(o *bench.Options) int {
	if o.Quick && o.Shims == 0 {
		return fewShims
	}
	return o.Shims
}

// Run freezes all agents and thaws them, several times.
func Run(ctx context.Context, o bench.Options) (d *report.Document, err error) {
	f, err := field.Open(ctx, field.Config{Kind: field.Local, Dir: o.Dir, Crew: o.Crew, Brokers: brokers, Server: true, Hooks: hooks})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	nc, err := bus.Connect(ctx, bus.Options{URL: f.URL(), Name: operator})
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	all, err := connect(ctx, f.URL(), shimsOf(&o), every)
	if err != nil {
		return nil, err
	}
	defer all.close()
	all.begin(ctx)
	var samples []sample
	for n := range o.Times(6, 1) {
		got, err := once(ctx, nc, all)
		if err != nil {
			return nil, err
		}
		samples = append(samples, got)
		o.Say("frozen and thawed: %d of %d", n+1, o.Times(6, 1))
	}
	return document(shimsOf(&o), samples), nil
}

// A change is a freeze or a thaw, and the calls during it.
type change struct {
	// began is just before the request, done when all brokers had confirmed it; brokers is
	// their number.
	began, done time.Time
	brokers     int
	// calls are those that were answered from before the request until each shim had one
	// that the change affected.
	calls []call
}

// A sample is one freeze and the thaw after it.
type sample struct{ freeze, thaw change }

// once freezes all agents and thaws them, each after every shim has made a call.
func once(ctx context.Context, nc *nats.Conn, all *shims) (s sample, err error) {
	if _, err := all.all(ctx, false, time.Now()); err != nil {
		return s, err
	}
	if s.freeze, err = do(ctx, nc, all, schema.VerbFreeze); err != nil {
		return s, err
	}
	s.thaw, err = do(ctx, nc, all, schema.VerbThaw)
	return s, err
}

// do freezes or thaws, and waits until each shim has made a call after that.
func do(ctx context.Context, nc *nats.Conn, all *shims, verb string) (c change, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	c.began = time.Now()
	var answer schema.FreezeAnswer
	err = roles.Control(ctx, nc, roles.Verb{Verb: verb}, &schema.FreezeRequest{Agents: schema.AllAgents, By: operator}, &answer)
	c.done, c.brokers = time.Now(), len(answer.Confirmed)
	switch {
	case err != nil:
		return c, fmt.Errorf("%s: %w", verb, err)
	case !answer.Changed || len(answer.Missing) > 0 || answer.Trouble != "":
		return c, fmt.Errorf("%s: changed %v, missing brokers %v, %s", verb, answer.Changed, answer.Missing, answer.Trouble)
	}
	c.calls, err = all.all(ctx, verb == schema.VerbFreeze, c.done)
	return c, err
}
