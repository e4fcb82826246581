// Package control serves the requests of operators, orchestrators, agents and workers.
//
// verbs.go lists the verbs. control.go receives a request and answers it when its answer is ready,
// within the bounds of room.go. configure.go, spread.go and hooks.go change the configuration,
// freezing.go freezes agents and signs what shims follow while no broker answers. inject.go, answer.go
// and stored.go serve the stored state of agents and record calls that no broker judged. status.go
// tells how the fabric is.
//
// Only this module imports it.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/lifetime"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/schema"
)

// Agents must not be able to delay operators, however many requests they send. Requests that only
// operators and orchestrators may send therefore have a connection and subscriptions of their own,
// and requests of agents and workers have others. The broker counts an agent's request by its
// subject before it reads the request, and drops requests over the agent's limits.
//
// A verb that does not exist has no responder: a subscription for such requests would receive all
// other requests a second time.

// The bounds of the requests that wait in the client for the handler of one of the agents' verbs.
// The client drops further requests.
const (
	requestsWaiting     = 64 << 10
	requestBytesWaiting = 32 << 20
)

// Options are the parameters of [New]. The aggregator's Options describe those of the same name.
type Options struct {
	stores.Memory

	Work, Control, Requests *nats.Conn

	Fabric, Node string
	Credentials  bool
	Configs      *state.Configs
	Conditions   func(expr string) (dispatch.Condition, error)
	Expressions  func(option, expr string) error
	// Packs are the shipped packs of rules, by name.
	Packs      map[string]string
	Lease      Lease
	Freezes    Freezes
	Local      Local
	Allowances ratelimit.Allowances
	Trouble    func() error
	Unstorable func() error

	// Active returns the active configuration; nil: no version is active yet.
	Active func() *stages.Config
	// Frozen returns the freezes that the broker applies; nil: there never was a freeze.
	Frozen func() *freezes.State
	// UnderWay returns how many events are under way.
	UnderWay  func() int
	Members   *dispatch.Members
	Limits    *intake.Limits
	Deliverer *deliver.Deliverer
	Life      *lifetime.Lifetime
	Report    *observe.Report
	Logger    *slog.Logger
}

// A Lease tells how long a broker may answer events: while it is fresh, the other brokers cannot
// have dropped a version that this broker uses.
type Lease interface {
	// Fresh reports whether it is, at a time that has just been read.
	Fresh(now time.Time) bool
	// Wait waits until the lease is fresh again.
	Wait(ctx context.Context) error
}

// Freezes is the part of [freezes.Freezes] that operators use.
type Freezes interface {
	Now() *freezes.State
	// Freeze and Thaw change the freezes if they have the version known; nil: any version.
	Freeze(ctx context.Context, z schema.Freeze, known *uint64) (freezes.Change, error)
	Thaw(ctx context.Context, agents string, known *uint64) (freezes.Change, error)
}

// Local is a worker in this process.
type Local interface {
	// Beat returns the worker's heartbeat for a pool.
	Beat(pool string) *schema.Beat
}

// A Control serves control requests.
type Control struct {
	opt       Options
	services  []micro.Service // the first one is the aggregator's face to `nats micro`
	verbs     map[string]*verb
	room      room
	turn      chan struct{} // held while a configuration is spread
	still     standstill
	policies  policies
	histories intake.Allowance // of parts of conversations
	records   intake.Allowance // of calls that no broker judged
}

// New makes a Control. [Control.Serve] begins to serve.
func New(opt Options) *Control {
	c := &Control{
		opt: opt, verbs: make(map[string]*verb), room: newRoom(), turn: make(chan struct{}, 1),
		histories: intake.Allowance{Most: opt.Allowances.HistoryBytes, Per: time.Hour},
		records:   intake.Allowance{Most: opt.Allowances.UnjudgedBytes, Per: 24 * time.Hour},
	}
	for _, v := range verbs() {
		c.verbs[v.name] = &v
	}
	return c
}

// Serve registers the services with the NATS micro framework.
func (c *Control) Serve() error {
	face, err := c.service(c.opt.Control, faceName, c.stats)
	if err != nil {
		return err
	}
	requests, err := c.service(c.opt.Requests, requestsName, nil)
	if err != nil {
		return err
	}
	for _, v := range verbs() {
		svc, opts := face, []micro.EndpointOpt{
			micro.WithEndpointSubject(bus.ControlVerb(v.name)), micro.WithEndpointQueueGroup(bus.QueueAggregators),
			micro.WithEndpointMetadata(map[string]string{"request": schema.ControlSchema(v.name)}),
		}
		if !v.others {
			svc, opts = requests, append(opts, micro.WithEndpointPendingLimits(requestsWaiting, requestBytesWaiting))
		}
		if err := svc.AddEndpoint(v.name, micro.HandlerFunc(c.serve), opts...); err != nil {
			return fmt.Errorf("serving %s requests: %w", v.name, err)
		}
	}
	return nil
}

// Stop withdraws the services. Nothing depends on that, so it cannot fail.
func (c *Control) Stop() {
	for _, svc := range c.services {
		_ = svc.Stop()
	}
}

// Tick notes that the process runs. It is called all the time.
func (c *Control) Tick(now time.Time) { c.still.tick(now) }

// service begins a service of the micro framework on a connection.
func (c *Control) service(nc *nats.Conn, name string, stats micro.StatsHandler) (micro.Service, error) {
	svc, err := micro.AddService(nc, micro.Config{
		Name: name, Version: schema.Release, Description: "Answers agents' hook events", StatsHandler: stats,
		Metadata: map[string]string{"fabric": c.opt.Fabric, "broker": c.opt.Node},
		ErrorHandler: func(_ micro.Service, e *micro.NATSError) {
			c.opt.Logger.Debug("control service failed", "subject", e.Subject, "error", e.Description) // the connection warns
		},
	})
	if err != nil {
		return nil, fmt.Errorf("registering the control service: %w", err)
	}
	c.services = append(c.services, svc)
	return svc, nil
}

// serve accepts one control request, or refuses it before it returns, as micro requires. The answer
// goes to the request's reply subject when it is ready.
func (c *Control) serve(r micro.Request) {
	if !bus.IsInbox(r.Reply()) {
		// A message whose reply subject is not an inbox is not a request. It may be a reply of the
		// server or of a broker, which a client directed here to cause a change that the client
		// itself may not make.
		c.opt.Report.Log.Unanswerable(r.Subject(), r.Reply())
		return
	}
	job, err := c.accept(r)
	switch {
	case errors.Is(err, intake.ErrDropped):
	case err != nil:
		c.respond(r, r.Subject(), nil, err)
	default:
		subject, who := r.Subject(), replier{job.conn, r.Reply()}
		c.opt.Life.Go(func() {
			defer job.release()
			v, err := c.tried(job.answer)
			c.respond(who, subject, v, err)
		})
	}
}

// responder takes the answer to a request: micro's own until its handler returns.
type responder interface {
	Respond(data []byte, opts ...micro.RespondOpt) error
	Error(code, description string, data []byte, opts ...micro.RespondOpt) error
}

// replier takes it after that, on the request's reply subject: by then the
// request is micro's again.
type replier struct {
	nc    *nats.Conn
	reply string
}

func (r replier) Respond(data []byte, _ ...micro.RespondOpt) error {
	return r.nc.Publish(r.reply, data)
}

func (r replier) Error(code, description string, data []byte, opts ...micro.RespondOpt) error {
	m := &nats.Msg{Subject: r.reply, Data: data, Header: nats.Header{
		schema.HeaderServiceError: {description}, schema.HeaderServiceErrorCode: {code},
	}}
	for _, opt := range opts {
		opt(m)
	}
	return r.nc.PublishMsg(m)
}

// tried returns an answer, or an error if making it panics, so that no request stops the broker.
func (c *Control) tried(answer func(context.Context) (any, error)) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.opt.Logger.Error("a control request panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the broker failed to serve the request: %v", p)
		}
	}()
	return answer(c.opt.Life.Context())
}

// respond sends an answer, or the error in its place.
func (c *Control) respond(r responder, subject string, answer any, err error) {
	var data []byte
	if err == nil {
		data, err = schema.Marshal(answer)
	}
	if most := c.opt.Control.MaxPayload(); err == nil && int64(len(data)) > most {
		err = fmt.Errorf("the answer has %d bytes, and the NATS server accepts at most %d in one message", len(data), most)
	}
	if err == nil {
		err = r.Respond(data)
	} else {
		err = respondError(r, err)
	}
	if err != nil {
		c.opt.Logger.Warn("cannot answer a control request", "subject", subject, "error", err)
	}
}

func respondError(r responder, err error) error {
	ce, ok := errors.AsType[*schema.ControlError](err)
	if !ok {
		ce = &schema.ControlError{Code: schema.CodeInternal, Message: err.Error()}
	}
	data, err := schema.Marshal(ce)
	if err != nil {
		return fmt.Errorf("encoding the error: %w", err)
	}
	if ce.RetryAfter > 0 {
		return r.Error(ce.Code, ce.Message, data, retryAfter(ce.RetryAfter))
	}
	return r.Error(ce.Code, ce.Message, data)
}

// retryAfter adds the time after which the client may repeat the request to a reply.
func retryAfter(wait schema.Duration) micro.RespondOpt {
	return func(m *nats.Msg) { m.Header.Set(schema.HeaderRetryAfter, wait.String()) }
}
