package aggregator

import (
	"cmp"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state"
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
	Lease control.Lease
	// Conditions compiles `when`; nil refuses conditions.
	Conditions func(expr string) (dispatch.Condition, error)
	// Expressions checks an option of a hook of type cel; nil leaves that to the workers.
	Expressions func(option, expr string) error
	// Packs are the shipped packs of rules by name, each with the text of its file.
	Packs map[string]string
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
	Memory stores.Memory
	// Stages makes the hooks that run in this process; nil: no hook can run here.
	Stages stages.Maker
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
	control.Local
	// Name is the worker's id: its beats on the bus are for the others.
	Name() string
}

func (opt Options) withDefaults() Options {
	opt.Work = cmp.Or(opt.Work, opt.Events)
	opt.Control, opt.Requests = cmp.Or(opt.Control, opt.Work), cmp.Or(opt.Requests, opt.Work)
	opt.Allowances = opt.Allowances.Complete()
	opt.Queue, opt.Calls = cmp.Or(opt.Queue, 4096), cmp.Or(opt.Calls, 8192)
	opt.Logger = cmp.Or(opt.Logger, slog.Default())
	if opt.Ledger == nil {
		opt.Ledger = observe.NewLedger(opt.Registerer, opt.Logger)
	}
	none := func() error { return nil }
	if opt.Trouble == nil {
		opt.Trouble = none
	}
	if opt.Unstorable == nil {
		opt.Unstorable = none
	}
	return opt
}
