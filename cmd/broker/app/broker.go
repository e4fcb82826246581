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

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/builtin/packs"
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

// Options configure a Broker. The zero Options are the whole system on one machine, without
// hooks.
type Options struct {
	// Config is the hooks.yaml to publish; empty: use the active configuration of the fabric.
	Config string
	// Replace publishes Config even if other brokers use another configuration.
	Replace bool
	// Reload makes the broker apply Config when its file changes, and at each signal from the
	// channel; nil: the file is read once.
	Reload <-chan os.Signal
	// Data is the embedded server's directory; empty: DefaultData.
	Data string
	// Listen is the embedded server's address; empty: only this process can connect.
	Listen string
	// HTTP is the address of health checks and metrics; empty: no HTTP.
	HTTP string
	// NATS is an existing deployment to use instead of the embedded server.
	NATS string
	// Creds is a credentials file for NATS.
	Creds string
	// TLS is the certificate of the embedded server, and the authority for clients' certificates.
	// With NATS it is the certificate that this broker shows, and the authority that it trusts.
	// HTTP uses the same certificate on addresses that other machines can reach.
	TLS certs.Files
	// HTTPClients is a CA bundle that verifies HTTP clients on non-loopback addresses; empty: HTTP
	// clients need no certificate.
	HTTPClients string
	// Cluster makes the embedded server join a cluster; the zero value: no cluster.
	Cluster Cluster
	// Leaf makes the embedded server accept leaf nodes, or be one; the zero value: neither.
	Leaf server.Leaf
	// Replicas is how many servers store each stream; 0: three in a cluster with at least three
	// servers, otherwise one.
	Replicas int
	// Tenant is the tenant that this broker serves if clients need credentials; empty: the default
	// tenant. With NATS it is ignored, and Creds decide.
	Tenant string
	// NoWorker leaves the pool "default" to other processes.
	NoWorker bool
	// PerAgent limits each agent's use of this broker; the zero Limits: no limits.
	PerAgent ratelimit.Limits
	// Messages limits the messages per second of one agent's credentials at the embedded server;
	// 0: no limit.
	Messages int
	// Allowances limit what one agent stores; the zero Allowances: the default limits.
	Allowances ratelimit.Allowances
	// Sync is how often the embedded server syncs to disk; 0: at every write.
	Sync time.Duration
	// ReadyPools must each have a worker before the broker is ready.
	ReadyPools []string
	// Record configures the record of verdicts; the zero value stores events and verdicts for a
	// week.
	Record RecordOptions
	// Logger is nil for slog's default.
	Logger *slog.Logger
}

// A Broker is a running broker.
type Broker struct {
	opt    Options
	name   string // id among brokers and workers
	log    *slog.Logger
	stack  program.Stack
	reg    *prometheus.Registry
	state  atomic.Pointer[string]
	server *server.Server // nil with an existing deployment

	events, work      *nats.Conn
	control, requests *nats.Conn
	configs           *state.Configs
	memory            memory
	record            *record.Writer // nil: no record
	lease             *state.Lease
	tracer            *trace.Tracer // nil: tracing is off
	unfollow          context.CancelFunc
	followed          chan error // receives the end of following the configuration
	reports           latest     // reports of a candidate
	active            *schema.Config
	worker            *workers.Worker
	service           *workers.Service
	agg               *aggregator.Aggregator

	// HTTPURL is the address of health checks and metrics; empty: no HTTP.
	HTTPURL string
}

// undoTime bounds the undo of a start that failed.
const undoTime = 5 * time.Second

// New starts a broker. If a step fails, New undoes the steps before it.
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
	b.startRedirect(ctx)
	b.state.Store(&running)
	return b, nil
}

// The states in which a broker is not ready, and the one in which it is.
var (
	starting = "starting"
	stopping = "stopping"
	running  = ""
)

// Close stops the broker: it accepts no new events, answers those in progress, and then stops
// everything in reverse order of its start.
func (b *Broker) Close(ctx context.Context) error {
	b.state.Store(&stopping)
	return b.stack.Stop(ctx)
}

// startHTTP is the first step, so that a supervisor can watch the start and the stop.
func (b *Broker) startHTTP(context.Context) (err error) {
	b.state.Store(&starting)
	if b.opt.HTTP != "" {
		b.HTTPURL, err = ops.Serve(ops.Options{Addr: b.opt.HTTP, TLS: b.opt.TLS, ClientCA: b.opt.HTTPClients, Registry: b.reg, Ready: b.Ready, Logger: b.log}, &b.stack)
	}
	return err
}

// URL returns the address of the bus for other processes.
func (b *Broker) URL() string {
	if b.server != nil {
		return b.server.ClientURL()
	}
	return b.opt.NATS
}

// Connect connects to the bus, within this process if the server is embedded.
func (b *Broker) Connect(ctx context.Context, opt bus.Options) (*nats.Conn, error) {
	opt.Logger, opt.Plain = b.log, program.PlainNATS()
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

// Status returns the fabric as this broker sees it.
func (b *Broker) Status() schema.FabricStatus { return b.agg.Status() }

// Ready returns nil if the broker accepts events, otherwise what is missing.
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

// realm returns the folder with keys and permissions of the embedded server; empty: clients need
// no credentials.
func (b *Broker) realm() string {
	if dir := creds.Folder(b.opt.Data); realm.Exists(dir) {
		return dir
	}
	return ""
}

// authenticates reports whether clients of the bus need credentials. If a NATS deployment requires
// none, it logs which checks are then impossible.
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

// A connection is one of the broker's connections to the bus.
type connection struct {
	name string // its purpose
	at   **nats.Conn
}

// connections returns the connections in the order in which they are opened.
func (b *Broker) connections() []connection {
	return []connection{{"work", &b.work}, {"control", &b.control}, {"requests", &b.requests}, {"events", &b.events}}
}

// connect makes one connection for each kind of traffic, so that large events do not delay
// heartbeats, nor requests of agents those of operators.
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

// inBackground runs a function in a goroutine until the broker stops.
func (b *Broker) inBackground(ctx context.Context, what string, run func(context.Context)) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { run(ctx) })
	b.stack.Push(what, func(ctx context.Context) error {
		stop()
		ended := make(chan struct{})
		go func() { work.Wait(); close(ended) }()
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
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
			return nil // the start failed before
		}
		return b.service.Drain(ctx)
	})
	return nil
}

// nodeName returns the id of this process as a broker and as a worker; it contains the host name.
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
		Conditions: compiler.Compile, Expressions: expressions(compiler), Packs: packs.All(), Memory: b.memory.use(), Stages: builtin.Stage, Ledger: b.memory.ledger,
		Credentials: b.authenticates(), PerAgent: b.opt.PerAgent, Allowances: b.opt.Allowances, Tracer: b.tracer, Registerer: b.reg, Logger: b.log,
	}
	if b.worker != nil {
		opt.Local = b.worker
	}
	if b.shares() {
		// Only a broker that shares its storage with others can be cut off from them.
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

// watchDisconnects watches closed connections of workers, so that a crash is noticed at once, and
// credentials with too many connections. Only the embedded server permits it.
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
