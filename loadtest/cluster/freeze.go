package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// probed is the pattern of the agents that are frozen: none of the fleet's.
	probed = "probe-*"
	// probeEvery is how often each of them asks, and probeIn how long one waits.
	probeEvery = 50 * time.Millisecond
	probeIn    = 5 * time.Second
	// frozenIn is how long a freeze may take until all brokers that live go by it.
	frozenIn = 30 * time.Second
)

// A probe is one call of an agent that is frozen.
type probe struct {
	broker          int
	asked, answered time.Time
	passed, refused bool // neither: there was no answer
}

// frozen is a freeze while a broker was cut off.
type frozen struct {
	cut             int // the broker
	asked, answered time.Time
	healed          time.Time
	confirmed       int
	missing         []string
	probes          []probe
}

// prober asks by way of each broker.
type prober struct {
	clients []*client.Client
	work    sync.WaitGroup
	stop    context.CancelFunc

	mu     sync.Mutex // guards probes
	probes []probe
}

func (r *run) probe(ctx context.Context) (*prober, error) {
	p := &prober{stop: func() {}}
	for n := range Brokers {
		c, err := client.Connect(ctx, client.Options{URL: r.x.Field().Peer(n + 1), Name: "loadtest probe"})
		if err != nil {
			p.close()
			return nil, err
		}
		p.clients = append(p.clients, c)
	}
	ctx, p.stop = context.WithCancel(ctx)
	for i, c := range p.clients {
		p.work.Go(func() {
			for measure.Pause(ctx, probeEvery) {
				p.work.Go(func() { p.ask(ctx, c, i+1) })
			}
		})
	}
	return p, nil
}

func (p *prober) ask(ctx context.Context, c *client.Client, broker int) {
	within, cancel := context.WithTimeout(ctx, probeIn)
	defer cancel()
	one := probe{broker: broker, asked: time.Now()}
	v, err := c.Ask(within, &schema.Event{
		HookType: schema.PreToolUse, AgentID: fmt.Sprint("probe-", broker), SessionID: "freeze", ToolName: "nobodys", ToolInput: []byte(`{}`),
	})
	one.answered = time.Now()
	if ctx.Err() != nil {
		return // it is over
	}
	one.refused = err == nil && v.Frozen && v.Decision == schema.Deny
	one.passed = err == nil && v.Decision != schema.Deny
	p.mu.Lock()
	defer p.mu.Unlock()
	p.probes = append(p.probes, one)
}

func (p *prober) close() {
	p.stop()
	p.work.Wait()
	for _, c := range p.clients {
		c.Close()
	}
}

// freezes cuts the leader off, has somebody freeze agents elsewhere meanwhile, and lets
// it come back.
func (r *run) freezes(ctx context.Context, one *shown) error {
	s, err := r.start(ctx, faults.Fault{Kind: faults.Part, For: schema.Duration(behindFor)})
	if err != nil {
		return err
	}
	p, err := r.probe(ctx)
	if err != nil {
		return err
	}
	f := &frozen{cut: number(s.Fault.Member)}
	g, together := errgroup.WithContext(ctx)
	g.Go(func() error { return r.do(together, &s) })
	g.Go(func() error {
		if !measure.Pause(together, calm) {
			return nil
		}
		return r.freeze(together, schema.VerbFreeze, f)
	})
	err = g.Wait()
	f.healed = s.Until
	if err == nil {
		r.settle(ctx, &s)
	}
	one.steps = append(one.steps, s)
	measure.Pause(ctx, calm)
	p.close()
	if err != nil || f.answered.IsZero() {
		return err
	}
	f.probes, one.freeze = p.probes, f
	return r.freeze(ctx, schema.VerbThaw, new(frozen))
}

// freeze asks a broker that is not cut off to freeze, or to thaw.
func (r *run) freeze(ctx context.Context, verb string, f *frozen) error {
	ctx, cancel := context.WithTimeout(ctx, frozenIn+answerIn)
	defer cancel()
	nc, err := bus.Connect(ctx, bus.Options{URL: r.x.Field().Peer(f.cut%Brokers + 1), Name: "loadtest operator"})
	if err != nil {
		return err
	}
	defer nc.Close()
	f.asked = time.Now()
	var a schema.FreezeAnswer
	for {
		err = roles.Insist(ctx, nc, roles.Verb{Verb: verb}, &schema.FreezeRequest{Agents: probed, By: "loadtest", Within: schema.Duration(frozenIn)}, &a)
		if err == nil || !measure.Pause(ctx, lookAgain) {
			break
		}
		fmt.Fprintf(r.Progress, "%s after %v: %v\n", verb, time.Since(f.asked), err)
	}
	f.answered, f.confirmed, f.missing = time.Now(), len(a.Confirmed), a.Missing
	if err != nil {
		return fmt.Errorf("%s %s while %s is cut off: %w", verb, probed, field.Numbered(field.Broker, f.cut), err)
	}
	return nil
}
