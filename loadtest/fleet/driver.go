package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/audit"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// Driver is the role of a process that is some of the agents.
const Driver = "fleet-driver"

// afterwards is the kind of calls after a tool was used; those before are counted
// by their class.
const afterwards = "after the tool"

const (
	// cutEvery is how often a driver writes down what it counted; a kill takes as
	// much of it along.
	cutEvery = time.Second
	// sweepers is how many agents ask at once whether something waits for them.
	sweepers = 32
	// dialEvery is how often a driver looks for a broker that is not there.
	dialEvery = 50 * time.Millisecond
	// flushIn is how long a driver that is told to end takes to acknowledge, and
	// flushAgain how long it waits until it tries that again.
	flushIn    = 5 * time.Second
	flushAgain = 100 * time.Millisecond
	// settleIn is how long its calls may take then that are under way.
	settleIn = 3 * time.Second
)

// DriverConfig is what a driver is to be started with.
type DriverConfig struct {
	NATS  string `json:"nats"`
	Creds string `json:"creds,omitzero"`
	// Daemon is the state folder of the daemon that its agents ask; empty: they ask directly.
	Daemon string `json:"daemon,omitzero"`
	// Log is what is written of injections, Counts of calls, By this process.
	Log    string `json:"log"`
	Counts string `json:"counts"`
	By     string `json:"by"`
	// Tag is part of all agents' names.
	Tag string `json:"tag"`
	// First is the number of its first agent, Agents how many it has.
	First  int `json:"first"`
	Agents int `json:"agents"`
	// Connections is how many it makes.
	Connections int `json:"connections"`
	// Scenario says what the agents do.
	Scenario scenario.Scenario `json:"scenario"`
	// Curve is the load, which begins at Begin; what is due before Measured only
	// warms up. Both are in nanoseconds of this machine's clock.
	Curve    load.Curve `json:"curve"`
	Begin    int64      `json:"begin"`
	Measured int64      `json:"measured"`
	// Excused: calls and hooks without an answer are no fault of their own.
	Excused bool `json:"excused,omitzero"`
	// Again: another process did its work before, and what was due until now is past.
	Again bool `json:"again,omitzero"`
}

// A Line is what a driver counted since it wrote the last one.
type Line struct {
	By string `json:"by"`
	load.Cut
	found
	// Bare are requests that nobody judges.
	Bare load.Cut `json:"bare,omitzero"`
	// UnderWay is how many of its calls are not over.
	UnderWay int64 `json:"under_way,omitzero"`
	// Idle: all of its calls are over.
	Idle bool `json:"idle,omitzero"`
}

// agentName is the name of the agent of that number. The tag is another one in each
// session: what an earlier one left in an external fabric is for nobody in this one.
func agentName(tag string, number int) string { return fmt.Sprintf("agent-%s-%05d", tag, number) }

// driver is one process of agents.
type driver struct {
	DriverConfig
	mix      mix
	oracle   *oracle
	recorder *load.Recorder
	bare     *load.Recorder
	schedule *load.Schedule
	clients  []connection
	agents   []*agent
	wild     []*wild
	log      *audit.Journal
	counts   *audit.Journal
	// rest ends the beginning of calls, and stop all that is under way.
	rest, stop context.CancelFunc
	work       sync.WaitGroup
	// ending is set when no call begins any more.
	ending atomic.Bool

	mu      sync.Mutex // guards failure
	failure error
}

// startDriver has the agents call when it is their time.
func startDriver(ctx context.Context, c DriverConfig) (*proc.Role, error) {
	m, err := readMix()
	if err != nil {
		return nil, err
	}
	d := &driver{
		DriverConfig: c, mix: m, oracle: newOracle(c.Scenario.Deadline.Std(), c.Excused),
		recorder: load.NewRecorder(time.Unix(0, c.Measured)), bare: load.NewRecorder(time.Unix(0, c.Measured)),
		schedule: load.NewSchedule(int64(c.Scenario.InFlight), true),
	}
	if err := d.open(ctx); err != nil {
		return nil, errors.Join(err, d.end())
	}
	load.Prefer()
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	lag := new(load.Lag)
	d.oracle.lag = lag.Most
	d.work.Go(func() { lag.Run(ctx) })
	d.work.Go(func() { d.aside(ctx) })
	d.people(ctx)
	d.runaways(ctx)
	begins, rest := context.WithCancel(ctx)
	d.rest = rest
	d.work.Go(func() { d.schedule.Run(begins); d.stop() })
	d.work.Go(func() { d.write(ctx) })
	return &proc.Role{Do: d.sweep, Close: d.close}, nil
}

// open connects, and opens the logs.
func (d *driver) open(ctx context.Context) (err error) {
	if err := d.connect(ctx); err != nil {
		return err
	}
	if d.log, err = audit.OpenJournal(d.Log, d.By); err != nil {
		return err
	}
	d.counts, err = audit.OpenJournal(d.Counts, d.By)
	return err
}

// connect makes all connections, some at a time. A broker that is dead is waited for.
func (d *driver) connect(ctx context.Context) error {
	if d.Daemon != "" {
		d.clients = []connection{daemonIn(d.Daemon)}
		return nil
	}
	all := make([]*client.Client, d.Connections)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sweepers)
	for i := range all {
		g.Go(func() (err error) {
			all[i], err = d.dial(ctx, i)
			return err
		})
	}
	err := g.Wait()
	for _, c := range all {
		if c != nil {
			d.clients = append(d.clients, direct{c})
		}
	}
	return err
}

func (d *driver) dial(ctx context.Context, i int) (*client.Client, error) {
	for {
		c, err := client.Connect(ctx, client.Options{
			URL: d.NATS, Creds: d.Creds, Name: fmt.Sprintf("loadtest %s %d", d.By, i), Timeout: d.Scenario.Deadline.Std(),
		})
		if err == nil {
			return c, nil
		}
		if !d.Again || !measure.Pause(ctx, dialEvery) {
			return nil, err
		}
	}
}

// people makes the agents, each with its own moments.
func (d *driver) people(ctx context.Context) {
	begin := time.Unix(0, d.Begin)
	for i := range d.Agents {
		name := agentName(d.Tag, d.First+i)
		c := d.clients[i%len(d.clients)]
		a := &agent{
			driver: d, name: name, c: c, reads: c.recipient(name, d.log), begin: begin,
			random: rand.New(rand.NewPCG(d.Scenario.Seed, uint64(d.First+i))),
		}
		a.arrivals = load.NewArrivals(d.Curve, d.Scenario.Arrivals, d.Scenario.Agents, a.random)
		d.agents = append(d.agents, a)
		a.next(ctx, d.Again)
	}
}

// write writes down now and then what was counted.
func (d *driver) write(ctx context.Context) {
	tick := time.NewTicker(cutEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.cut()
		case <-ctx.Done():
			return
		}
	}
}

func (d *driver) cut() {
	idle := d.schedule.Left() == 0 // before what it did is taken
	d.noted(d.counts.Append(Line{By: d.By, Cut: d.recorder.Cut(), Bare: d.bare.Cut(), found: d.oracle.cut(), UnderWay: d.schedule.UnderWay(), Idle: idle}))
}

// noted takes the failure of a log: that makes the run worthless.
func (d *driver) noted(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
}

// Sweep asks a driver to have these agents look whether something waits for them.
type Sweep struct {
	Agents []string `json:"agents"`
}

// sweep has agents ask once more, about a tool that is nobody's business. These
// calls are not counted.
func (d *driver) sweep(ctx context.Context, line []byte) (any, error) {
	var s Sweep
	if err := schema.Unmarshal(line, &s); err != nil {
		return nil, fmt.Errorf("the request to sweep: %w", err)
	}
	wanted := map[string]bool{}
	for _, name := range s.Agents {
		wanted[name] = true
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sweepers)
	for _, a := range d.agents {
		if wanted[a.name] {
			g.Go(func() error { a.look(ctx); return nil })
		}
	}
	return nil, g.Wait()
}

// close ends all calls and writes down what is left. Those under way have a moment to
// end by themselves: after a load that was interrupted they are as good as any.
func (d *driver) close() error {
	d.ending.Store(true)
	d.rest()
	late := time.AfterFunc(settleIn, d.stop)
	d.work.Wait()
	late.Stop()
	d.flush()
	d.limits()
	d.cut()
	return errors.Join(d.failure, d.end())
}

// flush acknowledges what was handed over, again and again until there is no time left:
// a disk that is busy for a moment is no reason to give up. What is not acknowledged
// then is counted, and breaks no promise: it would come again.
func (d *driver) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), flushIn)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range d.clients {
		all.Go(func() {
			for err := c.Flush(ctx); err != nil; err = c.Flush(ctx) {
				if !measure.Pause(ctx, flushAgain) {
					d.oracle.unacknowledged()
					return
				}
			}
		})
	}
	all.Wait()
}

// end closes what is open.
func (d *driver) end() error {
	var errs []error
	for _, c := range d.clients {
		c.Close()
	}
	for _, j := range []*audit.Journal{d.log, d.counts} {
		if j != nil {
			errs = append(errs, j.Close())
		}
	}
	return errors.Join(errs...)
}
