package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/cmd/internal/otlp"
	"github.com/hookfabric/hookfabric/cmd/internal/pace"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// finishing limits how long calls in flight may take when the daemon ends.
const finishing = 10 * time.Second

type serve struct {
	link

	socket, http, unreachable string
	idle                      time.Duration

	stderr io.Writer
	log    *slog.Logger
	judge  *decide.Judge
	server *daemon.Server
}

func serveCommand() *cobra.Command {
	var s serve
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the local daemon: one connection to the fabric for all hooks, proxies and agent loops of this user",
		Long: "serve is the local daemon of one user. Hooks and MCP proxies find its unix socket themselves and answer\n" +
			"faster with it. Only this user and root can use the socket. Runtimes with HTTP hooks and agent loops use\n" +
			"HTTP on loopback, with the token in the file daemon.token. The file daemon.json in --state has the addresses\n" +
			"and the path of the token.\n\n" +
			"At SIGTERM, serve answers the calls under way, for at most 10s, and ends.",
		Example: "  agentshim serve --nats nats://127.0.0.1:4222",
		Args:    program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if s.unreachable == "" && c.Flags().Changed("unreachable") {
				return program.UsageError("--unreachable is empty; write deny or allow")
			}
			if err := checkUnreachable(&s.unreachable, false); err != nil {
				return err
			}
			if s.idle < 0 {
				return program.UsageError("--idle is %s; write a duration such as 30m, or 0 for never", s.idle)
			}
			s.stderr = c.ErrOrStderr()
			s.resolve(c.Flags())
			return s.run(c.Context())
		},
	}
	f := c.Flags()
	s.link.flags(f, "the working folder (cwd) of each event")
	socketFlag(f, &s.socket, "")
	f.StringVar(&s.http, "http", daemon.DefaultHTTP, "loopback address `HOST:PORT` for HTTP; port 0 chooses a free port; empty: no HTTP")
	unreachableFlag(c, &s.unreachable, "deny or allow calls when the fabric does not answer and no policy is known; clients may choose differently; default: allow")
	program.DurationVar(f, &s.idle, "idle", 0, "end after this time without a call, such as 30m; 0: never")
	return c
}

// crowd is the number of calls in flight from which on the daemon uses all processors.
const crowd = 4

// run serves until ctx ends or the daemon has been idle for --idle.
func (s *serve) run(ctx context.Context) (err error) {
	if s.log, err = program.Logger(s.stderr); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	program.Tune()
	s.state, s.socket, s.creds = absolute(s.state), absolute(s.socket), absolute(s.creds)
	s.tls = certs.Files{CA: absolute(s.tls.CA), Cert: absolute(s.tls.Cert), Key: absolute(s.tls.Key)}
	place := daemon.Place{State: s.state, At: s.socket}
	sockets, free, err := s.listen(place)
	if errors.Is(err, daemon.ErrTaken) && s.idle > 0 {
		s.log.Info("another daemon already serves this socket", "socket", place.Socket())
		return nil // two hooks started one
	}
	if err != nil {
		return err
	}
	defer free()
	s.unnamed = true // its clients name no fabric either
	l := s.judgeLink("agentshim-daemon", s.stderr, s.log)
	spans := otlp.FromEnvironment(service, s.log)
	l.Tracer = spans.Tracer()
	defer spans.CloseIn(finishing)
	s.judge = decide.NewResident(l)
	defer s.judge.Close()
	token, err := place.MakeToken()
	if err != nil {
		return fmt.Errorf("the secret of the HTTP endpoint: %w", err)
	}
	opt := daemon.Options{Judge: s.judge, NATS: s.nats, Creds: s.creds, Unreachable: s.unreachable, Token: token, Log: s.log,
		Workspaces: absolute(s.workspaces)}
	var leave func()
	opt.Pace, leave = pace.Start(crowd)
	defer leave()
	if err := shimstate.Folder(s.state).Usable(); err != nil {
		s.log.Error("cannot write the state folder, so the policy is not stored; while neither this daemon nor the fabric answers, hooks refuse every call", "error", err)
	}
	if s.state != "" {
		opt.Store, opt.Versions = shimstate.Folder(s.state), shimstate.Folder(s.state).Versions
	}
	s.server = daemon.New(opt)
	return s.serve(ctx, place, sockets)
}

// listen returns the sockets for hooks: those of systemd, or else a new one.
func (s *serve) listen(place daemon.Place) ([]*net.UnixListener, func(), error) {
	given, err := daemon.Activated()
	if err != nil || len(given) > 0 {
		return given, func() {}, err
	}
	if place.Socket() == "" {
		return nil, nil, program.UsageError("found no folder for the socket; name the socket with --socket")
	}
	l, free, err := daemon.Listen(place.Socket())
	return []*net.UnixListener{l}, free, err
}

// serve serves all endpoints. When ctx ends, it lets calls in flight finish.
func (s *serve) serve(ctx context.Context, place daemon.Place, sockets []*net.UnixListener) error {
	over, stop := context.WithCancel(ctx)
	defer stop()
	endHTTP, err := s.serveHTTP(place)
	if err != nil {
		for _, l := range sockets {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	failed := make(chan error, len(sockets))
	for _, l := range sockets {
		s.log.Info("serving", "socket", l.Addr().String(), "nats", bus.RedactURL(s.nats))
		go func() { failed <- s.server.Serve(over, l) }()
	}
	go func() { s.server.Idle(over, s.idle); stop() }()
	<-over.Done()
	for range sockets {
		err = errors.Join(err, <-failed)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancel()
	err = errors.Join(err, endHTTP(last), s.server.Wait(last))
	s.log.Info("ended", "calls", s.server.Status().Calls)
	return err
}

// serveHTTP starts the HTTP endpoint and writes its address to the card.
func (s *serve) serveHTTP(place daemon.Place) (end func(context.Context) error, err error) {
	card := daemon.Card{Socket: place.Socket(), PID: os.Getpid(), Creds: s.creds, TLS: s.tls}
	if bus.RedactURL(s.nats) == s.nats {
		card.NATS = s.nats
	}
	end = func(context.Context) error { return nil }
	if s.http != "" && s.state != "" {
		l, err := s.listenHTTP()
		if err != nil {
			return nil, err
		}
		card.URL, card.TokenFile = "http://"+l.Addr().String(), place.Token()
		server := &http.Server{
			Handler: s.server.Handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
			ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		end = func(ctx context.Context) error {
			err := server.Shutdown(ctx)
			if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
				err = errors.Join(err, e)
			}
			return err
		}
		s.log.Info("serving", "http", card.URL)
	}
	if err := place.WriteCard(card); err != nil {
		return nil, errors.Join(err, end(context.Background()))
	}
	closed := end
	return func(ctx context.Context) error { place.DropCard(); return closed(ctx) }, nil
}

// listenHTTP listens on --http, or on a free port if the default port is in use.
func (s *serve) listenHTTP() (net.Listener, error) {
	if err := program.Loopback(s.http); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", s.http)
	if err != nil && s.http == daemon.DefaultHTTP {
		s.log.Warn("the default HTTP port is in use; listening on another port, named in daemon.json", "usual", s.http, "error", err)
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listening for HTTP: %w; write another port with --http, or none with --http ''", err)
	}
	return l, nil
}
