package bus_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/nats-io/nats.go"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func TestConnectNamesTheServerThatDoesNotAnswer(t *testing.T) {
	addr := bustest.FreeAddresses(t, 1)[0]
	_, err := bus.Connect(t.Context(), bus.Options{URL: "nats://me:secret@" + addr})
	if err == nil || !strings.Contains(err.Error(), addr) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
	_, err = bus.Connect(t.Context(), bus.Options{URL: "nats://me:sec ret@%zz:1"})
	if err == nil || !strings.Contains(err.Error(), "is not the URL") || strings.Contains(err.Error(), "ret") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := bus.Connect(ctx, bus.Options{Retry: true}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v", err)
	}
}

func TestAConnectionOutlivesItsServer(t *testing.T) {
	addr, dir := bustest.FreeAddresses(t, 1)[0], t.TempDir()
	states := make(chan bool, 10)
	var log bytes.Buffer
	nc, err := bus.Connect(t.Context(), bus.Options{URL: addr, Retry: true, OnState: func(c bool) { states <- c },
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish("x", nil); !errors.Is(err, nats.ErrReconnectBufExceeded) {
		t.Errorf("publishing without a server: %v", err)
	}
	for range 2 {
		s, err := server.Start(t.Context(), server.Options{Dir: dir, Listen: addr})
		if err != nil {
			t.Fatal(err)
		}
		if !<-states {
			t.Fatal("OnState reports a loss; want a connection")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if <-states {
			t.Fatal("OnState reports a connection; want a loss")
		}
	}
	if err := bus.Drain(t.Context(), nc); err != nil || !nc.IsClosed() {
		t.Errorf("draining without a server: %v", err)
	}
	if err := bus.Drain(t.Context(), nc); err != nil {
		t.Errorf("draining again: %v", err)
	}
	for _, want := range []string{"is lost", "connected to NATS", addr} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}

func TestDrainWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc := bustest.Connect(t, bustest.Start(t), "drained")
		begun, finish, done := make(chan bool), make(chan bool), make(chan bool)
		if _, err := nc.Subscribe("x", func(*nats.Msg) { close(begun); <-finish }); err != nil {
			t.Fatal(err)
		}
		if err := nc.Publish("x", nil); err != nil {
			t.Fatal(err)
		}
		<-begun
		go func() {
			defer close(done)
			if err := bus.Drain(t.Context(), nc); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("drained while a handler is running")
		default:
		}
		close(finish)
		<-done
		if !nc.IsClosed() {
			t.Error("not closed")
		}
	})
}

func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc := bustest.Connect(t, bustest.Start(t), "drained")
		begun, finish := make(chan bool), make(chan bool)
		defer func() {
			close(finish)
			<-time.After(time.Second) // The client polls whether it is drained.
		}()
		if _, err := nc.Subscribe("x", func(*nats.Msg) { close(begun); <-finish }); err != nil {
			t.Fatal(err)
		}
		if err := nc.Publish("x", nil); err != nil {
			t.Fatal(err)
		}
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := bus.Drain(ctx, nc)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second || !nc.IsClosed() {
			t.Errorf("drained with %v after %v", err, time.Since(start))
		}
	})
}

func TestRedactURL(t *testing.T) {
	for in, want := range map[string]string{
		"nats://127.0.0.1:4222":          "nats://127.0.0.1:4222",
		"nats://u:p@h:1":                 "nats://***@h:1",
		"token@h":                        "***@h",
		"nats://u:p@ss://x@h:1,tls://h2": "nats://***@h:1,tls://h2",
		"nats://a:b@h1, nats://c:d@h2":   "nats://***@h1, nats://***@h2",
	} {
		if got := bus.RedactURL(in); got != want {
			t.Errorf("RedactURL(%q) = %q; want %q", in, got, want)
		}
	}
}

// The client itself does not end an attempt at several silent servers in time.
func TestConnectEndsWithItsContext(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	enough := errors.New("it was enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			cancel(enough)
		}
	}()
	url := "nats://" + l.Addr().String()
	if _, err := bus.Connect(ctx, bus.Options{URL: url + "," + url}); !errors.Is(err, enough) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAConnectionComesFromTheGivenAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: other systems than Linux have one loopback address")
	}
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	for _, from := range []string{"127.0.0.1", "127.0.0.77"} {
		nc, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), From: netip.MustParseAddr(from)})
		if err != nil {
			t.Fatal(err)
		}
		if ip, err := nc.GetClientIP(); err != nil || ip.String() != from {
			t.Errorf("it comes from %v; want %s: %v", ip, from, err)
		}
		nc.Close()
	}
}

// A connection that fails during the handshake must not stay open on either side.
func TestFailedConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"silence": "", "a refusal": "-ERR 'no'\r\n", "another protocol": "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			nc, err := bus.Connect(t.Context(), bus.Options{URL: l.Addr().String(), Retry: true, Within: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			var all []net.Conn
			for range 4 {
				conn, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				if _, err := conn.Write([]byte(says)); err != nil {
					t.Fatal(err)
				}
				all = append(all, conn)
			}
			for i, conn := range all[:len(all)-1] {
				_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("connection %d of %d is still open", i+1, len(all))
				}
			}
		})
	}
}
