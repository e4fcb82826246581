package otlp

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// A fake replaces the network and the collector, and holds the exporter's log.
type fake struct {
	mu     sync.Mutex // guards all but the log, which has its own
	answer func(*http.Request) (int, error)
	says   *collector.ExportTracePartialSuccess // the answer if it accepts spans; nil: empty
	asked  int
	spans  []string

	writing sync.Mutex // guards the log
	log     bytes.Buffer
}

// has returns how many requests it received, and the spans that it accepted.
func (f *fake) has() (asked int, spans string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked, strings.Join(f.spans, " ")
}

// answers sets the fake's answer from now on.
func (f *fake) answers(how func(*http.Request) (int, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = how
}

func (f *fake) Write(b []byte) (int, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.log.Write(b)
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	code, err := f.answer(r)
	if err != nil {
		return nil, err
	}
	if code == http.StatusOK {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			if body, err = gzip.NewReader(body); err != nil {
				return nil, err
			}
		}
		data, err := io.ReadAll(body)
		var req collector.ExportTraceServiceRequest
		if err = errors.Join(err, proto.Unmarshal(data, &req)); err != nil {
			return nil, err
		}
		for _, s := range req.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans() {
			f.spans = append(f.spans, s.GetName())
		}
	}
	body, err := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: f.says})
	return &http.Response{StatusCode: code, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// objects makes the fake accept all spans from now on, with a partial success in its answer.
func (f *fake) objects(rejected int64, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.says = &collector.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: why}
}

// exporter sends to f by the settings that these variables make.
func (f *fake) exporter(t *testing.T, env ...string) *Exporter {
	t.Helper()
	x, err := start(environment(append(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://user:secret@h:1", "OTEL_EXPORTER_OTLP_HEADERS=key=secret")...),
		"s", slog.New(slog.NewTextHandler(f, nil)))
	if err != nil {
		t.Fatal(err)
	}
	x.client.Transport = f // the exporter has no spans yet
	return x
}

func tell(x *Exporter, names ...string) {
	for _, n := range names {
		x.Tracer().Start(nil, trace.Server, n, "").Done()
	}
}

// pass lets time pass, and waits until the work due by then is done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func always(code int) func(*http.Request) (int, error) {
	return func(*http.Request) (int, error) { return code, nil }
}

func TestSpansGoOutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: always(http.StatusOK)}
		x := f.exporter(t, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip")
		tell(x, "a", "b")
		pass(4 * time.Second)
		if asked, _ := f.has(); asked > 0 {
			t.Error("they do not wait for others")
		}
		pass(2 * time.Second)
		if asked, spans := f.has(); asked != 1 || spans != "a b" || x.Sent() != 2 {
			t.Errorf("after %d requests the collector has %q, and %d are counted", asked, spans, x.Sent())
		}
		tell(x, "c")
		x.CloseIn(time.Second)
		if _, spans := f.has(); spans != "a b c" || x.Dropped() != 0 {
			t.Errorf("at the end it has %q, and %d were dropped", spans, x.Dropped())
		}
	})
}

// TestACollectorThatIsAway checks that an unreachable collector delays no call. The exporter counts
// the dropped spans, and logs the failure once.
func TestACollectorThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(*http.Request) (int, error) { return 0, errors.New("connection refused") }}
		x := f.exporter(t, "OTEL_BSP_MAX_QUEUE_SIZE=2")
		for range 5 {
			tell(x, "a", "b", "c", "d")
			pass(time.Minute)
		}
		if x.Sent() != 0 || x.Dropped() < 10 || x.Dropped() > 20 {
			t.Errorf("of 20 spans %d were sent and %d dropped", x.Sent(), x.Dropped())
		}
		f.answers(always(http.StatusOK))
		tell(x, "e")
		pass(time.Minute)
		x.CloseIn(time.Second)
		said := f.log.String()
		if strings.Count(said, "spans are dropped") != 1 || strings.Count(said, "the collector accepts spans again") != 1 ||
			!strings.Contains(said, "connection refused") || strings.Contains(said, "secret") {
			t.Errorf("it said:\n%s", said)
		}
	})
}

// TestACollectorThatRejectsSpans checks that spans which a collector rejects count as dropped, and
// that the exporter logs that once a minute at most.
func TestACollectorThatRejectsSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: always(http.StatusOK)}
		x := f.exporter(t)
		f.objects(1, "span names are too long")
		for range 8 { // in 80 s: now, and after a minute
			tell(x, "a", "b")
			pass(10 * time.Second)
		}
		if x.Sent() != 8 || x.Dropped() != 8 {
			t.Errorf("%d are counted as taken and %d as dropped, not 8 and 8", x.Sent(), x.Dropped())
		}
		said := f.log.String()
		if strings.Count(said, "level=WARN") != 2 || strings.Count(said, `why="span names are too long"`) != 2 ||
			!strings.Contains(said, "rejected=1 ") || !strings.Contains(said, "rejected=6 ") {
			t.Errorf("it said:\n%s", said)
		}
		f.objects(1000, "") // more than it got
		tell(x, "a", "b")
		pass(time.Minute)
		f.objects(0, "names of services are missing")
		tell(x, "a", "b")
		pass(time.Minute)
		if x.Sent() != 10 || x.Dropped() != 10 || !strings.Contains(f.log.String(), `rejected=3 why="names of services are missing"`) {
			t.Errorf("%d are counted as taken and %d as dropped, not 10 and 10; it said:\n%s", x.Sent(), x.Dropped(), &f.log)
		}
		x.CloseIn(time.Second)
	})
}

// zeros are a response without an end.
type zeros struct{ read int }

func (z *zeros) Read(b []byte) (int, error) {
	clear(b)
	z.read += len(b)
	return len(b), nil
}

func (*zeros) Close() error { return nil }

// tripper is a transport that is a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAResponseWithoutAnEndIsNotReadToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := new(zeros)
		f := new(fake)
		x := f.exporter(t)
		x.client.Transport = tripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		})
		tell(x, "a")
		x.CloseIn(time.Second)
		if body.read > 2*maxResponse || x.Sent() != 1 || x.Dropped() != 0 {
			t.Errorf("%d bytes of it were read; %d spans count as taken, %d as dropped", body.read, x.Sent(), x.Dropped())
		}
	})
}

func TestABusyCollectorIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.answer = func(*http.Request) (int, error) {
			if f.asked < 3 {
				return http.StatusServiceUnavailable, nil
			}
			return http.StatusOK, nil
		}
		x := f.exporter(t)
		tell(x, "a")
		pass(time.Minute)
		x.CloseIn(time.Second)
		if f.asked != 3 || x.Sent() != 1 || x.Dropped() != 0 {
			t.Errorf("asked %d times it took %d and missed %d", f.asked, x.Sent(), x.Dropped())
		}
	})
}

func TestACollectorThatRefusesIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: always(http.StatusMovedPermanently)} // it would take the headers elsewhere
		x := f.exporter(t)
		tell(x, "a")
		x.CloseIn(time.Second)
		if f.asked != 1 || x.Dropped() != 1 || !strings.Contains(f.log.String(), "the collector answers with status 301; check that the endpoint") {
			t.Errorf("asked %d times it missed %d, and this was said:\n%s", f.asked, x.Dropped(), &f.log)
		}
	})
}

// TestTheEndIsBounded checks that Close does not wait for a collector that does not answer.
func TestTheEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(r *http.Request) (int, error) { <-r.Context().Done(); return 0, r.Context().Err() }}
		x := f.exporter(t)
		tell(x, "a")
		began := time.Now()
		x.CloseIn(250 * time.Millisecond)
		if took := time.Since(began); took > 300*time.Millisecond || x.Dropped() != 1 {
			t.Errorf("it took %v, and %d spans are counted as dropped", took, x.Dropped())
		}
	})
}
