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
	"github.com/hookfabric/hookfabric/loadtest/internal/audit"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
)

// Driver is the role of a process that runs a part of the agents.
const Driver = "fleet-driver"

// afterwards is the kind of calls after a tool was used; those before are counted
// by their class.
const afterwards = "after the tool"

const (
	// cutEvery is the interval at which a driver writes its counts. A kill loses the counts
	// of at most one interval.
	cutEvery = time.Second
	// sweepers is how many agents check at once whether items wait for them.
	sweepers = 32
	// dialEvery is the interval between a driver's attempts to connect to a broker that is
	// down.
	dialEvery = 50 * time.Millisecond
	// flushIn limits how long an ending driver may take to acknowledge. flushAgain is the
	// pause between its tries.
	flushIn    = 5 * time.Second
	flushAgain = 100 * time.Millisecond
	// settleIn limits how long its calls in flight may take then.
	settleIn = 3 * time.Second
)

// DriverConfig configures a driver.
type DriverConfig struct {
	NATS  string `json:"nats"`
	Creds string `json:"creds,omitzero"`
	// Daemon is the state folder of the daemon that its agents use; empty: they ask the
	// fabric directly.
	Daemon string `json:"daemon,omitzero"`
	// Log is the log of injections. Counts is the log of calls. By is the name of this
	// process.
	Log    string `json:"log"`
	Counts string `json:"counts"`
	By     string `json:"by"`
	// Tag is part of all agents' names.
	Tag string `json:"tag"`
	// First is the number of its first agent. Agents is the number of its agents.
	First  int `json:"first"`
	Agents int `json:"agents"`
	// Connections is the number of its connections.
	Connections int `json:"connections"`
	// Scenario describes the agents' calls.
	Scenario scenario.Scenario `json:"scenario"`
	// Curve is the load, which begins at Begin. Calls before Measured only warm up. Both
	// are in nanoseconds of this machine's clock.
	Curve    load.Curve `json:"curve"`
	Begin    int64      `json:"begin"`
	Measured int64      `json:"measured"`
	// Excused means that calls and hooks without an answer do not count as faults.
	Excused bool `json:"excused,omitzero"`
	// Again means that this process replaces another one. It skips the calls that are
	// already past.
	Again bool `json:"again,omitzero"`
}

// A Line has a driver's counts since its last line.
type Line struct {
	By string `json:"by"`
	load.Cut
	found
	// Bare are the requests that skip the fabric.
	Bare load.Cut `json:"bare,omitzero"`
	// UnderWay is the number of its calls in flight.
	UnderWay int64 `json:"under_way,omitzero"`
	// Idle means that all of its calls are over.
	Idle bool `json:"idle,omitzero"`
}

// agentName returns the name of the agent of that number. Each session has another tag, so
// no agent gets items that an earlier session left in an external fabric.
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
	// rest stops new calls. stop ends all calls in flight.
	rest, stop context.CancelFunc
	work       sync.WaitGroup
	// ending is set when no more calls begin.
	ending atomic.Bool

	mu      sync.Mutex // guards failure
	failure error
}

// startDriver starts the agents, which call at their times.
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
	return &proc.Role{Do: proc.Asked(d.sweep), Close: d.close}, nil
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

// connect opens all connections, some at a time. It waits for a broker that is down.
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
		if !d.Again || !load.Pause(ctx, dialEvery) {
			return nil, err
		}
	}
}

// people creates the agents, each with its own call times.
func (d *driver) people(ctx context.Context) {
	begin := time.Unix(0, d.Begin)
	for i := range d.Agents {
		name := agentName(d.Tag, d.First+i)
		c := d.clients[i%len(d.clients)]
		a := &agent{
			driver: d, name: name, c: c, reads: c.recipient(name, d.log), begin: begin,
			random: rand.New(rand.NewPCG(d.Scenario.Seed, uint64(d.First+i))),
		}
		a.arrivals = load.NewArrivals(d.Curve, d.Scenario.Agents, a.random)
		d.agents = append(d.agents, a)
		a.next(ctx, d.Again)
	}
}

// write writes the counts at intervals.
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
	idle := d.schedule.Left() == 0 // before its counts are taken
	d.noted(d.counts.Append(Line{By: d.By, Cut: d.recorder.Cut(), Bare: d.bare.Cut(), found: d.oracle.cut(), UnderWay: d.schedule.UnderWay(), Idle: idle}))
}

// noted records an error of a log. The run is not valid then.
func (d *driver) noted(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
}

// Sweep makes a driver check whether the fabric has items for these agents.
type Sweep struct {
	Agents []string `json:"agents"`
}

// sweep makes agents ask once more, about a tool that no hook matches. These calls are not
// counted.
func (d *driver) sweep(ctx context.Context, s Sweep) (any, error) {
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

// close ends all calls and writes the remaining counts. Calls in flight have a moment to
// end by themselves, because after an interrupted load they are as valid as others.
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

// flush acknowledges the items that were handed over. It retries until its time is over,
// because a disk may be busy for a moment. Items that stay unacknowledged are counted, and
// are not a fault: the fabric would send them again.
func (d *driver) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), flushIn)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range d.clients {
		all.Go(func() {
			for err := c.Flush(ctx); err != nil; err = c.Flush(ctx) {
				if !load.Pause(ctx, flushAgain) {
					d.oracle.unacknowledged()
					return
				}
			}
		})
	}
	all.Wait()
}

// end closes the connections and the logs.
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
