// Package otlp exports spans to a collector, by OpenTelemetry's protocol over HTTP.
// OpenTelemetry's own variables configure it: see [Read].
//
// No call waits for the export. Spans wait in a bounded queue. The exporter drops and counts
// spans that do not fit, or that no collector accepts, and logs when that begins and ends. If
// a collector accepts a request and rejects some of its spans, the exporter logs the
// collector's message at most once a minute.
//
// An exporter is safe for concurrent use.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/schema/trace"
)

const (
	// tries is how often a batch is sent to a collector that is unreachable or overloaded. The wait
	// doubles each time.
	tries = 3
	// maxResponse bounds how much of a response is read, for the rejected spans and so that the
	// connection can be reused.
	maxResponse = 64 << 10
	// complainEvery is the shortest time between two log lines about rejected spans.
	complainEvery = time.Minute
)

// firstWait is how long the exporter waits before it retries a batch.
const firstWait = time.Second

// An Exporter sends spans to a collector. A nil Exporter traces nothing, and its methods do
// nothing.
type Exporter struct {
	set    Settings
	client *http.Client
	log    *slog.Logger
	queue  chan *trace.Span

	sent, dropped atomic.Uint64
	ending        chan struct{} // closed when waiting spans are to be sent at once
	end           sync.Once
	done          chan struct{}
	life          context.Context //nolint:containedctx // of the requests under way
	cut           context.CancelFunc

	// State of the log; only the goroutine run uses it.
	told    uint64
	failing bool
	// The rejected spans since the last log line about them, and when that was.
	rejected   uint64
	complained time.Time
}

// FromEnvironment starts the exporter that the OTEL_* variables configure; nil: none. If a variable
// is invalid, it logs the error and tracing is off: the variables are often meant for other
// programs, and no call may fail because of them.
func FromEnvironment(service string, log *slog.Logger) *Exporter {
	x, err := start(os.Getenv, service, log)
	if err != nil {
		log.Warn("tracing is off, because the OTEL_* variables have a fault", "error", err)
	}
	return x
}

func start(env func(string) string, service string, log *slog.Logger) (*Exporter, error) {
	set, err := Read(env, service)
	if err != nil || set.URL == "" {
		return nil, err
	}
	return New(set, log)
}

// New starts an exporter.
func New(set Settings, log *slog.Logger) (*Exporter, error) {
	conf, err := set.TLS.Client()
	if err != nil {
		return nil, fmt.Errorf("certificates for the collector: %w", err)
	}
	x := &Exporter{
		set: set, log: log, queue: make(chan *trace.Span, set.Queue), ending: make(chan struct{}), done: make(chan struct{}),
		client: &http.Client{
			Timeout:   set.Timeout,
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute},
			// The headers are for the collector, and not for a host to which it redirects.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	x.life, x.cut = context.WithCancel(context.Background())
	go x.run()
	return x, nil
}

// Tracer begins the spans of this process.
func (x *Exporter) Tracer() *trace.Tracer {
	if x == nil {
		return nil
	}
	return &trace.Tracer{Sink: x, Sample: x.set.Sample}
}

// Take puts a span into the queue, or drops it.
func (x *Exporter) Take(s *trace.Span) {
	select {
	case x.queue <- s:
	default:
		x.dropped.Add(1)
	}
}

// Sent returns how many spans a collector accepted.
func (x *Exporter) Sent() uint64 {
	if x == nil {
		return 0
	}
	return x.sent.Load()
}

// Dropped returns how many spans were lost, because they could not be sent or the collector
// rejected them.
func (x *Exporter) Dropped() uint64 {
	if x == nil {
		return 0
	}
	return x.dropped.Load()
}

// Close sends the waiting spans, until ctx ends. The exporter accepts no spans afterwards.
func (x *Exporter) Close(ctx context.Context) {
	if x == nil {
		return
	}
	x.end.Do(func() { close(x.ending) })
	select {
	case <-x.done:
	case <-ctx.Done():
	}
	x.cut()
	<-x.done
	x.client.CloseIdleConnections()
}

// CloseIn is [Exporter.Close] with a limit on its time.
func (x *Exporter) CloseIn(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	x.Close(ctx)
}

// run sends batch after batch.
func (x *Exporter) run() {
	defer close(x.done)
	batch := make([]*trace.Span, 0, x.set.Batch)
	for {
		batch = x.gather(batch[:0])
		if len(batch) == 0 {
			return
		}
		x.tell(x.send(encode(x.set.Resource, batch), len(batch)))
		clear(batch)
	}
}

// gather waits for the next batch; an empty one: there will be none.
func (x *Exporter) gather(batch []*trace.Span) []*trace.Span {
	ending := x.ending
	var full <-chan time.Time
	for len(batch) < cap(batch) {
		if ending == nil {
			select {
			case s := <-x.queue:
				batch = append(batch, s)
				continue
			default:
				return batch
			}
		}
		select {
		case s := <-x.queue:
			if batch = append(batch, s); full == nil {
				timer := time.NewTimer(x.set.Delay)
				defer timer.Stop()
				full = timer.C
			}
		case <-full:
			return batch
		case <-ending:
			ending = nil
		}
	}
	return batch
}

// errLater marks an error after which the batch may be sent again.
var errLater = errors.New("it may be sent again")

// send sends a batch, and counts its spans as sent or dropped.
func (x *Exporter) send(body []byte, spans int) (err error) {
	wait := firstWait
	for try := 1; ; try++ {
		var said answer
		if said, err = x.post(body); err == nil {
			x.taken(said, uint64(spans))
			return nil
		}
		if try == tries || !errors.Is(err, errLater) || !x.rest(wait) {
			x.dropped.Add(uint64(spans))
			return err
		}
		wait *= 2
	}
}

// taken counts the spans of a batch that the collector accepted, without those that it rejected. It
// logs rejections, so that a user who misses spans in a trace can find the reason.
func (x *Exporter) taken(said answer, spans uint64) {
	rejected := min(said.rejected, spans)
	x.sent.Add(spans - rejected)
	x.dropped.Add(rejected)
	x.told += rejected // here, and not as something that could not be sent
	x.rejected += rejected
	if now := time.Now(); (rejected > 0 || said.why != "") && now.Sub(x.complained) >= complainEvery {
		x.log.Warn("the collector accepted spans with a warning, which is logged at most once a minute", "rejected", x.rejected, "why", trace.Fit(said.why))
		x.rejected, x.complained = 0, now
	}
}

// rest waits, unless there is no time for that any more.
func (x *Exporter) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.ending:
		return false
	}
}

// post makes one request. Its errors hold neither the URL nor the headers, which
// may hold secrets.
func (x *Exporter) post(body []byte) (said answer, err error) {
	header := x.set.Header.Clone()
	if x.set.Gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body) // a buffer takes everything
		_ = w.Close()
		body = b.Bytes()
		header.Set("Content-Encoding", "gzip")
	}
	req, err := http.NewRequestWithContext(x.life, http.MethodPost, x.set.URL, bytes.NewReader(body))
	if err != nil {
		return said, errors.New("the endpoint is not a valid URL")
	}
	req.Header = header
	resp, err := x.client.Do(req)
	if err != nil {
		if named, ok := errors.AsType[*url.Error](err); ok {
			err = named.Err
		}
		return said, fmt.Errorf("cannot reach the collector: %w (%w)", err, errLater)
	}
	defer resp.Body.Close()
	read, _ := io.ReadAll(io.LimitReader(resp.Body, maxResponse)) // a response that is cut off gives the zero answer
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return readAnswer(read), nil
	case code == http.StatusTooManyRequests, code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		return said, fmt.Errorf("the collector answers with status %d (%w)", code, errLater)
	default:
		return said, fmt.Errorf("the collector answers with status %d; check that the endpoint is OTLP over HTTP, usually on port 4318, and check the headers", code)
	}
}

// tell logs once that spans are dropped, and once that the collector accepts them again.
func (x *Exporter) tell(err error) {
	dropped := x.dropped.Load()
	switch lost := dropped - x.told; {
	case lost > 0 && !x.failing:
		why := "more spans arrived than can be sent; raise " + envQueue + ", or sample fewer traces"
		if err != nil {
			why = err.Error()
		}
		x.log.Warn("spans are dropped; this is logged once until the collector recovers", "spans", lost, "error", why)
	case lost == 0 && x.failing:
		x.log.Info("the collector accepts spans again", "dropped", dropped)
	}
	x.failing = dropped > x.told
	x.told = dropped
}
