package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// The reasons why the fabric did not judge an event. Errors of Ask wrap one of them.
var (
	// ErrUnreachable means that the client reached no aggregator in time.
	ErrUnreachable = errors.New("the fabric is unreachable")
	// ErrUnanswered means that the client reached an aggregator but received no answer in time.
	ErrUnanswered = errors.New("the fabric did not answer in time")
	// ErrTooLarge means that the event is too large to send. Ask does not return it, because it
	// asks about such an event without its contents.
	ErrTooLarge = errors.New("the event is too large to send")
	// ErrInvalid means that the event is not valid.
	ErrInvalid = errors.New("the event cannot be asked about")
)

// DefaultTimeout is how long Ask waits if its context has no deadline.
const DefaultTimeout = 60 * time.Second

// Options says how to reach the fabric.
type Options struct {
	// URL is the address of the bus; empty: nats://127.0.0.1:4222.
	URL string
	// Creds is the path of a NATS credentials file; empty: no credentials.
	Creds string
	// TLS configures certificates. The zero value trusts the system's authorities and presents
	// no certificate.
	TLS certs.Files
	// Name is the name of the connection, for operators; empty: "hookfabric-client".
	Name string
	// From is the local address of the connection. It must have the server's address family.
	// The zero Addr: the system chooses. It has no effect with InProcess.
	From netip.Addr
	// InProcess connects to a server in this process, instead of URL.
	InProcess nats.InProcessConnProvider
	// Timeout is how long Ask waits if its context has no deadline; 0: DefaultTimeout.
	Timeout time.Duration
	// Workspaces is the folder in which the client unpacks other agents' workspaces, below
	// temp_workspaces. Empty: the client does not unpack them, and the texts that name them say
	// so.
	Workspaces string
	// Trace returns the trace position of a context, for programs with another tracing library.
	// Nil: [trace.From].
	Trace func(ctx context.Context) *trace.Context
	// Logger is the logger; nil: slog's default.
	Logger *slog.Logger
}

// A Client asks the fabric over one connection. Several goroutines may use it.
type Client struct {
	nc      *nats.Conn
	out     *bus.Publisher // on nc
	timeout time.Duration
	trace   func(context.Context) *trace.Context
	inbox   string // with a trailing dot
	next    atomic.Uint64
	late    atomic.Uint64
	closed  chan struct{} // closed by Close
	closing sync.Once
	log     *slog.Logger

	envelopes bus.Envelopes
	inboxes   sync.Pool // unused *replyInbox
	backoff   backoff

	deliveryLog *deliveryLog
	needs       needs  // which hooks need the conversation
	stored      stored // the parts of conversations that the fabric has
	workspaces  string
	wake        chan struct{}   // wakes the acker
	life        context.Context // ends with Close
	end         context.CancelFunc
	background  sync.WaitGroup

	creds string // path of the credentials for errors; empty: no credentials

	mu      sync.Mutex      // guards the fields below
	acking  bool            // the acker runs
	waiting map[string]*ask // by the last token of the reply subject
	// controlRequests are the control requests in progress.
	controlRequests map[*controlRequest]struct{}
	connected       chan struct{} // closed while connected
	lost            chan struct{} // closed when the connection is lost
	lostAt          time.Time     // when it was last lost
	forcedAt        time.Time     // when a call last forced a reconnect
	refusal         error         // why the client cannot connect or receive answers; nil: no reason is known
	leftAt          time.Time     // when the client last left a server without aggregators
	paused          chan struct{} // closed when calls may start again; nil: they may
	idle            chan struct{} // closed when no call is in progress; nil: not waited for
}

// Connect connects to the bus. It returns an error if that fails before ctx ends. Later the
// client reconnects by itself.
func Connect(ctx context.Context, opt Options) (*Client, error) {
	opt.Timeout = cmp.Or(opt.Timeout, DefaultTimeout)
	opt.Name = cmp.Or(opt.Name, "hookfabric-client")
	if opt.Trace == nil {
		opt.Trace = trace.From
	}
	opt.Logger = cmp.Or(opt.Logger, slog.Default())
	c := &Client{
		trace: opt.Trace, log: opt.Logger, deliveryLog: newDeliveryLog(), workspaces: opt.Workspaces, wake: make(chan struct{}, 1),
		timeout: opt.Timeout, waiting: make(map[string]*ask), controlRequests: make(map[*controlRequest]struct{}), closed: make(chan struct{}),
		connected: make(chan struct{}), lost: make(chan struct{}),
	}
	if opt.Creds != "" {
		c.creds = " in " + opt.Creds
	}
	close(c.connected)
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	nc, err := bus.Connect(ctx, bus.Options{
		URL: opt.URL, Creds: opt.Creds, TLS: opt.TLS, Role: "agent", Name: opt.Name, From: opt.From, InProcess: opt.InProcess,
		Logger: opt.Logger, OnState: c.state, OnLeaving: c.leaving, OnDenied: c.denied, OnRefused: c.refused,
	})
	if err != nil {
		c.end()
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	c.nc, c.out, c.inbox = nc, bus.NewPublisher(nc), nc.NewInbox()+"."
	if _, err := nc.Subscribe(c.inbox+"*", c.reply); err != nil {
		c.end()
		nc.Close()
		return nil, fmt.Errorf("subscribing to replies: %w", err)
	}
	return c, nil
}

// Close ends the connection. Calls in progress fail, and noted acknowledgements are lost; call
// [Client.Flush] first.
func (c *Client) Close() {
	c.closing.Do(func() {
		c.mu.Lock() // no acker starts after this
		close(c.closed)
		c.mu.Unlock()
		c.end()
	})
	c.nc.Close()
	c.background.Wait()
}

// connection returns a channel that is closed while there is a connection, one that
// closes when it is lost, and the time of the last loss.
func (c *Client) connection() (connected, lost chan struct{}, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected, c.lost, c.lostAt
}

// state records the state of the connection, so that calls know when to ask again.
func (c *Client) state(connected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := isClosed(c.connected)
	switch {
	case connected && !was:
		close(c.connected)
		c.lost, c.refusal = make(chan struct{}), nil
	case !connected && was:
		c.connected, c.lostAt = make(chan struct{}), time.Now()
		close(c.lost)
	}
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Late returns the number of answers that arrived after their calls had ended. The client
// ignores them.
func (c *Client) Late() uint64 { return c.late.Load() }

// reply passes an answer or a beat to its call. A message without a body is a beat, or
// the server's status that no subscriber listens.
func (c *Client) reply(m *nats.Msg) {
	token := strings.TrimPrefix(m.Subject, c.inbox)
	c.mu.Lock()
	a := c.waiting[token]
	c.mu.Unlock()
	switch {
	case a == nil && len(m.Data) > 0:
		c.late.Add(1)
	case a == nil:
	case len(m.Data) > 0 || m.Header.Get("Status") == "503":
		select {
		case a.answers <- m:
		default: // more answers than there can be aggregators
		}
	default:
		select {
		case a.beats <- struct{}{}:
		default: // one beat is enough
		}
	}
}

// Ask asks the fabric to judge e and waits for the verdict. It returns shortly before ctx ends,
// so that the caller has time to act. It does not change e, and sends it with an id if it has
// none. If e is too large, Ask sends it without its contents, as [Client.AskUnreadable] does.
//
// The verdict also contains the items that waited for the agent. They are complete: Ask has
// fetched long texts and unpacked workspaces. When the agent has read them, call
// [Client.Handed] with the verdict's EventID. Otherwise the fabric delivers them again.
func (c *Client) Ask(ctx context.Context, e *schema.Event, how ...AskOption) (*schema.Verdict, error) {
	a, err := c.prepare(e, how)
	if err != nil {
		return nil, err
	}
	if err := c.encode(ctx, a); err != nil {
		return nil, err
	}
	v, err := c.run(ctx, a)
	if errors.Is(err, ErrTooLarge) {
		return c.AskUnreadable(ctx, e, err, how...)
	}
	return v, err
}

// AskUnreadable asks about an event whose contents the fabric cannot judge, for the reason why.
// The fabric refuses a guarded call, and lets any other call pass with the reason in the
// verdict. It uses only the routing of e.
func (c *Client) AskUnreadable(ctx context.Context, e *schema.Event, why error, how ...AskOption) (*schema.Verdict, error) {
	a, err := c.prepare(&schema.Event{
		HookType: e.HookType, AgentID: e.AgentID, SessionID: e.SessionID, EventID: e.EventID, ToolName: e.ToolName, Mute: e.Mute, MidTurn: e.MidTurn,
	}, how)
	if err != nil {
		return nil, err
	}
	a.body = bus.UnreadBody(why)
	v, err := c.run(ctx, a)
	if err != nil {
		return nil, err
	}
	v.HookErrors = []string{fmt.Sprintf("malformed event: %v", why)}
	if e.HookType.Terminal(v.Decision) && !v.Frozen {
		v.Reason = fmt.Sprintf("a fail-closed hook guards this call, and its event cannot be judged: %v", why)
	}
	return v, nil
}

// run asks within the deadline of the call.
func (c *Client) run(ctx context.Context, a *ask) (*schema.Verdict, error) {
	if len(a.body) > schema.MaxEvent {
		return nil, fmt.Errorf("%w: %d bytes; at most %d", ErrTooLarge, len(a.body), schema.MaxEvent)
	}
	a.routing.Trace = c.trace(ctx)
	now := time.Now()
	a.until = now.Add(c.timeout)
	if deadline, ok := ctx.Deadline(); ok {
		a.until = deadline
	}
	a.end = a.until.Add(-schema.Margin(a.until.Sub(now)) / 2)
	c.begin(ctx, a)
	answered := false
	defer func() { c.ended(a, answered) }()
	if pause := c.backoff.pause(a.end.Sub(now)); pause > 0 {
		c.sleep(ctx, pause)
	}
	a.acks = c.deliveryLog.pendingAcks(a.routing.Agent)
	v, err := a.wait(ctx)
	c.backoff.after(err)
	if answered = err == nil; answered {
		c.observe(a, v)
		c.receive(ctx, a, v)
	}
	return v, err
}

// prepare checks e and makes its call.
func (c *Client) prepare(e *schema.Event, how []AskOption) (*ask, error) {
	event := *e
	if event.AgentID == "" {
		return nil, fmt.Errorf("%w: agent_id is empty; name the agent", ErrInvalid)
	}
	t, err := schema.ParseEventType(string(event.HookType))
	if err != nil {
		return nil, fmt.Errorf("%w: hook_type: %w", ErrInvalid, err)
	}
	event.HookType = t
	if event.EventID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("making an event id: %w", err)
		}
		event.EventID = id.String()
	}
	subject, err := bus.EventSubject(event.AgentID, event.HookType)
	if err != nil {
		return nil, fmt.Errorf("%w: agent_id: %w", ErrInvalid, err)
	}
	a := &ask{
		c: c, workspaces: c.workspaces, subject: subject, event: event, replyInbox: c.takeInbox(),
		routing: schema.Routing{
			Event: event.HookType, Agent: event.AgentID, Session: event.SessionID,
			Tool: event.ToolName, ID: event.EventID, Mute: event.Mute, MidTurn: event.MidTurn,
		},
	}
	for _, option := range how {
		option(a)
	}
	return a, nil
}

// encode encodes the event, with the conversation if hooks need it.
func (c *Client) encode(ctx context.Context, a *ask) (err error) {
	c.addConversation(ctx, a)
	a.body, err = schema.Marshal(&a.event)
	if err == nil && len(a.body) > schema.MaxEvent && a.event.History != nil {
		a.omit("the event has no room for it")
		a.body, err = schema.Marshal(&a.event)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// spawn runs do in the background, unless the client was closed.
func (c *Client) spawn(do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isClosed(c.closed) {
		return false
	}
	c.background.Go(do)
	return true
}

// An AskOption changes how Ask asks about one event.
type AskOption func(*ask)

// In unpacks other agents' workspaces from this verdict below folder, instead of
// [Options.Workspaces]. An empty folder unpacks nothing.
func In(folder string) AskOption { return func(a *ask) { a.workspaces = folder } }
