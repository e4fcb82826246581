package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/internal/audit"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// Producer is the role of a process that sends messages to agents.
const Producer = "fleet-producer"

// Roles returns the roles of this package.
func Roles() map[string]proc.Start {
	return map[string]proc.Start{
		Worker:   proc.Started(startWorker),
		Whole:    proc.Started(startWhole),
		Driver:   proc.Started(startDriver),
		Producer: proc.Started(audit.StartProducer),
		Daemon:   proc.Started(startDaemon),
	}
}

// A Stage has the resources of a run.
type Stage struct {
	// Dir is an empty directory for the files of the processes.
	Dir string
	// Crew starts the processes.
	Crew *proc.Crew
	// Live shows the load while it runs, and receives lines of progress; nil: it is not shown.
	Live *report.Live
	// Hosts are the hosts of a cluster; nil: its brokers all run on this one.
	Hosts []*faults.Host
}

// Run starts the scenario's fabric, puts it under the scenario's load, and returns the
// result.
func Run(ctx context.Context, s *scenario.Scenario, st Stage) (*report.Document, error) {
	x, err := Open(ctx, s, st)
	if err != nil {
		return nil, err
	}
	m, err := x.Load(ctx, s)
	if err = x.End(m, err); err != nil {
		return nil, err
	}
	return m.Document(), nil
}

// A Session is a running fabric for one load after the other.
type Session struct {
	Stage
	// Script causes the faults of a load that began then, and returns them; nil: the
	// scenario's faults happen at their times. Its context ends with the load.
	Script func(ctx context.Context, began time.Time) ([]faults.Done, error)

	field *field.Field
	mix   mix
	tag   string         // of its agents and producers
	loads int            // so far
	named map[string]int // the number of processes of each kind that loads have started
}

// Open starts the scenario's fabric, and waits until all of its hooks answer correctly.
func Open(ctx context.Context, s *scenario.Scenario, st Stage) (*Session, error) {
	m, err := readMix()
	if err != nil {
		return nil, err
	}
	links := s.Fabric.Links || slices.ContainsFunc(s.Faults, func(f faults.Fault) bool { return f.Kind.OnLink() })
	f, err := field.Open(ctx, field.Config{
		Kind: s.Fabric.Kind, Dir: st.Dir, Crew: st.Crew, NATS: s.Fabric.NATS, Creds: s.Fabric.Creds, Brokers: s.Fabric.Brokers, Workers: s.Fabric.Workers,
		Server: s.Fabric.Server, Cluster: s.Fabric.Cluster, Hosts: st.Hosts, Sync: s.Fabric.Sync, Hooks: m.hooksYAML(), AgentRate: s.Runaway.Rate(), Links: links,
		Whole:      func(c roles.BrokerConfig) (string, any) { return Whole, WholeConfig{Broker: c, Slots: s.Fabric.Slots} },
		WorkerRole: Worker,
		Worker: func(at faults.At) any {
			return WorkerConfig{NATS: at.NATS, Creds: s.Fabric.Creds, Slots: s.Fabric.Slots}
		},
	})
	if err != nil {
		return nil, err
	}
	x := &Session{Stage: st, field: f, mix: m, tag: strconv.FormatUint(uint64(rand.Uint32()), 36), named: map[string]int{}}
	if err := x.await(ctx, s); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

// name returns the name of the next process of a kind.
func (x *Session) name(kind string) string {
	x.named[kind]++
	return field.Numbered(kind, x.named[kind])
}

// Field returns the session's processes. Callers may send requests only to brokers, workers
// and servers. Requests to the other processes belong to the load.
func (x *Session) Field() *field.Field { return x.field }

// Close ends all processes.
func (x *Session) Close() error { return x.field.Close() }

// await asks about each class of calls until the answer is right. If it gives up, it
// returns the last error.
func (x *Session) await(ctx context.Context, s *scenario.Scenario) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Second, errors.New("the hooks did not answer correctly within 20 s"))
	defer cancel()
	c, err := client.Connect(ctx, client.Options{URL: x.field.URL(), Creds: x.field.Creds(), Name: "loadtest fleet"})
	if err != nil {
		return err
	}
	defer c.Close()
	random := rand.New(rand.NewPCG(s.Seed, 0))
	for _, k := range classes() {
		err := load.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
			o := newOracle(s.Deadline.Std(), false)
			return x.probe(ctx, c, o, x.mix.fill(&call{class: k, deny: k == refused}, random, 0))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// probe asks about one call.
func (x *Session) probe(ctx context.Context, c *client.Client, o *oracle, one *call) error {
	e := one.before()
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	e.EventID, e.AgentID = id.String(), "loadtest"
	began := time.Now()
	v, err := c.Ask(ctx, e)
	if err != nil {
		return err
	}
	o.before(one, answer{verdict: v, took: time.Since(began)})
	for _, check := range o.cut().Checks {
		if check.Wrong > 0 {
			return errors.New(check.Examples[0])
		}
	}
	return nil
}

// early ends a load that was interrupted, as if it had been planned for the whole seconds
// until then. Errors at the end of processes that may be starting, stopped or cut off do
// not affect the earlier measurements.
func (r *run) early(ctx context.Context) error {
	long := time.Since(r.Began).Truncate(time.Second)
	if long < time.Second {
		return fmt.Errorf("before the first measurement: %w", context.Cause(ctx))
	}
	s := *r.Scenario
	s.For, s.Steps = min(s.For, schema.Duration(long)), s.Steps.Until(long)
	r.Scenario, r.Early, r.ending = &s, true, r.end()
	return nil
}

// End closes the session after a load that returned m or err. If the load was interrupted,
// an error of Close is only a note.
func (x *Session) End(m *Measured, err error) error {
	closed := x.Close()
	if err == nil && m.Early {
		m.ending = errors.Join(m.ending, closed)
		return nil
	}
	return errors.Join(err, closed)
}

// shown is the state that the live view of a load needs between lines.
type shown struct {
	underWay map[string]int64 // by driver
}

// take shows the counts of a driver.
func (s *shown) take(to *report.Live, l *Line) {
	for i := range l.Seconds {
		c := &l.Seconds[i]
		to.Calls(c.Kind, "answered", c.Answered)
		to.Calls(c.Kind, "failed", c.Failed)
		to.Calls(c.Kind, "unsent", c.Unsent)
		to.Times(c.Kind, &c.Latency)
	}
	for _, c := range l.Checks {
		to.Wrong(c.Name, c.Wrong)
	}
	if s.underWay == nil {
		s.underWay = map[string]int64{}
	}
	driver, _, _ := strings.Cut(l.By, ".") // a driver's successor replaces its count
	s.underWay[driver] = l.UnderWay
	all := int64(0)
	for _, n := range s.underWay {
		all += n
	}
	to.InFlight(all)
}

// load shows the progress of a load, a time after its beginning.
func (s *shown) load(to *report.Live, c load.Curve, since time.Duration) {
	to.Offered(c.Rate(since))
	to.Over(since.Seconds() / max(c.Long().Seconds(), 1e-9))
}
