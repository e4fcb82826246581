package aggregator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nuid"

	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/lifetime"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/remote"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/schema"
)

// An Aggregator answers events. Make it with Start, give it configurations
// with Activate, and stop it with Drain.
type Aggregator struct {
	opt     Options
	life    *lifetime.Lifetime
	report  observe.Report
	config  configuration
	freezes freezeState
	workers *remote.Workers
	judging *judging
	control *control.Control
}

// A configuration holds the versions that calls are judged by.
type configuration struct {
	active   atomic.Pointer[stages.Config]
	prepared atomic.Pointer[stages.Config] // the version that may become active
	unfit    atomic.Bool                   // the active configuration cannot be used here
}

// A readiness tells whether the broker may answer events: the active configuration is known to be
// active, and workers can be reached.
type readiness struct {
	config  *configuration
	workers *remote.Workers
	lease   control.Lease // nil: it is always fresh
}

// Ready reports whether it may now.
func (r *readiness) Ready() bool {
	return !r.config.unfit.Load() && r.workers.Ready() && r.leased()
}

// leased reports whether a client that changes the configuration or freezes waits for this broker.
func (r *readiness) leased() bool { return r.lease == nil || r.lease.Fresh(time.Now()) }

// errUnfit means that waiting is in vain.
var errUnfit = errors.New("this broker cannot use the active configuration and answers no call until another version is active; see its log")

// Wait waits until it may.
func (r *readiness) Wait(ctx context.Context) error {
	if r.config.unfit.Load() {
		return errUnfit
	}
	if err := r.workers.Wait(ctx); err != nil || r.lease == nil {
		return err
	}
	return r.lease.Wait(ctx)
}

// Start begins to listen. Before the first Activate no event is taken.
func Start(opt Options) (*Aggregator, error) {
	opt = opt.withDefaults()
	a := &Aggregator{opt: opt, life: lifetime.Start(opt.Logger)}
	a.startReport()
	local := ""
	if opt.Local != nil {
		local = opt.Local.Name()
	}
	var err error
	a.workers, err = remote.New(remote.Options{Conn: opt.Work, Local: local, Queue: opt.Queue, Late: a.late, Logger: opt.Logger})
	if err != nil {
		return nil, err
	}
	a.startJudging()
	a.startControl()
	if opt.Registerer != nil {
		opt.Registerer.MustRegister(a.judging.intake.Waiting())
		if opt.Memory.Queue != nil {
			opt.Registerer.MustRegister(observe.Gauges(opt.Memory.Queue))
		}
	}
	if opt.Freezes != nil {
		opt.Freezes.Use(a.freezes.use)
		if opt.Registerer != nil {
			opt.Registerer.MustRegister(a.freezes.gauges(opt.Freezes)...)
		}
	}
	if err := errors.Join(a.workers.Listen(), a.control.Serve()); err != nil {
		a.life.End()
		return nil, err
	}
	a.life.Go(a.tick)
	a.life.Go(func() { a.workers.Follow(a.life.Context()) })
	a.life.Go(func() { a.report.Feed.Run(a.life.Context()) })
	return a, nil
}

// startReport prepares what the aggregator reports to operators.
func (a *Aggregator) startReport() {
	opt := &a.opt
	a.report.Ledger, a.report.Log = opt.Ledger, observe.NewLog(opt.Logger)
	a.report.Metrics = observe.NewMetrics(opt.Registerer, observe.Labels{
		Shed: intake.Causes(), Limits: intake.LimitNames(), Parts: control.PartResults(), Unjudged: control.UnjudgedDecisions(),
	})
	a.report.Feed = observe.NewFeed(observe.FeedOptions{
		Conn: opt.Work, Interest: opt.Interest, Recorder: opt.Recorder, Ledger: opt.Ledger, Dropped: a.report.Metrics.Dropped, Logger: opt.Logger,
	})
	a.freezes = freezeState{metrics: a.report.Metrics, log: opt.Logger, applied: opt.Froze}
}

// startJudging connects what an event passes.
func (a *Aggregator) startJudging() {
	opt := &a.opt
	work := dispatch.Options{Caller: a.workers, Members: a.workers.Members, NewID: nuid.Next, Watch: a.watch(), Logger: opt.Logger}
	if opt.Local != nil {
		work.Local = opt.Local
	}
	j := &judging{
		ctx: a.life.Context(), config: &a.config, freezes: &a.freezes, dispatcher: dispatch.New(work),
		replies: newReplies(opt.Events, opt.Fabric, opt.Logger), tracer: opt.Tracer, report: &a.report, log: opt.Logger,
		readiness: &readiness{config: &a.config, workers: a.workers, lease: opt.Lease},
	}
	j.limits = intake.NewLimits(intake.LimitOptions{
		PerAgent: opt.PerAgent, Count: a.report.Metrics.Limited, Log: a.report.Log, CredentialName: opt.CredentialName,
	})
	j.deliverer = deliver.New(deliver.Options{
		Memory: opt.Memory, Active: a.config.active.Load, MaxVerdict: j.replies.maxVerdict, Life: a.life, Report: &a.report, Logger: opt.Logger,
	})
	j.intake = intake.New(a.life.Context(), intake.Options{
		Events: opt.Events, Calls: opt.Calls, Limits: j.limits, Readiness: j.readiness, Trivial: j.trivial, Handle: j.handle, Report: &a.report,
	})
	j.pipeline = j.steps()
	a.judging = j
}

// startControl prepares the answers to control requests.
func (a *Aggregator) startControl() {
	opt := &a.opt
	o := control.Options{
		Memory: opt.Memory, Work: opt.Work, Control: opt.Control, Requests: opt.Requests,
		Fabric: opt.Fabric, Node: opt.Node, Credentials: opt.Credentials, Configs: opt.Configs, Conditions: opt.Conditions, Expressions: opt.Expressions, Packs: opt.Packs,
		Lease: opt.Lease, Freezes: opt.Freezes, Local: opt.Local, Allowances: opt.Allowances, Unstorable: opt.Unstorable,
		Active: a.config.active.Load, UnderWay: a.judging.intake.UnderWay, Members: a.workers.Members,
		Limits: a.judging.limits, Deliverer: a.judging.deliverer, Life: a.life, Report: &a.report, Logger: opt.Logger,
	}
	o.Trouble = func() error {
		if a.config.unfit.Load() {
			return errUnfit
		}
		return opt.Trouble()
	}
	o.Frozen = func() *freezes.State {
		if f := a.freezes.now(); f != nil {
			return f.State
		}
		return nil
	}
	a.control = control.New(o)
}

func (a *Aggregator) tick() {
	t := time.NewTicker(remote.TickEvery)
	defer t.Stop()
	for {
		select {
		case <-a.life.Context().Done():
			return
		case now := <-t.C:
			a.control.Tick(now)
			a.workers.Tick()
			a.judging.limits.PublishRests(a.report.Feed, false)
		}
	}
}

// Prepare prepares cfg, so that Activate takes no time. It changes nothing for calls. It returns
// why hooks that run in this process cannot be loaded, by hook name.
func (a *Aggregator) Prepare(cfg schema.Config) (loadErrors map[string]string, err error) {
	p, err := a.prepare(cfg)
	if err != nil {
		return nil, err
	}
	return p.Errors(), nil
}

func (a *Aggregator) prepare(cfg schema.Config) (*stages.Config, error) {
	if p := a.config.prepared.Load(); p != nil && p.Config.Version == cfg.Version && p.Config.Fabric == cfg.Fabric {
		return p, nil
	}
	snap, err := dispatch.Compile(cfg, a.opt.Conditions)
	if err != nil {
		return nil, fmt.Errorf("cannot use config version %d: %w", cfg.Version, err)
	}
	p := stages.New(snap, a.opt.Stages, a.opt.Logger)
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
	before := a.config.active.Swap(act)
	if err := a.judging.intake.Open(); err != nil || before != nil {
		return err
	}
	// As soon as Start returns, clients may send requests, including control requests.
	return a.flush(context.Background())
}

// Apply makes a file the active version.
func (a *Aggregator) Apply(ctx context.Context, f *control.File) (*schema.ConfigAnswer, error) {
	return a.control.Apply(ctx, f)
}

// Status returns the fabric's state as this aggregator knows it.
func (a *Aggregator) Status() schema.FabricStatus { return a.control.Status() }

// Members returns the known workers.
func (a *Aggregator) Members() *dispatch.Members { return a.workers.Members }

// Version returns the active configuration's version; 0: none yet.
func (a *Aggregator) Version() uint64 { return a.control.Version() }

// Gone reports that a worker's connection closed. The worker's calls in the pools end now; without
// pools, those in all pools.
func (a *Aggregator) Gone(worker string, pools ...string) {
	a.workers.Gone(a.life.Context(), worker, pools...)
}

// Flooded counts that the server disconnected an agent that sent more than the server accepts from
// one client.
func (a *Aggregator) Flooded(agent string) { a.judging.limits.Refused(agent, intake.LimitMessages) }

// Drain takes no new events, answers those under way, and stops. It waits as
// long as ctx lets it; calls that are not answered by then are lost to it.
func (a *Aggregator) Drain(ctx context.Context) error {
	defer a.life.End()
	defer a.judging.limits.PublishRests(a.report.Feed, true)
	if err := a.judging.intake.Drain(ctx); err != nil {
		return err
	}
	a.judging.deliverer.Drain(ctx)
	a.control.Stop()
	a.workers.Stop()
	return a.flush(ctx)
}

func (a *Aggregator) flush(ctx context.Context) error {
	return remote.Flush(ctx, a.opt.Events, a.opt.Work, a.opt.Control, a.opt.Requests)
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
		Aside:         func(req *dispatch.Request, _ *schema.Hook, part schema.Verdict) { a.report.Aside(&req.Routing, &part) },
		Shadow:        func(req *dispatch.Request, s *dispatch.Shadowed) { a.report.Shadowed(&req.Routing, s) },
		ShadowDropped: func(n int) { m.ShadowDropped.Add(float64(n)) },
		ConditionFailed: func(h *schema.Hook, err error) {
			m.Conditions.WithLabelValues(h.Name).Inc()
			a.opt.Logger.Warn("a condition could not be evaluated and counts as true", "hook", h.Name, "error", err)
		},
	}
}

// late counts an answer that came after its call was given up.
func (a *Aggregator) late(b *schema.Batch) {
	act := a.config.active.Load()
	if act == nil || act.Config.Version != b.Version {
		return
	}
	for _, i := range b.Hooks {
		a.report.Metrics.Late(act.Hook(i).Name)
	}
}
