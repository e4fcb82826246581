package aggregator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/schema"
)

// Agents must not be able to delay operators, however many requests they send. Requests that only
// operators and orchestrators may send therefore have a connection and subscriptions of their own,
// and requests of agents and workers have others. The broker counts an agent's request by its
// subject before it reads the request, and drops requests over the agent's limits (limits.go).
//
// A verb that does not exist has no responder: a subscription for such requests would receive all
// other requests a second time.

// statusVerb is the verb whose endpoint reports the statistics of the aggregator.
const statusVerb = "status"

// The bounds of the requests that wait in the client for the handler of one of the agents' verbs.
// The client drops further requests.
const (
	requestsWaiting     = 64 << 10
	requestBytesWaiting = 32 << 20
)

// A controlState serves control requests.
type controlState struct {
	services  []micro.Service
	face      micro.Service // the first of the services
	verbs     map[string]verb
	asked     chan struct{} // held by each request that takes its time
	budgets   budgets
	still     standstill
	policies  policies
	histories allowance // of parts of conversations
	records   allowance // of calls that no broker judged
}

func newControlState(most ratelimit.Allowances) controlState {
	return controlState{
		verbs: verbs(), asked: make(chan struct{}, maxAsked), budgets: newBudgets(),
		histories: allowance{most: most.HistoryBytes, per: time.Hour}, records: allowance{most: most.UnjudgedBytes, per: 24 * time.Hour},
	}
}

// serveControl registers the aggregator with the NATS micro framework, as its face to `nats micro`,
// and serves the control verbs.
func (a *Aggregator) serveControl() error {
	var err error
	if a.control.face, err = a.service(a.opt.Control, faceName, a.stats); err != nil {
		return err
	}
	requests, err := a.service(a.opt.Requests, requestsName, nil)
	if err != nil {
		return err
	}
	for _, verb := range verbNames() {
		svc, limits := a.control.face, []micro.EndpointOpt(nil)
		if a.agentsMay(verb) {
			svc, limits = requests, []micro.EndpointOpt{micro.WithEndpointPendingLimits(requestsWaiting, requestBytesWaiting)}
		}
		err := svc.AddEndpoint(verb, micro.HandlerFunc(a.serve), append(limits, micro.WithEndpointSubject(bus.ControlVerb(verb)),
			micro.WithEndpointQueueGroup(bus.QueueAggregators),
			micro.WithEndpointMetadata(map[string]string{"request": schema.ControlSchema(verb)}))...)
		if err != nil {
			return fmt.Errorf("serving %s requests: %w", verb, err)
		}
	}
	return nil
}

// service begins a service of the micro framework on a connection.
func (a *Aggregator) service(nc *nats.Conn, name string, stats micro.StatsHandler) (micro.Service, error) {
	svc, err := micro.AddService(nc, micro.Config{
		Name: name, Version: schema.Release, Description: "Answers agents' hook events", StatsHandler: stats,
		Metadata: map[string]string{"fabric": a.opt.Fabric, "broker": a.opt.Node},
		ErrorHandler: func(_ micro.Service, e *micro.NATSError) {
			a.opt.Logger.Debug("control service failed", "subject", e.Subject, "error", e.Description) // the connection warns
		},
	})
	if err != nil {
		return nil, fmt.Errorf("registering the control service: %w", err)
	}
	a.control.services = append(a.control.services, svc)
	return svc, nil
}

// agentsMay reports whether more than operators and orchestrators may make requests for a verb.
func (a *Aggregator) agentsMay(verb string) bool {
	v, ok := a.control.verbs[verb]
	return ok && !v.others
}

// maxAsked bounds the control requests under way that take their time.
const maxAsked = 64

// serve answers one control request before it returns, as micro requires. A deferred answer goes to
// the request's reply subject when it is ready.
func (a *Aggregator) serve(r micro.Request) {
	if !bus.IsInbox(r.Reply()) {
		// A message whose reply subject is not an inbox is not a request. It may be a reply of the
		// server or of a broker, which a client directed here to cause a change that the client
		// itself may not make.
		a.report.Log.Unanswerable(r.Subject(), r.Reply())
		return
	}
	answer, err := a.verb(r)
	if errors.Is(err, errDropped) {
		return
	}
	if later, ok := answer.(memorising); ok && err == nil {
		a.finally(r, later.answer, later.release)
		return
	}
	if later, ok := answer.(deferred); ok && err == nil {
		if err = a.later(r, later); err == nil {
			return
		}
	}
	a.respond(r, r.Subject(), answer, err)
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

// deferred is the answer to a control request that takes its time.
type deferred func(ctx context.Context) (any, error)

// later answers a request when its answer is ready, with a bound on such requests.
func (a *Aggregator) later(r micro.Request, answer deferred) error {
	select {
	case a.control.asked <- struct{}{}:
	default:
		return &schema.ControlError{Code: schema.CodeUnavailable, Message: fmt.Sprintf("%d requests are already under way; try again", maxAsked)}
	}
	a.finally(r, answer, func() { <-a.control.asked })
	return nil
}

// finally answers a request when its answer is ready, without a bound on such requests, and then
// calls release.
func (a *Aggregator) finally(r micro.Request, answer deferred, release func()) {
	subject, who := r.Subject(), replier{a.connection(r.Subject()), r.Reply()}
	a.life.beside(func() {
		defer release()
		v, err := a.tried(answer)
		if who.reply != "" {
			a.respond(who, subject, v, err)
		}
	})
}

// connection returns the connection of a request.
func (a *Aggregator) connection(subject string) *nats.Conn {
	if verb, _, err := bus.ParseControlSubject(subject); err == nil && !a.agentsMay(verb) {
		return a.opt.Control
	}
	return a.opt.Requests
}

// tried returns an answer, or an error if making it panics, so that no request stops the broker.
func (a *Aggregator) tried(answer deferred) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.opt.Logger.Error("a control request panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the broker failed to serve the request: %v", p)
		}
	}()
	return answer(a.life.ctx)
}

// respond sends an answer, or the error in its place.
func (a *Aggregator) respond(r responder, subject string, answer any, err error) {
	var data []byte
	if err == nil {
		data, err = schema.Marshal(answer)
	}
	if most := a.opt.Control.MaxPayload(); err == nil && int64(len(data)) > most {
		err = fmt.Errorf("the answer has %d bytes, and the NATS server accepts at most %d in one message", len(data), most)
	}
	if err == nil {
		err = r.Respond(data)
	} else {
		err = respondError(r, err)
	}
	if err != nil {
		a.opt.Logger.Warn("cannot answer a control request", "subject", subject, "error", err)
	}
}

func (a *Aggregator) verb(r micro.Request) (any, error) {
	verb, agent, err := bus.ParseControlSubject(r.Subject())
	switch {
	case err != nil:
		return nil, &schema.ControlError{Code: schema.CodeBadRequest, Message: err.Error()}
	case verb == statusVerb:
		var req schema.StatusRequest
		err := readRequest(r, &req)
		return a.status(req), err
	case verb == "config" && agent != "":
		return nil, badRequest("the configuration is not of one agent; send the request to hook.v1.ctl.config._")
	case verb == "config":
		var req schema.ConfigRequest
		err := readRequest(r, &req)
		if err == nil && req.Action != schema.ActionShow && req.Action != schema.ActionHistory {
			err = a.notLate()
		}
		return deferred(func(ctx context.Context) (any, error) { return a.Configure(ctx, &req) }), err
	case verb == "hooks":
		var req schema.HooksRequest
		err := readRequest(r, &req)
		if err == nil && req.Action != schema.ActionList {
			err = a.notLate()
		}
		return deferred(func(ctx context.Context) (any, error) { return a.Hooks(ctx, agent, &req) }), err
	case verb == schema.VerbFreeze || verb == schema.VerbThaw:
		return a.freezing(verb, agent, r)
	}
	if v, ok := a.control.verbs[verb]; ok {
		return a.memorised(v, verb, agent, r)
	}
	return nil, badRequest("there is no control verb %q; use %s", verb, strings.Join(verbNames(), ", "))
}

// notLate refuses a request to change the configuration if this broker may have been stopped or cut
// off. The request may then have waited longer than its client, and other brokers may have changed
// the configuration since.
func (a *Aggregator) notLate() error {
	if a.opt.Lease != nil && a.Version() > 0 && !a.opt.Lease.Fresh(time.Now()) {
		return &schema.ControlError{Code: schema.CodeUnavailable, Message: "this broker was cut off from the fabric when the request arrived; nothing changed, try again"}
	}
	return nil
}

// readRequest reads the body of a request; an empty one is {}.
func readRequest(r micro.Request, into any) error { return readJSON(r.Data(), into) }

func readJSON(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	if err := schema.Unmarshal(data, into); err != nil {
		return badRequest("cannot read the request: %v", err)
	}
	return nil
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

// Status returns the fabric's state as this aggregator knows it.
func (a *Aggregator) Status() schema.FabricStatus {
	s := schema.FabricStatus{
		Fabric: a.opt.Fabric, Version: schema.Release, ConfigVersion: a.Version(),
		InFlight: a.intake.first.queue.underWay() + a.intake.again.queue.underWay(), Pools: a.workers.members.Pools(), LoadErrors: a.workers.members.LoadErrors(),
	}
	if local := a.opt.Local; local != nil {
		beat := local.Beat(schema.DefaultPool)
		maps.Copy(s.LoadErrors, beat.LoadErrors)
		p := pool(&s, schema.DefaultPool)
		p.Workers = append(p.Workers, schema.WorkerStatus{
			Worker: beat.Worker, InFlight: beat.InFlight, Capacity: beat.Capacity,
			Draining: beat.Draining, Versions: beat.Versions,
		})
	}
	a.remembered(&s)
	if f := a.freezes.current.Load(); f != nil {
		s.Frozen = f.Freezes
	}
	s.Limited = a.intake.limits.list()
	if a.config.unfit.Load() {
		s.Trouble = "this broker cannot use the active configuration and answers no call until another version is active; see its log"
	} else if err := a.opt.Trouble(); err != nil {
		s.Trouble = err.Error()
	}
	if act := a.config.active.Load(); act != nil {
		maps.Copy(s.LoadErrors, act.stageErrors())
		s.Ready, s.Hooks = true, act.Config.Written()
		s.Pools = slices.DeleteFunc(s.Pools, func(p schema.PoolStatus) bool { return len(p.Workers) == 0 })
		for i := range act.Config.Hooks {
			if h := &act.Config.Hooks[i]; !h.Stage() {
				pool(&s, h.Pool)
			}
		}
	}
	return s
}

// pool finds a pool in s, or adds it without workers.
func pool(s *schema.FabricStatus, name string) *schema.PoolStatus {
	i, found := slices.BinarySearchFunc(s.Pools, name, func(p schema.PoolStatus, name string) int {
		return strings.Compare(p.Pool, name)
	})
	if !found {
		s.Pools = slices.Insert(s.Pools, i, schema.PoolStatus{Pool: name, Workers: []schema.WorkerStatus{}})
	}
	return &s.Pools[i]
}
