package chaos

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/freeze"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// probed matches the agents that are frozen, one at each broker. None of them is the
	// fleet's. probeEvery is how often each of them asks.
	probed     = "probe-*"
	probeEvery = 50 * time.Millisecond
	// frozenIn is how long a freeze may take until all brokers that run obey it, and operatorIn
	// how much longer an operator waits for the confirmation.
	frozenIn   = 30 * time.Second
	operatorIn = 12 * time.Second
)

// frozen is a freeze during a fault.
type frozen struct {
	brokers         int
	cut             int // the broker with the fault
	asked, answered time.Time
	healed          time.Time
	confirmed       int
	missing         []string
	probes          []freeze.Call // shim 0 is at broker 1
}

// probe asks through each broker as long as during runs.
func (r *cluster) probe(ctx context.Context, during func(context.Context) error) ([]freeze.Call, error) {
	var urls []string
	for n := range r.scenario.Fabric.Brokers {
		urls = append(urls, r.x.Field().Peer(n+1))
	}
	all, err := freeze.Connect(ctx, urls, strings.TrimSuffix(probed, "-*"), probeEvery)
	if err != nil {
		return nil, err
	}
	all.Begin(ctx)
	err = during(ctx)
	all.Close()
	return all.Take(), err
}

// freezes causes a step's fault. During the fault an operator freezes agents through
// another broker. The agents thaw when all brokers have the complete state again.
func (r *cluster) freezes(ctx context.Context, one *partLoad, s *step) error {
	f := &frozen{brokers: r.scenario.Fabric.Brokers, cut: number(s.Fault.Member)}
	probes, err := r.probe(ctx, func(ctx context.Context) error {
		g, together := errgroup.WithContext(ctx)
		g.Go(func() error { return r.cause(together, s) })
		g.Go(func() error {
			if !load.Pause(together, pause) {
				return nil
			}
			return r.freeze(together, schema.VerbFreeze, f)
		})
		err := g.Wait()
		f.healed = s.Until
		if err == nil {
			r.settle(ctx, s)
			load.Pause(ctx, pause)
		}
		return err
	})
	if err != nil || f.answered.IsZero() {
		return err
	}
	f.probes, one.freeze = probes, f
	return r.freeze(ctx, schema.VerbThaw, &frozen{brokers: f.brokers, cut: f.cut})
}

// freeze asks a broker without the fault to freeze or to thaw.
func (r *cluster) freeze(ctx context.Context, verb string, f *frozen) error {
	ctx, cancel := context.WithTimeout(ctx, frozenIn+operatorIn)
	defer cancel()
	nc, err := bus.Connect(ctx, bus.Options{URL: r.x.Field().Peer(f.cut%f.brokers + 1), Name: "loadtest operator"})
	if err != nil {
		return err
	}
	defer nc.Close()
	f.asked = time.Now()
	var a schema.FreezeAnswer
	for {
		err = roles.Insist(ctx, nc, roles.Verb{Verb: verb}, &schema.FreezeRequest{Agents: probed, By: "loadtest", Within: schema.Duration(frozenIn)}, &a)
		if err == nil || !load.Pause(ctx, lookAgain) {
			break
		}
		fmt.Fprintf(r.stage.Live, "%s after %v: %v\n", verb, time.Since(f.asked), err)
	}
	f.answered, f.confirmed, f.missing = time.Now(), len(a.Confirmed), a.Missing
	if err != nil {
		return fmt.Errorf("%s %s while %s is cut off: %w", verb, probed, field.Numbered(field.Broker, f.cut), err)
	}
	return nil
}

// probedBroker counts the calls of frozen agents through one broker, from the request to freeze on.
type probedBroker struct {
	// passed calls passed, the last one so long after the request. confirmed of them started
	// after the confirmation, or ended so long after it that their answer cannot have been on
	// its way already.
	passed    int
	last      time.Duration
	confirmed int
	// unanswered calls got no answer. refused were refused, the first one so long after the
	// request.
	unanswered, refused int
	first               time.Duration
}

// through counts the calls through one broker.
func (f *frozen) through(broker int) (t probedBroker) {
	for _, p := range f.probes {
		if p.Shim != broker-1 || p.Asked.Before(f.asked) {
			continue
		}
		after := p.Answered.Sub(f.asked)
		switch {
		case p.Err != nil:
			t.unanswered++
		case p.Refused:
			t.refused++
			if t.first == 0 || after < t.first {
				t.first = after
			}
		default:
			t.passed++
			t.last = max(t.last, after)
			if p.Asked.After(f.answered) || p.Answered.Sub(f.answered) > slack {
				t.confirmed++
			}
		}
	}
	return t
}

// table shows the calls of frozen agents, by their broker.
func (f *frozen) table() report.Table {
	missing := strings.Join(f.missing, ", ")
	if missing == "" {
		missing = "none"
	}
	seconds := func(d time.Duration) string { return report.Value(d.Seconds(), "s") }
	t := report.Table{
		Title:   "A freeze while a broker is cut off",
		Columns: []string{"broker", "passed", "last one, after the request", "passed after the confirmation", "no answer", "refused", "first one, after the request"},
		Note: fmt.Sprintf("The freeze was confirmed %s after its request, by %d brokers; missing: %s. The cut ended %s after the request. "+
			"A broker that is cut off uses its last state until its lease ends. No freeze is confirmed before that.",
			seconds(f.answered.Sub(f.asked)), f.confirmed, missing, seconds(f.healed.Sub(f.asked))),
	}
	for n := range f.brokers {
		of, name := f.through(n+1), field.Numbered(field.Broker, n+1)
		if n+1 == f.cut {
			name += ", cut off"
		}
		t.Rows = append(t.Rows, []string{
			name, strconv.Itoa(of.passed), seconds(of.last), strconv.Itoa(of.confirmed), strconv.Itoa(of.unanswered), strconv.Itoa(of.refused), seconds(of.first),
		})
	}
	return t
}

// judge compares the calls with the freeze. In the end every broker must have obeyed it, unless
// the run ended early.
func (f *frozen) judge(c *report.Check, early bool) {
	if len(f.missing) > 0 {
		c.Fail(fmt.Sprintf("it was not confirmed within %v: %s did not confirm it, and may still let calls pass", frozenIn, strings.Join(f.missing, ", ")))
	}
	for n := range f.brokers {
		of := f.through(n + 1)
		if of.confirmed > 0 {
			c.Fail(fmt.Sprintf("%d through broker %d", of.confirmed, n+1))
		}
		if of.refused == 0 && !early {
			c.Fail(fmt.Sprintf("broker %d never refused a call", n+1))
		}
	}
}
