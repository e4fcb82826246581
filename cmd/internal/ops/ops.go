// Package ops serves what operators use to watch a process: health checks and metrics.
package ops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/internal/otlp"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// Registry returns a registry with metrics of the process and of Go.
func Registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// Tracing starts the tracing that the environment configures, and registers counters of spans; nil:
// tracing is off. It stops after all parts that are pushed on stack later.
func Tracing(service string, reg prometheus.Registerer, log *slog.Logger, stack *program.Stack) *trace.Tracer {
	spans := otlp.FromEnvironment(service, log)
	counter := func(name, help string, count func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "hookfabric", Name: name, Help: help},
			func() float64 { return float64(count()) })
	}
	reg.MustRegister(
		counter("spans_total", "Spans that the collector accepted.", spans.Sent),
		counter("spans_dropped_total", "Spans that were dropped because the collector failed or rejected them, or because the queue was full.", spans.Dropped),
	)
	stack.Push("traces", func(ctx context.Context) error { spans.Close(ctx); return nil })
	return spans.Tracer()
}

// Options configure Serve.
type Options struct {
	// Addr is HOST:PORT. Beyond loopback it is served with TLS.
	Addr string
	// TLS is the certificate, unused on loopback.
	TLS certs.Files
	// ClientCA is a CA bundle that verifies clients; empty: clients need no certificate.
	ClientCA string
	// Registry has the metrics.
	Registry *prometheus.Registry
	// Ready returns nil if the process is ready, otherwise what is missing. /readyz returns it.
	Ready func() error
	// Logger logs renewed certificates; nil: no log.
	Logger *slog.Logger
}

// listen returns the listener, and the scheme of its URLs.
func (o *Options) listen() (ln net.Listener, scheme string, err error) {
	encrypted, err := program.Secured(o.Addr, o.TLS.Shows())
	if err != nil {
		return nil, "", err
	}
	if o.ClientCA != "" && !encrypted {
		return nil, "", program.UsageError("--http-tls-ca has no effect at the loopback address %s, where HTTP has no TLS; remove it, or listen with --http beyond loopback", o.Addr)
	}
	var conf *tls.Config
	if encrypted {
		if conf, err = (certs.Files{Cert: o.TLS.Cert, Key: o.TLS.Key, CA: o.ClientCA}).Server(o.Logger); err != nil {
			return nil, "", err
		}
	}
	if ln, err = net.Listen("tcp", o.Addr); errors.Is(err, syscall.EADDRINUSE) {
		return nil, "", fmt.Errorf("cannot listen for HTTP on %s: the address is in use, perhaps by another broker or worker; stop that one, choose another address with --http, or disable HTTP with --http \"\": %w", o.Addr, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot listen for HTTP on %s: %w; choose another address with --http, or disable HTTP with --http \"\"", o.Addr, err)
	}
	if encrypted {
		return tls.NewListener(ln, conf), "https", nil
	}
	return ln, "http", nil
}

// Serve serves /healthz, /readyz and /metrics until stack stops it. It returns their base URL.
func Serve(o Options, stack *program.Stack) (string, error) {
	ln, scheme, err := o.listen()
	if err != nil {
		return "", err
	}
	o.Registry.MustRegister(readiness(o.Ready))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, "alive\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Ready(); err != nil {
			respond(w, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
		respond(w, http.StatusOK, "ready\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{}))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	stack.Push("HTTP server", func(ctx context.Context) error {
		err := srv.Shutdown(ctx)
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	})
	return scheme + "://" + ln.Addr().String(), nil
}

// Credentials returns the metrics of the process's credentials. Each scrape calls read, which returns
// when they were made and when they expire; zero: never.
func Credentials(read func() (made, end time.Time, err error)) []prometheus.Collector {
	gauge := func(name, help string, value func(made, end time.Time) float64, unreadable float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "hookfabric", Name: name, Help: help}, func() float64 {
			switch made, end, err := read(); {
			case err != nil:
				return unreadable
			case end.IsZero():
				return math.Inf(1)
			default:
				return max(0, value(made, end))
			}
		})
	}
	return []prometheus.Collector{
		gauge("credentials_left_seconds", "Seconds until the credentials of --creds expire; +Inf if they never do or none are used, 0 if they expired or cannot be read. Alert on this.",
			func(_, end time.Time) float64 { return time.Until(end).Seconds() }, 0),
		gauge("credentials_lifetime_seconds", "Seconds between the creation and the expiry of the credentials of --creds; +Inf if they never expire or none are used.",
			func(made, end time.Time) float64 { return end.Sub(made).Seconds() }, math.Inf(1)),
	}
}

// readiness returns the metric with the result of /readyz.
func readiness(ready func() error) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "hookfabric", Name: "ready", Help: "1 while /readyz reports that the process is ready, else 0.",
	}, func() float64 {
		if ready() != nil {
			return 0
		}
		return 1
	})
}

func respond(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // fails only if the client has gone
}
