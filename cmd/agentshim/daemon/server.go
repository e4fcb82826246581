package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/cmd/internal/pace"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

const (
	// maxCalls limits the number of calls in flight. Hooks above the limit ask the fabric
	// themselves.
	maxCalls = 2000
	// firstWord is how long a new connection may take to send its request. lastWord is how
	// long the daemon waits for the report that an answer was written: a lease lasts as
	// long.
	firstWord = 10 * time.Second
	lastWord  = 30 * time.Second
	// longest limits the time that a call may take.
	longest = time.Hour
)

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
	s := &Server{opt: opt, flights: newFlights(opt.Judge), began: time.Now(), loops: newLoops(), large: semaphore.NewWeighted(maxLarge)}
	s.last.Store(s.began.UnixNano())
	return s
}

// Serve accepts calls at l until l is closed or ctx ends. Calls in flight continue: see
// [Server.Wait].
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

// Idle returns when no request has come for d, or when ctx ends. If d is 0, it waits for
// ctx only.
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
		s.sayStatus(t)
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

// within returns a context that ends shortly before the client stops waiting.
func within(ctx context.Context, left string) (context.Context, context.CancelFunc, error) {
	d, err := time.ParseDuration(left)
	if err != nil {
		return nil, nil, fmt.Errorf("the time left is %.20q, which is not a duration", left)
	}
	d = min(d, longest)
	// Leave time to encode and write the answer.
	ctx, cancel := context.WithTimeout(ctx, d-min(max(d/10, 30*time.Millisecond), d/2))
	return ctx, cancel, nil
}

// hook answers a hook's request.
func (s *Server) hook(ctx context.Context, t *talker, m *frame.Message) {
	r := request(m)
	settings, err := s.settings(r)
	if err != nil {
		t.elsewhere(err.Error()) // of another release, perhaps: the hook knows better
		return
	}
	ctx, cancel, err := within(ctx, m.Words[wordLeft])
	if err != nil {
		t.elsewhere(err.Error())
		return
	}
	defer cancel()
	d := &delivery{all: s.flights}
	defer d.gone()
	var unread error
	if r.Unread != "" {
		unread = errors.New(r.Unread)
	}
	stop := t.beating()
	said, log := s.exchange(ctx, settings, d, exchanged{r.Payload, unread})
	stop()
	answer := &frame.Message{Kind: frame.Answer, Body: said.Stdout,
		Words: words(wordStderr, said.Answer.Stderr, wordReason, log, wordExit, strconv.Itoa(said.Exit))}
	if t.say(answer) && t.heardWritten() {
		said.Told()
		d.written(ctx)
	}
}

// exchanged is the input of a runtime.
type exchanged struct {
	payload []byte
	unread  error
}

// exchange answers one input, and also returns messages for people.
func (s *Server) exchange(ctx context.Context, settings session.Settings, d *delivery, in exchanged) (session.Reply, string) {
	var log logged
	x := session.Exchange{Settings: settings, Asker: d, Stderr: program.Messages(&log)}
	if s.opt.Store != nil {
		x.Store = deliveryStore{s.opt.Store, d}
	}
	r := x.Run(ctx, in.payload, in.unread)
	return r, log.String()
}

// settings converts the settings of a hook's command line.
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
