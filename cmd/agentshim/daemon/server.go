package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/cmd/internal/pace"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// maxCalls limits the calls in flight. Hooks above it ask the fabric themselves.
	maxCalls = 2000
	// firstWord is how long a request may take, and lastWord how long the report that an answer was written.
	firstWord = 10 * time.Second
	lastWord  = 30 * time.Second
	longest   = time.Hour // limits the time that a call may take
)

// A Judge judges calls, and knows about the queues of agents. It is a [decide.Judge].
type Judge interface {
	decide.Asker
	Needs(ctx context.Context, agent string) (client.Needs, error)
	Mode(ctx context.Context, agent string, voteOnly *bool) (schema.ModeAnswer, error)
	Checkpoint(ctx context.Context, agent string) error
}

// Options configure a daemon.
type Options struct {
	// Judge judges the calls. It must be safe for concurrent use.
	Judge Judge
	// NATS and Creds identify the fabric of Judge.
	NATS, Creds string
	// Store stores injections and flags for later events; nil: the daemon stores none.
	Store session.Store
	// Versions returns the versions of the runtimes on this machine; nil: unknown.
	Versions func() map[string]string
	// Unreachable is the default of --unreachable for clients that do not set it.
	Unreachable string
	// Workspaces is the default folder for workspaces; empty: each event's cwd.
	Workspaces string
	// Token is the secret of the HTTP endpoint; empty: the daemon rejects all requests.
	Token string
	// Pace gets the number of calls in flight; nil: the daemon does not report it.
	Pace *pace.Pace
	// Log receives errors; nil is slog's default.
	Log *slog.Logger
}

// A Server is a running daemon.
type Server struct {
	large *semaphore.Weighted // counts the bytes of large bodies

	opt     Options
	flights *flights
	began   time.Time
	loops   *loops

	calls  sync.WaitGroup
	active atomic.Int64
	served atomic.Int64
	last   atomic.Int64 // when the last call ended, in Unix nanoseconds
}

// New returns a daemon with the given options.
func New(opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	if opt.Unreachable == "" {
		opt.Unreachable = decide.UnreachableAllow
	}
	s := &Server{opt: opt, flights: newFlights(opt.Judge), began: time.Now(), loops: &loops{byAgent: map[string]*loop{}}, large: semaphore.NewWeighted(maxLarge)}
	s.last.Store(s.began.UnixNano())
	return s
}

// Serve accepts calls at l until ctx ends. Calls in flight continue: see [Server.Wait].
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		c, err := l.AcceptUnix()
		switch {
		case err == nil:
		case errors.Is(err, net.ErrClosed):
			return nil
		default:
			s.opt.Log.Warn("accepting a hook's connection failed", "error", err)
			if !rest(ctx, 50*time.Millisecond) { // out of files, perhaps
				return nil
			}
			continue
		}
		if s.active.Load() >= maxCalls {
			_ = c.Close() // the hook asks the fabric itself
			continue
		}
		s.begin()
		s.calls.Go(func() {
			defer s.end()
			s.call(context.WithoutCancel(ctx), c)
		})
	}
}

func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) begin() { s.opt.Pace.Begun(s.active.Add(1)) }

func (s *Server) end() {
	s.served.Add(1)
	s.last.Store(time.Now().UnixNano())
	s.opt.Pace.Ended(s.active.Add(-1))
}

// Wait waits until all calls have ended or ctx ends.
func (s *Server) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { s.calls.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d calls were still under way: %w", s.active.Load(), context.Cause(ctx))
	}
}

// Idle returns when no request has come for d, or ctx ends; 0: when ctx ends.
func (s *Server) Idle(ctx context.Context, d time.Duration) {
	if d <= 0 {
		<-ctx.Done()
		return
	}
	for {
		quiet := time.Since(time.Unix(0, s.last.Load()))
		if s.active.Load() > 0 {
			quiet = 0
		}
		if quiet >= d || !rest(ctx, d-quiet) {
			return
		}
	}
}

// call answers one connection. A panic affects only this connection.
func (s *Server) call(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	defer func() {
		if p := recover(); p != nil {
			s.opt.Log.Error("a call failed in the daemon; its hook asks the fabric itself", "error", p)
		}
	}()
	if err := peer.CheckConn(c); err != nil {
		s.opt.Log.Warn("rejected a connection", "error", err)
		return
	}
	_ = c.SetDeadline(time.Now().Add(firstWord))
	m, err := frame.Read(c, frame.MaxRequest)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.opt.Log.Debug("rejected an unreadable message of a hook", "error", err)
		}
		return
	}
	t := &talker{conn: c}
	switch {
	case m.Kind == frame.Status:
		body, _ := schema.Marshal(s.Status()) // numbers and texts have no errors
		t.say(&frame.Message{Kind: frame.Answer, Body: body})
	case m.Kind != frame.Hook && m.Kind != frame.Ask:
		t.elsewhere(fmt.Sprintf("this daemon does not know the request kind %q", m.Kind))
	case !s.serves(m.Words[wordNATS], m.Words[wordCreds]):
		t.elsewhere("it serves another fabric")
	case m.Kind == frame.Hook:
		s.hook(ctx, t, m)
	default:
		s.ask(ctx, t, m)
	}
}

// serves reports whether this daemon is connected to the fabric that a client names.
func (s *Server) serves(nats, creds string) bool {
	return (nats == "" || nats == s.opt.NATS) && (creds == "" || creds == s.opt.Creds)
}

// within returns a context that leaves time to encode and write the answer.
func within(ctx context.Context, left time.Duration) (context.Context, context.CancelFunc) {
	d := min(left, longest)
	return context.WithTimeout(ctx, d-min(max(d/10, 30*time.Millisecond), d/2))
}

// respond has a call judged while its client gets heartbeats, and sends the answer. It records the delivery
// when the client confirms it.
func (s *Server) respond(ctx context.Context, t *talker, m *frame.Message, d *delivery, judge func(context.Context) (answer *frame.Message, told func(), err error)) {
	left, err := time.ParseDuration(m.Words[wordLeft])
	if err != nil {
		t.elsewhere(fmt.Sprintf("the time left is %.20q, which is not a duration", m.Words[wordLeft]))
		return
	}
	ctx, cancel := within(ctx, left)
	defer cancel()
	defer d.gone()
	stop := t.beating()
	answer, told, err := judge(ctx)
	stop()
	if err != nil {
		t.elsewhere(err.Error()) // of another release, perhaps: the client knows better
		return
	}
	if t.say(answer) && t.heardWritten() {
		told()
		d.written(ctx)
	}
}

func (s *Server) hook(ctx context.Context, t *talker, m *frame.Message) {
	d := &delivery{all: s.flights}
	s.respond(ctx, t, m, d, func(ctx context.Context) (*frame.Message, func(), error) {
		r := request(m)
		settings, err := s.settings(r)
		if err != nil {
			return nil, nil, err
		}
		var unread error
		if r.Unread != "" {
			unread = errors.New(r.Unread)
		}
		said, log := s.exchange(ctx, settings, d, r.Payload, unread)
		return &frame.Message{Kind: frame.Answer, Body: said.Stdout,
			Words: words(wordStderr, said.Answer.Stderr, wordReason, log, wordExit, strconv.Itoa(said.Exit))}, said.Told, nil
	})
}

// exchange answers a payload, and returns messages for people. unread is why the payload is incomplete.
func (s *Server) exchange(ctx context.Context, settings session.Settings, d *delivery, payload []byte, unread error) (session.Reply, string) {
	var log logged
	x := session.Exchange{Settings: settings, Asker: d, Stderr: program.Messages(&log)}
	if s.opt.Store != nil {
		x.Store = deliveryStore{s.opt.Store, d}
	}
	r := x.Run(ctx, payload, unread)
	return r, log.String()
}

func (s *Server) settings(r *Request) (x session.Settings, err error) {
	x = session.Settings{Runtime: r.Runtime, Agent: r.Agent, EventID: r.EventID, Workspaces: r.Workspaces, Unreachable: r.Unreachable, Env: r.Env,
		Versions: s.opt.Versions}
	if x.Unreachable == "" {
		x.Unreachable = s.opt.Unreachable
	}
	if x.Workspaces == "" {
		x.Workspaces = s.opt.Workspaces
	}
	if x.Dialect, err = dialect.For(r.Runtime); err != nil {
		return x, err
	}
	if r.Event != "" {
		x.Moment, err = dialect.Find(x.Dialect, r.Event)
	}
	return x, err
}

// ask has an event in the fabric's own form judged: see [Client].
func (s *Server) ask(ctx context.Context, t *talker, m *frame.Message) {
	d := &delivery{all: s.flights, borrow: m.Words[wordBorrow] != ""}
	s.respond(ctx, t, m, d, func(ctx context.Context) (*frame.Message, func(), error) {
		q, err := s.question(m)
		if err != nil {
			return nil, nil, err
		}
		j := d.Ask(ctx, q)
		answer := &frame.Message{Kind: frame.Answer, Words: words(wordID, j.Verdict.EventID)}
		if j.Unjudged != nil {
			answer.Words[wordUnjudged] = j.Unjudged.Error()
		}
		answer.Body, err = schema.Marshal(j.Verdict)
		return answer, func() {}, err
	})
}

func (s *Server) question(m *frame.Message) (q decide.Question, err error) {
	e := new(schema.Event)
	if err := schema.Unmarshal(m.Body, e); err != nil {
		return q, err
	}
	if e.AgentID == "" || !e.HookType.Known() {
		return q, errors.New("the event names no agent, or an unknown event type")
	}
	w := m.Words
	e.Mute, e.MidTurn = w[wordMute] != "", w[wordMidTurn] != "" // the event's JSON does not contain them
	q = decide.Question{
		Event: e, Workspaces: w[wordWorkspaces], Unreachable: w[wordUnreachable],
		Key: w[wordKey], Pair: w[wordPair], ByID: w[wordByID] != "", Apart: w[wordApart], Native: []byte(w[wordNative]),
	}
	if q.Unreachable == "" {
		q.Unreachable = s.opt.Unreachable
	}
	if w[wordUnreadable] != "" {
		q.Unreadable = errors.New(w[wordUnreadable])
	}
	return q, nil
}

// A Status describes a running daemon.
type Status struct {
	// Release is the version of the program.
	Release string `json:"release"`
	PID     int    `json:"pid"`
	// Began is when the daemon started.
	Began time.Time `json:"began"`
	// NATS is the URL of the fabric, without names and passwords.
	NATS string `json:"nats"`
	// Calls counts answered calls, Active those in flight, and Shared further deliveries of judged calls.
	// SharedByContent are those of Shared without a runtime's id, perhaps the same call made again.
	Calls           int64 `json:"calls"`
	Active          int64 `json:"active"`
	Shared          int64 `json:"shared"`
	SharedByContent int64 `json:"shared_by_content"`
}

// Status returns the current status of the daemon.
func (s *Server) Status() Status {
	s.flights.mu.Lock()
	shared := s.flights.shared
	s.flights.mu.Unlock()
	return Status{Release: schema.Release, PID: os.Getpid(), Began: s.began.UTC(), NATS: bus.RedactURL(s.opt.NATS),
		Calls: s.served.Load(), Active: s.active.Load(), Shared: shared.byID + shared.byContent, SharedByContent: shared.byContent}
}

// Ask returns the status of the daemon at a socket.
func Ask(ctx context.Context, socket string) (st Status, err error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(silence)
	}
	l, err := (&Client{Socket: socket}).dial(ctx)
	if err != nil {
		return st, err
	}
	defer l.Close()
	m, err := talk(l, &frame.Message{Kind: frame.Status}, deadline)
	if err != nil {
		return st, err
	}
	return st, schema.Unmarshal(m.Body, &st)
}
