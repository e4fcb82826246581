package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options say where a run is shown.
type Options struct {
	// Scenario is the run's name.
	Scenario string
	// Progress is where it is told how far the run is; nil: nowhere. On a
	// terminal one line is written again and again.
	Progress io.Writer
	// Metrics is the address to serve metrics on, HOST:PORT of this machine's
	// loopback interface; empty: none.
	Metrics string
}

// A Run is shown while it lasts. Its methods are safe for many goroutines, and
// for a nil Run.
type Run struct {
	line   *line
	meters *meters // nil: nobody looks
	server *http.Server
	addr   string
	served chan error
}

// ErrAddress is an address that metrics are not served on.
var ErrAddress = errors.New("--metrics serves only this machine")

// Start begins to show a run. It must be closed.
func Start(o Options) (*Run, error) {
	r := &Run{line: newLine(o.Progress)}
	if o.Metrics == "" {
		return r, nil
	}
	if err := Loopback(o.Metrics); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", o.Metrics)
	if err != nil {
		return nil, fmt.Errorf("listening for readers of the metrics: %w; name another port, or 0 for a free one", err)
	}
	r.meters = newMeters(o.Scenario, time.Now())
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r.meters.registry, promhttp.HandlerOpts{}))
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	r.addr, r.served = ln.Addr().String(), make(chan error, 1)
	go func() { r.served <- r.server.Serve(ln) }()
	return r, nil
}

// Loopback refuses an address that other machines could reach.
func Loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%w; write HOST:PORT instead of %q", ErrAddress, addr)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w, but other machines can reach %s; use 127.0.0.1", ErrAddress, addr)
}

// Addr is where metrics are served; empty: nowhere.
func (r *Run) Addr() string {
	if r == nil {
		return ""
	}
	return r.addr
}

// Close ends the line, and the serving of metrics.
func (r *Run) Close() error {
	if r == nil {
		return nil
	}
	r.line.end()
	if r.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.server.Close() // whoever reads on has had a second
	}
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("closing the metrics: %w", err)
	}
	return nil
}

// shown are the run's meters; nil: nobody looks.
func (r *Run) shown() *meters {
	if r == nil {
		return nil
	}
	return r.meters
}

// Calls counts n calls of a kind that ended with an outcome.
func (r *Run) Calls(kind, outcome string, n int64) {
	if m := r.shown(); m != nil && n > 0 {
		m.calls.WithLabelValues(m.kinds.bounded(kind), m.outcomes.bounded(outcome)).Add(float64(n))
	}
}

// Took counts that n calls of a kind took so long.
func (r *Run) Took(kind string, d time.Duration, n int64) {
	if m := r.shown(); m != nil && n > 0 {
		m.times.add(m.kinds.bounded(kind), d, uint64(n))
	}
}

// A Distribution is many durations: it calls count with each, and how many there
// are of it.
type Distribution interface {
	Each(count func(d time.Duration, n int64))
}

// Times counts how long many calls of a kind took. It asks for them only if
// somebody looks.
func (r *Run) Times(kind string, all Distribution) {
	if r.shown() != nil {
		all.Each(func(d time.Duration, n int64) { r.Took(kind, d, n) })
	}
}

// Offered says how many calls are due now, per second.
func (r *Run) Offered(perSecond float64) {
	if m := r.shown(); m != nil {
		m.offered.Set(perSecond)
	}
}

// InFlight says how many calls are due and not over.
func (r *Run) InFlight(n int64) {
	if m := r.shown(); m != nil {
		m.inFlight.Set(float64(n))
	}
}

// Wrong counts n answers that broke a promise.
func (r *Run) Wrong(check string, n int64) {
	if m := r.shown(); m != nil {
		m.wrong.WithLabelValues(m.checks.bounded(check)).Add(float64(max(n, 0)))
	}
}

// Fault counts something that was done to the fabric.
func (r *Run) Fault(kind string) {
	if m := r.shown(); m != nil {
		m.faults.WithLabelValues(m.acts.bounded(kind)).Inc()
	}
}

// Over says how much of the run is over, from 0 to 1.
func (r *Run) Over(share float64) {
	if m := r.shown(); m != nil {
		m.progress.Set(min(max(share, 0), 1))
	}
}

// Progress says how much of the run is over, and where it is. It may be called
// often: elsewhere than on a terminal most of it is not told.
func (r *Run) Progress(share float64, words string) {
	r.Over(share)
	if r != nil {
		r.line.tell(bar(share) + " " + words)
	}
}

// Write tells whole lines of progress, for scenarios that do not know how much
// of them is over.
func (r *Run) Write(text []byte) (int, error) {
	if r != nil {
		r.line.write(text)
	}
	return len(text), nil
}
