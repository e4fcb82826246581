package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

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

// listenHTTP listens on --http. If the default port is in use, it listens on a free port,
// which daemon.json names.
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
