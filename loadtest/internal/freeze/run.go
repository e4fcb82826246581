package freeze

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// DefaultShims is the default number of shims, fewShims that of a quick run.
	DefaultShims = 1000
	fewShims     = 100
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
	all, err := Connect(ctx, slices.Repeat([]string{f.URL()}, shimsOf(&o)), "shim", every)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	all.Begin(ctx)
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
	calls []Call
}

// A sample is one freeze and the thaw after it.
type sample struct{ freeze, thaw change }

// once freezes all agents and thaws them, each after every shim has made a call.
func once(ctx context.Context, nc *nats.Conn, all *Shims) (s sample, err error) {
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
func do(ctx context.Context, nc *nats.Conn, all *Shims, verb string) (c change, err error) {
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

// The checks.
const (
	answered = "every call was answered"
	refused  = "no call passed that began after all brokers confirmed the freeze"
	passed   = "no call was refused that began after all brokers confirmed the thaw"
)

// times are those of a change, from its request.
type times struct {
	// first is when it affected the first answer, every when each shim had such an answer.
	// last is the last other answer to a call that began after the request; 0: none.
	first, every, last time.Duration
	confirmed          time.Duration
}

// timed returns the times of a change. Calls after a freeze are refused, after a thaw not.
func timed(c *change, refused bool) (t times) {
	seen := map[int]bool{}
	byAnswer := slices.SortedFunc(slices.Values(c.calls), func(a, b Call) int { return a.Answered.Compare(b.Answered) })
	for _, one := range byAnswer {
		after := one.Answered.Sub(c.began)
		switch {
		case one.Err != nil || after < 0:
		case one.Refused != refused && one.Asked.After(c.began):
			t.last = after
		case one.Refused == refused && !seen[one.Shim]:
			if seen[one.Shim] = true; t.first == 0 {
				t.first = after
			}
			t.every = after
		}
	}
	t.confirmed = c.done.Sub(c.began)
	return t
}

func document(shims int, samples []sample) *report.Document {
	d := &report.Document{Notes: notes(shims, samples)}
	for _, name := range []string{answered, refused, passed} {
		d.Check(name).Least = 1
	}
	var freezes, thaws []times
	for i := range samples {
		s := &samples[i]
		freezes, thaws = append(freezes, timed(&s.freeze, true)), append(thaws, timed(&s.thaw, false))
		judge(d, refused, &s.freeze, true)
		judge(d, passed, &s.thaw, false)
	}
	add := func(name string, of []times, budget time.Duration, pick func(times) time.Duration) {
		var all []float64
		for _, one := range of {
			all = append(all, pick(one).Seconds())
		}
		f := report.Figured(name, "s", report.Lower, all)
		if slices.Min(all) > 0 { // 0: no call was late
			if budget > 0 {
				f = f.Within(budget.Seconds())
			}
			d.Figures = append(d.Figures, f)
		}
	}
	first, each := func(t times) time.Duration { return t.first }, func(t times) time.Duration { return t.every }
	last, confirmed := func(t times) time.Duration { return t.last }, func(t times) time.Duration { return t.confirmed }
	add("the first call is refused", freezes, bench.FreezeAll, first)
	add("the last call passes", freezes, bench.FreezeAll, last)
	add(fmt.Sprintf("each of %d shims had a refused call, with one call per %v", shims, every), freezes, bench.FreezeAll, each)
	add("every broker has confirmed the freeze", freezes, bench.FreezeAll, confirmed)
	add("the last call is refused after a thaw", thaws, 0, last)
	add("every broker has confirmed the thaw", thaws, 0, confirmed)
	return d
}

func judge(d *report.Document, promise string, c *change, refused bool) {
	for _, one := range c.calls {
		d.Check(answered).Seen++
		if one.Err != nil {
			d.Check(answered).Fail(one.Err.Error())
			continue
		}
		if one.Asked.After(c.done) {
			if d.Check(promise).Seen++; one.Refused != refused {
				d.Check(promise).Fail(fmt.Sprintf("of shim %d, %v later", one.Shim, one.Asked.Sub(c.done)))
			}
		}
	}
}

// notes explain the figures.
func notes(shims int, samples []sample) []string {
	brokers := 0
	for _, s := range samples {
		brokers = max(brokers, s.freeze.brokers)
	}
	return []string{
		fmt.Sprintf("%d shims, each with its own connection, make one call per %v at evenly spread times. %d brokers answer on one NATS server that syncs every write.", shims, every, brokers),
		"Times start just before the operator sends its request. Shims and operator share one process and one clock.",
		"A shim learns of a freeze from the answer to its next call. So the time until each had a refused call is at least the interval between two calls.",
	}
}
