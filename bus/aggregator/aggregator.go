package aggregator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// Options are the parameters of [Start].
type Options struct {
	// Events is the connection on which agents are answered.
	Events *nats.Conn
	// Work is the connection to workers; nil: Events. A second one keeps large
	// events from delaying beats.
	Work *nats.Conn
	// Control is the connection on which operators and orchestrators are answered, Requests
	// that for the control requests of agents and workers; nil: Work. However much comes on
	// one of them does not hold up the others.
	Control, Requests *nats.Conn
	// Local serves the pool "default" in this process; nil: this process serves no pool.
	Local Local
	// Fabric is the fabric's id; it is in every verdict.
	Fabric string
	// Node is this broker's id among the brokers.
	Node string
	// Configs has the stored configuration; nil: clients cannot read or change it here.
	Configs *state.Configs
	// Lease tells whether the active configuration is still the current one; nil: it always is.
	Lease Lease
	// Conditions compiles `when`; nil refuses conditions.
	Conditions func(expr string) (dispatch.Condition, error)
	// Freezes holds the agents whose tool calls are denied; nil: no agent is frozen, and this
	// broker cannot freeze any. Froze receives the version of the freezes that this broker applies,
	// and must not block; nil: the version is not reported.
	Freezes Freezes
	Froze   func(version uint64)
	// Trouble returns why the broker cannot work fully, for its status; nil: it can.
	Trouble func() error
	// Unstorable returns why the store accepts no writes, for the client whose request could not be
	// stored; nil: it accepts them, or the reason is unknown.
	Unstorable func() error
	// Queue bounds the calls that wait for a worker, per pool; 0: 4096.
	Queue int
	// Calls bounds the events under way; above that the bus holds them; 0: 8192.
	Calls int
	// PerAgent bounds what one agent may use; the zero Limits bound nothing.
	PerAgent ratelimit.Limits
	// Credentials: the bus authenticates its clients, so that an agent's requests are the
	// agent's own.
	Credentials bool
	// CredentialName returns the name of the credentials with a public key, empty where it
	// is unknown; nil: no name is known.
	CredentialName func(key string) string
	// Allowances bound what one agent stores; the zero Allowances are the defaults.
	Allowances ratelimit.Allowances
	// Interest reports whether a client subscribes to a subject; nil: always.
	Interest func(subject string) bool
	// Recorder records what the aggregator publishes on the feed; nil: nothing is recorded.
	Recorder observe.Recorder
	// Memory has the stores with the state of agents.
	Memory Memory
	// Stages makes the hooks that run in this process; nil: no hook can run here.
	Stages Stages
	// Ledger counts what happens to stored messages and rounds; nil: the aggregator makes one.
	Ledger *observe.Ledger
	// Tracer begins spans; nil: the aggregator does not trace.
	Tracer *trace.Tracer
	// Registerer registers the metrics; nil: the metrics are not exported.
	Registerer prometheus.Registerer
	// Logger; nil: slog's default.
	Logger *slog.Logger
}

// Local is a worker in this process.
type Local interface {
	dispatch.Local
	// Name is the worker's id: its beats on the bus are for the others.
	Name() string
	// Beat returns the worker's heartbeat for a pool.
	Beat(pool string) *schema.Beat
}

// A Lease tells how long a broker may answer events: while it is fresh, the other brokers cannot
// have dropped a version that this broker uses.
type Lease interface {
	// Fresh reports whether it is, at a time that has just been read.
	Fresh(now time.Time) bool
	// Wait waits until the lease is fresh again.
	Wait(ctx context.Context) error
}

// An Aggregator answers events. Make it with Start, give it configurations
// with Activate, and stop it with Drain.
type Aggregator struct {
	opt     Options
	life    lifetime
	config  configuration
	freezes freezeState
	intake  intake
	workers workerSide
	memory  memoryState
	replies replies
	control controlState
	report  observe.Report
}

// A configuration holds the versions that calls are judged by.
type configuration struct {
	active   atomic.Pointer[active]
	prepared atomic.Pointer[active] // the version that may become active
	unfit    atomic.Bool            // the active configuration cannot be used here
	turn     chan struct{}          // held while a configuration is spread
}

// An intake receives events and has them pass the pipeline.
type intake struct {
	pipeline pipeline
	first    *receiver // takes events, from the first Activate on
	again    *receiver // takes those that shims repeat
	beats    callBeats
	limits   limits
}

// A workerSide has workers run hooks.
type workerSide struct {
	members    *dispatch.Members
	caller     *caller
	dispatcher *dispatch.Dispatcher
	reach      reach
	beats      *nats.Subscription
}

// A memoryState holds what the aggregator itself remembers of its use of the stores.
type memoryState struct {
	acks    *acks
	warned  warned
	broken  broken
	passing chan struct{} // held by each change that is stored after the answer
}

// active is the configuration that new calls are pinned to, with the answer
// that most calls get.
type active struct {
	*dispatch.Snapshot
	nothing []byte   // the encoded verdict of a call that no hook matches, if no agent was ever frozen
	stages  []staged // by hook
	// terminalTools pass when all others are refused.
	terminalTools []string
}

// againShare is the part of the calls under way that repeated events may be: a broker that is only
// slow must not get twice the work.
const againShare = 8

// Start begins to listen. Before the first Activate no event is taken.
func Start(opt Options) (*Aggregator, error) {
	opt = withDefaults(opt)
	a := &Aggregator{
		opt: opt, config: configuration{turn: make(chan struct{}, 1)}, freezes: freezeState{slots: make(chan struct{}, maxFreezing)},
		workers: workerSide{members: dispatch.NewMembers(opt.Queue)}, replies: replies{outlet: bus.NewPublisher(opt.Events)},
		control: newControlState(opt.Allowances),
		report: observe.Report{
			Metrics: observe.NewMetrics(opt.Registerer, observe.Labels{Shed: shedCauses(), Limits: limitNames(), Parts: keptResults(), Unjudged: unjudgedDecisions()}),
			Log:     observe.NewLog(opt.Logger), Ledger: opt.Ledger,
		},
	}
	a.life.start()
	a.workers.reach.nc, a.workers.reach.back = opt.Work, a.workers.members.Expect
	a.intake.beats.send = a.sendBeat
	a.intake.limits = newLimits(opt.PerAgent, a.report.Metrics.Limited, a.report.Log)
	a.intake.limits.credentialName = opt.CredentialName
	a.startMemory()
	a.intake.pipeline = a.steps()
	a.intake.first = newReceiver(a.life.ctx, opt.Calls, a.handle, a.report.Log)
	a.intake.again = newReceiver(a.life.ctx, max(1, opt.Calls/againShare), a.handle, a.report.Log)
	for _, r := range []*receiver{a.intake.first, a.intake.again} {
		r.queue.ready, r.queue.decide = func() bool { return a.fresh(time.Now()) }, a.admitEvent
	}
	if opt.Registerer != nil {
		opt.Registerer.MustRegister(waitingGauge(a.intake.first.queue, a.intake.again.queue))
	}
	var err error
	if a.workers.caller, err = newCaller(opt.Work, a.late); err != nil {
		return nil, err
	}
	a.report.Feed = observe.NewFeed(observe.FeedOptions{
		Conn: opt.Work, Interest: opt.Interest, Recorder: opt.Recorder, Ledger: opt.Ledger, Dropped: a.report.Metrics.Dropped, Logger: opt.Logger,
	})
	work := dispatch.Options{
		Caller: a.workers.caller, Members: a.workers.members, NewID: nuid.Next, Watch: a.watch(), Logger: opt.Logger,
	}
	if opt.Local != nil {
		work.Local = opt.Local
	}
	a.workers.dispatcher = dispatch.New(work)
	a.workers.members.Expect()
	if opt.Freezes != nil {
		opt.Freezes.Use(a.froze)
		if opt.Registerer != nil {
			opt.Registerer.MustRegister(a.freezeGauges()...)
		}
	}
	if err := a.listen(); err != nil {
		a.life.stop()
		return nil, err
	}
	return a, nil
}

func withDefaults(opt Options) Options {
	if opt.Work == nil {
		opt.Work = opt.Events
	}
	opt.Control, opt.Requests = cmp.Or(opt.Control, opt.Work), cmp.Or(opt.Requests, opt.Work)
	opt.Allowances = opt.Allowances.Complete()
	if opt.Queue == 0 {
		opt.Queue = 4096
	}
	if opt.Ledger == nil {
		opt.Ledger = observe.NewLedger(opt.Registerer, opt.Logger)
	}
	if opt.Trouble == nil {
		opt.Trouble = func() error { return nil }
	}
	if opt.Unstorable == nil {
		opt.Unstorable = func() error { return nil }
	}
	if opt.Calls == 0 {
		opt.Calls = 8192
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	return opt
}

// startMemory prepares the memoryState.
func (a *Aggregator) startMemory() {
	mem := &a.opt.Memory
	a.memory.passing = make(chan struct{}, maxPassing)
	var write func(context.Context, string, []string) error
	if mem.Queue != nil {
		write = mem.Queue.Ack
		if a.opt.Registerer != nil {
			a.opt.Registerer.MustRegister(observe.Gauges(mem.Queue))
		}
	}
	a.memory.acks = newAcks(a.life.ctx, write, a.report.Log)
}

// watch returns counters for what verdicts do not contain.
func (a *Aggregator) watch() dispatch.Watch {
	m := a.report.Metrics
	return dispatch.Watch{
		Batch:  m.Batch,
		Queued: m.Queued,
		Rerun: func(pool string, n int) {
			m.Reruns.WithLabelValues(pool).Add(float64(n))
			a.opt.Logger.Warn("hooks run again because their worker was lost", "pool", pool, "hooks", n)
		},
		Aside:         a.aside,
		Shadow:        a.shadowed,
		ShadowDropped: func(n int) { m.ShadowDropped.Add(float64(n)) },
		ConditionFailed: func(h *schema.Hook, err error) {
			m.Conditions.WithLabelValues(h.Name).Inc()
			a.opt.Logger.Warn("a condition could not be evaluated and counts as true", "hook", h.Name, "error", err)
		},
	}
}

// Prepare prepares cfg, so that Activate takes no time. It changes nothing for calls. It returns
// why hooks that run in this process cannot be loaded, by hook name.
func (a *Aggregator) Prepare(cfg schema.Config) (loadErrors map[string]string, err error) {
	p, err := a.prepare(cfg)
	if err != nil {
		return nil, err
	}
	return p.stageErrors(), nil
}

func (a *Aggregator) prepare(cfg schema.Config) (*active, error) {
	if p := a.config.prepared.Load(); p != nil && p.Config.Version == cfg.Version && p.Config.Fabric == cfg.Fabric {
		return p, nil
	}
	snap, err := dispatch.Compile(cfg, a.opt.Conditions)
	if err != nil {
		return nil, fmt.Errorf("cannot use config version %d: %w", cfg.Version, err)
	}
	nothing, err := schema.Marshal(a.finish(&schema.Verdict{}, &cfg))
	if err != nil {
		return nil, fmt.Errorf("encoding the empty verdict: %w", err)
	}
	p := &active{Snapshot: snap, nothing: nothing, stages: a.makeStages(&cfg)}
	p.terminalTools = terminalTools(p.stages)
	a.config.prepared.Store(p)
	return p, nil
}

// Activate makes cfg the configuration of new calls; calls under way keep theirs. The first
// Activate starts the receipt of events. The workers must have loaded cfg before. If this broker
// cannot use cfg, it answers no more events, because the other brokers use it.
func (a *Aggregator) Activate(cfg schema.Config) error {
	act, err := a.prepare(cfg)
	a.config.unfit.Store(err != nil)
	if err != nil {
		return err
	}
	a.report.Metrics.Configure(&cfg)
	a.report.Shadows.Configure(&cfg)
	a.config.active.Store(act)
	if a.intake.first.sub != nil {
		return nil
	}
	return a.open()
}

// open begins to take events.
func (a *Aggregator) open() error {
	first, err := a.opt.Events.QueueSubscribeSync(bus.EventsWildcard, bus.QueueAggregators)
	if err != nil {
		return fmt.Errorf("subscribing to events: %w", err)
	}
	again, err := a.opt.Events.SubscribeSync(bus.EventsWildcard + bus.AgainSuffix)
	if err != nil {
		return fmt.Errorf("subscribing to repeated events: %w", err)
	}
	if err := errors.Join(a.intake.first.start(first), a.intake.again.start(again)); err != nil {
		return err
	}
	// As soon as Start returns, clients may send requests, including control requests.
	return a.flushAll(context.Background())
}

// Members returns the known workers.
func (a *Aggregator) Members() *dispatch.Members { return a.workers.members }

// Version returns the active configuration's version; 0: none yet.
func (a *Aggregator) Version() uint64 {
	if act := a.config.active.Load(); act != nil {
		return act.Config.Version
	}
	return 0
}

// Drain takes no new events, answers those under way, and stops. It waits as
// long as ctx lets it; calls that are not answered by then are lost to it.
func (a *Aggregator) Drain(ctx context.Context) error {
	defer a.life.end()
	defer a.tellRests(true)
	if err := errors.Join(a.intake.first.drain(ctx), a.intake.again.drain(ctx)); err != nil {
		return err
	}
	a.memory.acks.drain(ctx)
	for _, svc := range a.control.services {
		_ = svc.Stop() // it only withdraws the face; nothing depends on it
	}
	for _, s := range []*nats.Subscription{a.workers.beats, a.workers.caller.sub} {
		_ = s.Unsubscribe() // the connection may be closed already
	}
	return a.flushAll(ctx)
}

// flushAll flushes all connections.
func (a *Aggregator) flushAll(ctx context.Context) error {
	return errors.Join(a.flush(ctx, a.opt.Events), a.flush(ctx, a.opt.Work), a.flush(ctx, a.opt.Control), a.flush(ctx, a.opt.Requests))
}

// flushTime bounds how long a flush waits for the server.
const flushTime = 5 * time.Second

// flush waits until the server has received everything that the connection sent.
func (a *Aggregator) flush(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil && !nc.IsClosed() {
		return fmt.Errorf("flushing to the server: %w", err)
	}
	return nil
}
