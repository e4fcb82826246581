package freeze

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// operator is who freezes.
const operator = "loadtest freeze"

// hooks are none: a call costs as little as it can, and whoever passes was refused by
// nobody.
const hooks = "presets: []\nhooks: {}\n"

// Options say who asks, and how often agents are frozen.
type Options struct {
	// Shims is how many ask, and Every how often each of them does.
	Shims int
	Every time.Duration
	// Brokers is how many processes answer them.
	Brokers int
	// Repetitions is how often all are frozen and thawed; fewer than one is one.
	Repetitions int
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew says how processes are started.
	Crew *proc.Crew
	// Progress takes a line now and then; it must not be nil.
	Progress io.Writer
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options {
	return Options{Shims: 1000, Every: 500 * time.Millisecond, Brokers: 2, Repetitions: 6}
}

// Quick are the options of a run that only looks whether everything works.
func Quick() Options {
	return Options{Shims: 100, Every: 500 * time.Millisecond, Brokers: 2, Repetitions: 1}
}

// Check says what is wrong with the options.
func (o *Options) Check() error {
	const most = 10_000
	switch {
	case o.Shims < 1 || o.Shims > most:
		return fmt.Errorf("--shims is %d; write 1 to %d", o.Shims, most)
	case o.Brokers < 1:
		return errors.New("--brokers is below 1; write at least 1")
	case o.Every < time.Millisecond:
		return fmt.Errorf("--every is %v; write at least 1ms", o.Every)
	}
	return nil
}

// Run freezes all agents and thaws them, as often as it should.
func Run(ctx context.Context, o Options) (d *result.Document, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	f, err := field.Open(ctx, field.Config{
		Kind: field.Local, Brokers: o.Brokers, Server: true, Hooks: hooks,
	}, field.Site{Dir: o.Dir, Crew: o.Crew})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	nc, err := bus.Connect(ctx, bus.Options{URL: f.URL(operator), Name: operator})
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	all, err := connect(ctx, f.URL(operator), o.Shims, o.Every)
	if err != nil {
		return nil, err
	}
	defer all.close()
	all.begin(ctx)
	var samples []sample
	for n := range max(o.Repetitions, 1) {
		got, err := once(ctx, nc, all)
		if err != nil {
			return nil, err
		}
		samples = append(samples, got)
		fmt.Fprintf(o.Progress, "frozen and thawed: %d of %d\n", n+1, max(o.Repetitions, 1))
	}
	return document(&o, samples), nil
}

// A change is a freeze, or a thaw, and what was seen of it.
type change struct {
	// began is just before it was asked for, and done when all brokers had said that
	// they go by it; brokers is how many those were.
	began, done time.Time
	brokers     int
	// calls are those that were answered from before it began until each shim had one
	// that it had reached.
	calls []call
}

// A sample is one freeze and the thaw after it.
type sample struct{ freeze, thaw change }

// once freezes all and thaws them, each when all shims have been asking for a while.
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

// do freezes or thaws, and waits until each shim had a call that was asked after that.
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
