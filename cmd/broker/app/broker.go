package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/cmd/broker/creds"
	"github.com/hookfabric/hookfabric/cmd/internal/ops"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/cmd/internal/runners"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
)

// Options are what a Broker needs. The zero Options are the whole system on
// one machine, without hooks.
type Options struct {
	// Config is the hooks.yaml to publish; empty: take what is there.
	Config string
	// Replace lets Config take the place of what other brokers use.
	Replace bool
	// Reload has Config applied again when its file changes, and at each signal
	// from here whether it has or not; nil: the file is read once.
	Reload <-chan os.Signal
	// Data is the embedded server's directory; empty: DefaultData.
	Data string
	// Listen is the embedded server's address; empty: no listener, only this
	// process can connect.
	Listen string
	// HTTP is the address of health checks and metrics; empty: none.
	HTTP string
	// NATS is an existing deployment to use instead of the embedded server.
	NATS string
	// Creds is a credentials file for NATS.
	Creds string
	// TLS is the certificate that the embedded server shows, and whose it demands of
	// clients; with NATS, what this broker shows and whom it trusts there. It is also
	// that of HTTP, where other machines can reach that.
	TLS certs.Files
	// HTTPClients is a file of authorities: who asks HTTP must show a certificate of one of
	// them; empty: nobody has to.
	HTTPClients string
	// Cluster has the embedded server be one of several; its zero value: it is not.
	Cluster Cluster
	// Leaf has the embedded server take leaves, or be one of a hub; its zero value: neither.
	Leaf server.Leaf
	// Replicas is on how many servers everything is kept; 0: on three where that many
	// are named of the cluster, else on one.
	Replicas int
	// Tenant is whose events are answered, where everybody has to say who they are;
	// empty: the default tenant's. It says nothing with NATS, where Creds do.
	Tenant string
	// NoWorker leaves the pool "default" to other processes.
	NoWorker bool
	// PerAgent bounds what one agent takes of this broker; the zero Limits: nothing does.
	PerAgent ratelimit.Limits
	// Messages bounds what one agent's credentials send to the embedded server in a second;
	// 0: nothing does.
	Messages int
	// Allowances bound what one agent stores; the zero Allowances: the usual ones.
	Allowances ratelimit.Allowances
	// Sync is how often the embedded server syncs to disk; 0: at every write.
	Sync time.Duration
	// ReadyPools must have a worker before the broker says that it is ready.
	ReadyPools []string
	// Record says what is written down of verdicts; the zero value keeps who was
	// asked what and how it was decided, for a week.
	Record RecordOptions
	// Logger; nil: slog's default.
	Logger *slog.Logger
}

// A Broker is a running broker.
type Broker struct {
	opt    Options
	name   string // of this process among brokers and workers
	log    *slog.Logger
	stack  program.Stack
	reg    *prometheus.Registry
	state  atomic.Pointer[string]
	server *server.Server // nil with an existing deployment

	events, work      *nats.Conn
	control, requests *nats.Conn
	configs           *state.Configs
	memory            memory
	record            *record.Writer // nil: nothing is written down
	lease             *state.Lease
	tracer            *trace.Tracer // nil: nobody traces
	unfollow          context.CancelFunc
	followed          chan error // the end of following the configuration
	reports           latest     // what is said of it
	active            *schema.Config
	worker            *workers.Worker
	service           *workers.Service
	agg               *aggregator.Aggregator

	// HTTPURL is where health checks and metrics are; empty: nowhere.
	HTTPURL string
}

// undoTime is how long it may take to undo a start that failed.
const undoTime = 5 * time.Second

// New starts a broker. When a step fails, those before it are undone.
func New(ctx context.Context, opt Options) (_ *Broker, err error) {
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	b := &Broker{opt: opt, name: nodeName(), log: opt.Logger, reg: ops.Registry()}
	defer func() {
		if err != nil {
			undoing, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
			defer cancel()
			err = errors.Join(err, b.stack.Stop(undoing))
		}
	}()
	if _, err := opt.Record.rules(); err != nil {
		return nil, err
	}
	if err := errors.Join(opt.PerAgent.Check(), opt.Allowances.Check()); err != nil {
		return nil, err
	}
	b.tracer = ops.Tracing("hookfabric-broker", b.reg, b.log, &b.stack)
	reloads := b.reloads()
	file, err := b.readConfig()
	if err != nil {
		return nil, err
	}
	steps := []func(context.Context) error{b.startHTTP, b.startBus, b.connect, b.openState, b.openMemory, b.startRecord, b.startWorker, b.startAggregator}
	for _, start := range steps {
		if err := start(ctx); err != nil {
			return nil, err
		}
	}
	if err := b.follow(ctx, file); err != nil {
		return nil, err
	}
	b.startReloads(ctx, reloads)
	if err := b.startWatchingCopies(ctx); err != nil {
		return nil, err
	}
	b.startWatchingStore(ctx)
	b.startUsher(ctx)
	b.state.Store(&running)
	return b, nil
}

// What a broker does that is not, or no longer, ready. Running is ready.
var (
	starting = "starting"
	stopping = "stopping"
	running  = ""
)

// Close stops the broker: no new events, those under way are answered, then
// everything stops in reverse order of its start.
func (b *Broker) Close(ctx context.Context) error {
	b.state.Store(&stopping)
	return b.stack.Stop(ctx)
}

// startHTTP comes first, so that a supervisor can watch the start and the stop.
func (b *Broker) startHTTP(context.Context) (err error) {
	b.state.Store(&starting)
	if b.opt.HTTP != "" {
		b.HTTPURL, err = ops.Serve(ops.Options{Addr: b.opt.HTTP, TLS: b.opt.TLS, ClientCA: b.opt.HTTPClients, Registry: b.reg, Ready: b.Ready, Logger: b.log}, &b.stack)
	}
	return err
}

// URL is where other processes reach the bus.
func (b *Broker) URL() string {
	if b.server != nil {
		return b.server.ClientURL()
	}
	return b.opt.NATS
}

// Connect is a connection to the bus in this process, if it is embedded.
func (b *Broker) Connect(ctx context.Context, opt bus.Options) (*nats.Conn, error) {
	opt.Logger = b.log
	if b.server != nil {
		return b.server.Connect(ctx, opt)
	}
	opt.URL, opt.Creds, opt.TLS = b.opt.NATS, b.opt.Creds, b.opt.TLS
	opt.Role = string(access.Broker)
	nc, err := bus.Connect(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("%w; to start a NATS server of its own, run the broker without --nats and HOOKFABRIC_NATS", err)
	}
	return nc, nil
}

// Status is how the broker sees the fabric.
func (b *Broker) Status() schema.FabricStatus { return b.agg.Status() }

// Ready reports whether events are taken, or what is missing.
func (b *Broker) Ready() error {
	if state := *b.state.Load(); state != running {
		return errors.New(state)
	}
	for _, c := range b.connections() {
		if !(*c.at).IsConnected() {
			return fmt.Errorf("not connected to the bus: the connection for %s is down", c.name)
		}
	}
	st := b.agg.Status()
	switch {
	case st.Trouble != "":
		return errors.New(st.Trouble)
	case !st.Ready:
		return errors.New("no configuration is active; publish one with 'broker apply FILE'")
	}
	if err := b.memory.ready(); err != nil {
		return err
	}
	for _, pool := range b.opt.ReadyPools {
		if !served(&st, pool) {
			return fmt.Errorf("no worker serves the pool %q", pool)
		}
	}
	return nil
}

func served(st *schema.FabricStatus, pool string) bool {
	return slices.ContainsFunc(st.Pools, func(p schema.PoolStatus) bool {
		return p.Pool == pool && slices.ContainsFunc(p.Workers, func(w schema.WorkerStatus) bool { return !w.Silent })
	})
}

func (b *Broker) startBus(ctx context.Context) error {
	if b.opt.NATS != "" {
		return nil
	}
	cluster, err := b.opt.Cluster.read()
	if err != nil {
		return err
	}
	srv, err := server.Start(ctx, server.Options{
		Dir: b.opt.Data, Listen: b.opt.Listen, TLS: b.opt.TLS, Cluster: cluster, Leaf: b.leaf(), SyncInterval: b.opt.Sync, Logger: b.log,
		Auth: b.realm(), Tenant: b.opt.Tenant,
	})
	if err != nil {
		return err
	}
	b.server = srv
	b.stack.Push("embedded server", srv.Close)
	return b.joinCluster(ctx)
}

// realm is the folder that says who may use the embedded server; empty: everybody.
func (b *Broker) realm() string {
	if dir := creds.Folder(b.opt.Data); realm.Exists(dir) {
		return dir
	}
	return ""
}

// authenticates reports whether those who connect to the bus have to say who they are. Where a NATS
// deployment does not ask them, it logs what that leaves unchecked.
func (b *Broker) authenticates() bool {
	if b.opt.NATS == "" {
		return b.realm() != ""
	}
	if b.opt.Creds != "" || b.events.AuthRequired() {
		return true
	}
	b.log.Warn("the NATS deployment does not authenticate its clients, so the broker cannot check an agent's session or name when the agent answers; "+
		"give each agent a NATS user of its own", "nats", bus.RedactURL(b.opt.NATS))
	return false
}

// A connection is one of the broker's to the bus, by what it is for.
type connection struct {
	name string
	at   **nats.Conn
}

// connections are in the order in which they are opened.
func (b *Broker) connections() []connection {
	return []connection{{"work", &b.work}, {"control", &b.control}, {"requests", &b.requests}, {"events", &b.events}}
}

// connect makes a connection for each kind of traffic, so that none delays the others: large
// events beats, and requests of agents those of operators.
func (b *Broker) connect(ctx context.Context) (err error) {
	connected := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "hookfabric", Name: "connected", Help: "1 while this connection to NATS is up, else 0.",
	}, []string{"connection"})
	b.reg.MustRegister(connected, b.realmGauge())
	b.reg.MustRegister(ops.Credentials(func() (made, end time.Time, err error) { return bus.CredsTimes(b.opt.Creds) })...)
	open := func(name string) (*nats.Conn, error) {
		gauge := connected.WithLabelValues(name)
		nc, err := b.Connect(ctx, bus.Options{Name: "broker-" + name, OnState: gaugeState(gauge)})
		if err != nil {
			return nil, err
		}
		gauge.Set(1)
		b.stack.Push("connection "+name, func(ctx context.Context) error { return bus.Drain(ctx, nc) })
		return nc, nil
	}
	for _, c := range b.connections() {
		if *c.at, err = open(c.name); err != nil {
			return err
		}
	}
	if cluster := b.work.ConnectedClusterName(); err == nil && b.server == nil && b.opt.Replicas == 0 && cluster != "" {
		b.log.Warn("new streams are stored on one server of the cluster and are lost with it; start with --replicas 3 if three servers have JetStream", "cluster", cluster)
	}
	return err
}

// beside has something run beside the rest until the broker stops.
func (b *Broker) beside(ctx context.Context, what string, run func(context.Context)) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { run(ctx) })
	b.stack.Push(what, func(context.Context) error { stop(); work.Wait(); return nil })
}

func gaugeState(g prometheus.Gauge) func(bool) {
	return func(connected bool) {
		if connected {
			g.Set(1)
			return
		}
		g.Set(0)
	}
}

func (b *Broker) startWorker(context.Context) error {
	if b.opt.NoWorker {
		return nil
	}
	b.worker = workers.New(workers.Options{
		Name: b.name, Pools: []string{schema.DefaultPool}, Parts: b.memory.parts(),
		Runners: runners.New(b.log), Inline: runners.Inline(), Tracer: b.tracer, Logger: b.log,
		Freed: func() {
			if b.agg != nil {
				b.agg.Members().Freed(schema.DefaultPool)
			}
		},
	})
	b.reg.MustRegister(b.worker)
	b.stack.Push("runners", b.stopRunners)
	b.stack.Push("worker", func(ctx context.Context) error {
		if b.service == nil {
			return nil // it never got so far
		}
		return b.service.Drain(ctx)
	})
	return nil
}

// nodeName is this process's id as a broker and as a worker: it says where it runs.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	return fmt.Sprintf("%s-%d-%s", host[:min(len(host), 32)], os.Getpid(), strings.ToLower(nuid.Next()[16:]))
}

func (b *Broker) startAggregator(ctx context.Context) error {
	compiler, err := cond.NewCompiler()
	if err != nil {
		return err
	}
	opt := aggregator.Options{
		Events: b.events, Work: b.work, Control: b.control, Requests: b.requests, Fabric: b.configs.FabricID(),
		Node: b.name, Configs: b.configs, Trouble: b.trouble, Unstorable: b.unstorable,
		Freezes: b.memory.freezes, Froze: b.lease.Froze,
		Conditions: compiler.Compile, Memory: b.memory.use(), Stages: stage, Ledger: b.memory.ledger,
		Credentials: b.authenticates(), PerAgent: b.opt.PerAgent, Allowances: b.opt.Allowances, Tracer: b.tracer, Registerer: b.reg, Logger: b.log,
	}
	if b.worker != nil {
		opt.Local = b.worker
	}
	if b.shares() {
		// Nobody is cut off from a server in the own process that is on its own, and what
		// that cannot store nobody else can either.
		opt.Lease = b.lease
	}
	if b.server != nil {
		opt.Interest, opt.CredentialName = b.server.Interest, b.server.CredentialName
	}
	if b.record != nil {
		opt.Recorder = b.record
	}
	if b.agg, err = aggregator.Start(opt); err != nil {
		return err
	}
	b.stack.Push("aggregator", b.agg.Drain)
	return b.watchDisconnects(ctx)
}

// watchDisconnects listens for workers' connections that close, so that a crash is
// noticed at once, and for credentials by which too many connect. Only the embedded server gives the rights to hear it.
func (b *Broker) watchDisconnects(ctx context.Context) error {
	if b.server == nil {
		return nil
	}
	sys, err := b.server.ConnectSystem(ctx, bus.Options{Name: "broker-system", Logger: b.log})
	if err != nil {
		return err
	}
	b.stack.Push("system connection", func(context.Context) error { sys.Close(); return nil })
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stack.Push("flood watch", func(context.Context) error { stop(); return nil })
	if err := b.server.BoundConnections(watching, sys, b.log, server.Flood{Messages: b.opt.Messages, Sent: b.agg.Flooded}); err != nil {
		return err
	}
	return b.server.WatchDisconnects(ctx, sys, func(left server.Left) {
		if worker, ok := strings.CutPrefix(left.Name, workers.ConnectionPrefix); ok {
			b.agg.Gone(worker, left.Pools...)
		}
	})
}
