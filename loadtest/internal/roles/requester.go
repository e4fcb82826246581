package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// A Way is one way of asking for a verdict.
type Way string

// The ways.
const (
	Raw          Way = "raw"
	InsideServer Way = "inside"
	Relayed      Way = "relayed"
	Fabric       Way = "fabric"
	Hook         Way = "webhook"
	TwoStages    Way = "two-stages"
	Command      Way = "command"
)

// A Target says what to ask, in which way, and what the answer must be.
type Target struct {
	Way Way `json:"way"`
	// Tool is the event's tool, which selects the hooks of the fabric.
	Tool string `json:"tool,omitzero"`
	// Event is the type of the events; empty: PreToolUse.
	Event schema.EventType `json:"event,omitzero"`
	// Hooks is how many hooks must have allowed; 0: no hook judges the event.
	Hooks int `json:"hooks"`
	// Query runs a whole query instead of one question; nil: one question.
	Query *Query `json:"query,omitzero"`
	// Agents ask in turn over this number of connections, each agent always over the same
	// one; 0 of both counts as 1. Prefix starts their names; empty: there is one agent.
	Agents      int    `json:"agents,omitzero"`
	Connections int    `json:"connections,omitzero"`
	Prefix      string `json:"prefix,omitzero"`
	// Fresh gives every call a new tool or a new agent: the name gets a number.
	Fresh Fresh `json:"fresh,omitzero"`
}

// Fresh says which part of each call is new.
type Fresh string

// The parts that may be new. The zero Fresh means no part.
const (
	FreshTool  Fresh = "tool"
	FreshAgent Fresh = "agent"
)

// Places are the addresses of the responders; empty: that way is not measured.
type Places struct {
	NATS    string `json:"nats,omitzero"`
	Inside  string `json:"inside,omitzero"`
	Fabric  string `json:"fabric,omitzero"`
	Webhook string `json:"webhook,omitzero"`
	Stages  string `json:"stages,omitzero"`
	// Host is the number of the host that the requester stands for: its connections to the
	// fabric come from its own addresses. 0: from the address of this host.
	Host uint8 `json:"host,omitzero"`
}

// A Request makes the requester do one of four things: open more connections to the fabric
// (Open), wait until the agents of all connections get answers (Back), make every agent ask
// once (Each), or measure a window. A window without callers waits until the target answers
// correctly. The answer is the figures of that.
type Request struct {
	Target Target      `json:"target"`
	Window load.Window `json:"window"`
	Open   int         `json:"open,omitzero"`
	Back   bool        `json:"back,omitzero"`
	Each   bool        `json:"each,omitzero"`
}

const (
	// dialers is how many connections a requester opens at the same time, because hosts
	// start one after the other.
	dialers = 16
	// perAddress is the number of connections from one address. Connections from one
	// address to a server share 28,000 ports. If most of them are in use or in TIME_WAIT,
	// the kernel searches milliseconds for the next one. A real fleet does not have this
	// limit, because each of its hosts has its own address.
	perAddress = 250
	// thinks is how long an agent pauses, on average, until its next question: models take
	// seconds until they use the next tool.
	thinks = 5 * time.Second
	// backIn limits how long a requester waits until all of its agents get answers again,
	// and awaitIn how long it waits for the first right answer.
	backIn  = 60 * time.Second
	awaitIn = 20 * time.Second
)

// ask asks once for a verdict of the given number of hooks.
type ask func(ctx context.Context, e *schema.Event, hooks int) (*schema.Verdict, error)

// requester has connections of each kind, for any number of callers.
type requester struct {
	at      Places
	asks    map[Way]ask
	mu      sync.Mutex // guards conns while they are opened
	conns   []*client.Client
	closers []func() error
	next    atomic.Int64 // call
	fresh   atomic.Int64 // the number of the last new name
}

func startRequester(ctx context.Context, at Places) (*proc.Role, error) {
	r := &requester{at: at, asks: map[Way]ask{}}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &proc.Role{Do: proc.Asked(r.do), Close: r.close}, nil
}

func (r *requester) start(ctx context.Context) error {
	for _, bare := range []struct {
		url  string
		asks map[Way]string
	}{{r.at.NATS, map[Way]string{Raw: rawSubject}}, {r.at.Inside, map[Way]string{InsideServer: insideSubject, Relayed: relaySubject}}} {
		if bare.url == "" {
			continue
		}
		nc, err := connect(bare.url, "loadtest "+Requester)
		if err != nil {
			return err
		}
		r.closers = append(r.closers, closing(nc))
		for way, subject := range bare.asks {
			r.asks[way] = rawAsk(nc, subject)
		}
	}
	c := keepAlive()
	r.asks[Hook], r.asks[TwoStages] = httpAsk(c, r.at.Webhook), httpAsk(c, r.at.Stages)
	program, err := exec.LookPath("true")
	if err != nil {
		return fmt.Errorf("looking for a tiny program to spawn: %w", err)
	}
	r.asks[Command] = commandAsk(program)
	if r.at.Fabric == "" {
		return nil
	}
	if err := r.dial(ctx, 0); err != nil {
		return fmt.Errorf("connecting to the fabric at %s: %w", r.at.Fabric, err)
	}
	r.asks[Fabric] = fabricAsk(r.conns[0])
	return nil
}

// dial opens connection i to the fabric.
func (r *requester) dial(ctx context.Context, i int) error {
	var from netip.Addr
	if r.at.Host > 0 && runtime.GOOS == "linux" { // other systems have one loopback address
		from = netip.AddrFrom4([4]byte{127, 2, r.at.Host, byte(1 + i/perAddress%250)})
	}
	c, err := client.Connect(ctx, client.Options{URL: r.at.Fabric, Name: "loadtest " + Requester, From: from})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, c)
	return nil
}

func (r *requester) close() error {
	for _, c := range r.conns {
		c.Close()
	}
	var errs []error
	for _, c := range r.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

func (r *requester) do(ctx context.Context, q Request) (any, error) {
	switch {
	case q.Open > 0:
		return load.Calls(ctx, min(dialers, q.Open), q.Open, r.dial)
	case q.Back:
		return r.back(ctx, q.Target)
	}
	call, err := r.call(ctx, q.Target)
	if err != nil {
		return nil, err
	}
	next := func(ctx context.Context) error { return call(ctx, int(r.next.Add(1))) }
	switch {
	case q.Each:
		return load.Calls(ctx, dialers, max(q.Target.Agents, 1), call)
	case q.Window.Callers == 0:
		ctx, cancel := context.WithTimeoutCause(ctx, awaitIn, fmt.Errorf("no right answer within %v", awaitIn))
		defer cancel()
		return load.Figures{}, load.Until(ctx, 50*time.Millisecond, next)
	}
	return load.Run(ctx, q.Window, next)
}

// call returns a function that makes the i-th call of t: it sends a fresh event and checks the
// verdict.
func (r *requester) call(ctx context.Context, t Target) (func(ctx context.Context, i int) error, error) {
	via, agents, conns := r.asks[t.Way], max(t.Agents, 1), max(t.Connections, 1)
	switch {
	case via == nil:
		return nil, fmt.Errorf("the requester has no target for the way %q", t.Way)
	case t.Way == Fabric && conns > len(r.conns):
		return nil, fmt.Errorf("the requester has %d connections, not %d", len(r.conns), conns)
	case t.Query != nil && t.Way == Fabric:
		return t.Query.byLoop(r.conns[0]), nil
	case t.Query != nil:
		return t.Query.byHand(ctx, via)
	}
	s, err := newSample(t.Tool)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, i int) error {
		e, err := s.event()
		if err != nil {
			return err
		}
		who, ask := i%agents, via
		r.address(e, t, who)
		if conns > 1 {
			ask = fabricAsk(r.conns[who%conns])
		}
		v, err := ask(ctx, e, t.Hooks)
		if err != nil {
			return err
		}
		return check(v, t.Hooks)
	}, nil
}

// address makes the event one of an agent, and of the target's kind.
func (r *requester) address(e *schema.Event, t Target, who int) {
	if t.Event != "" {
		e.HookType, e.ToolOutput = t.Event, jsontext.Value(`"done"`)
	}
	if t.Prefix == "" && t.Fresh == "" {
		return
	}
	e.AgentID = cmp.Or(t.Prefix, "agent-") + strconv.Itoa(who)
	switch t.Fresh {
	case FreshTool:
		e.ToolName += "-" + strconv.FormatInt(r.fresh.Add(1), 10)
	case FreshAgent:
		e.AgentID += "-" + strconv.FormatInt(r.fresh.Add(1), 10)
	}
	e.SessionID = "s-" + e.AgentID
}

// back makes each connection's agent ask until its event is judged, all at once, and
// returns how long that took. With so many at once, brokers may reject some requests.
func (r *requester) back(ctx context.Context, t Target) (load.Figures, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, backIn, fmt.Errorf("not all agents were answered again within %v", backIn))
	defer cancel()
	n := len(r.conns)
	t.Agents, t.Connections = n, n
	call, err := r.call(ctx, t)
	if err != nil {
		return load.Figures{}, err
	}
	return load.Calls(ctx, n, n, func(_ context.Context, i int) error { // a call may take longer than one of a window
		for {
			err := call(ctx, i)
			if !errors.Is(err, client.ErrUnreachable) && !errors.Is(err, client.ErrUnanswered) && !errors.Is(err, errTurnedAway) {
				return err
			}
			if !load.Pause(ctx, thinks/2+rand.N(thinks)) {
				return errors.Join(context.Cause(ctx), err)
			}
		}
	})
}
