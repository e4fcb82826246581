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
	// maxCalls bounds the calls under way; hooks beyond it ask the fabric themselves.
	maxCalls = 2000
	// firstWord is how long somebody who connected has to say what he wants, and
	// lastWord how long the daemon waits to hear that an answer was written: a
	// lease lasts as long.
	firstWord = 10 * time.Second
	lastWord  = 30 * time.Second
	// longest bounds the time that a call may take.
	longest = time.Hour
)

// Options say how a daemon judges.
type Options struct {
	// Judge judges; it serves many goroutines.
	Judge Judge
	// NATS and Creds are the fabric that it reaches.
	NATS, Creds string
	// Store stores injections and flags for later events; nil: the daemon stores none.
	Store session.Store
	// Versions are those of the runtimes on this machine; nil: unknown.
	Versions func() map[string]string
	// Unreachable is the word of --unreachable for those who do not say it.
	Unreachable string
	// Workspaces is the folder for workspaces of those who do not name one; empty:
	// each event's cwd.
	Workspaces string
	// Token is the secret of the HTTP endpoint; empty: nobody knows it.
	Token string
	// Pace hears how many calls are under way; nil: nobody does.
	Pace *pace.Pace
	// Log hears what goes wrong; nil is slog's default.
	Log *slog.Logger
}

// A Server is a daemon at work.
type Server struct {
	large *semaphore.Weighted // held by the bytes of large bodies

	opt     Options
	flights *flights
	began   time.Time
	loops   *loops

	calls  sync.WaitGroup
	active atomic.Int64
	served atomic.Int64
	last   atomic.Int64 // when the last call ended, in Unix nanoseconds
}

// New makes a daemon.
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

// Serve takes calls at l until it is closed or ctx ends; calls under way go on:
// see [Server.Wait].
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
			_ = c.Close() // it asks the fabric itself
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

// Wait waits until all calls have ended, or ctx does.
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

// Idle returns when nobody has asked for d, or ctx ends; d 0: then only.
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

// call answers one connection. Whatever goes wrong with it is only its own.
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

// serves reports whether this daemon reaches the fabric that somebody means.
func (s *Server) serves(nats, creds string) bool {
	return (nats == "" || nats == s.opt.NATS) && (creds == "" || creds == s.opt.Creds)
}

// within is the time that somebody gives the daemon.
func within(ctx context.Context, left string) (context.Context, context.CancelFunc, error) {
	d, err := time.ParseDuration(left)
	if err != nil {
		return nil, nil, fmt.Errorf("the time left is %.20q, which is not a duration", left)
	}
	d = min(d, longest)
	// There must be time to say and to write what came of it.
	ctx, cancel := context.WithTimeout(ctx, d-min(max(d/10, 30*time.Millisecond), d/2))
	return ctx, cancel, nil
}

// hook makes the exchange of a hook.
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

// exchanged is what a runtime sent.
type exchanged struct {
	payload []byte
	unread  error
}

// exchange runs one, and returns also what people should know.
func (s *Server) exchange(ctx context.Context, settings session.Settings, d *delivery, in exchanged) (session.Reply, string) {
	var log logged
	x := session.Exchange{Settings: settings, Asker: d, Stderr: program.Messages(&log)}
	if s.opt.Store != nil {
		x.Store = deliveryStore{s.opt.Store, d}
	}
	r := x.Run(ctx, in.payload, in.unread)
	return r, log.String()
}

// settings are those of a hook's command line.
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
