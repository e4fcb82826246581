package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// A seen is a span that a collector received, and the service that sent it.
type seen struct {
	*tracepb.Span
	service string
}

// A receiver is a collector that speaks OTLP over HTTP.
type receiver struct {
	*httptest.Server

	mu    sync.Mutex      // guards the following fields
	spans map[string]seen // by service and span name
	raw   []byte
	fault error
}

func startReceiver(t *testing.T) *receiver {
	r := &receiver{spans: map[string]seen{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { r.take(req) }))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var got collector.ExportTraceServiceRequest
	err = errors.Join(err, proto.Unmarshal(body, &got))
	if req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" || req.Header.Get("Api-Key") != "secret" {
		err = errors.Join(err, errors.New(req.URL.Path+" was asked with other headers than those that are set"))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = errors.Join(r.fault, err)
	r.raw = append(r.raw, body...)
	for _, from := range got.GetResourceSpans() {
		service := from.GetResource().GetAttributes()[0].GetValue().GetStringValue()
		for _, s := range from.GetScopeSpans()[0].GetSpans() {
			r.spans[service+": "+s.GetName()] = seen{s, service}
		}
	}
}

// span is one that was sent; nil: it was not.
func (r *receiver) span(name string) *tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans[name].Span
}

// attribute is what a span tells.
func attribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// TestOneCallIsOneTrace follows a call of an agent that follows a trace itself through
// shim, broker and worker to the program of a hook.
func TestOneCallIsOneTrace(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=secret", "OTEL_BSP_SCHEDULE_DELAY=10"}
	dir := t.TempDir()
	write(t, dir, "trace.sh", "#!/bin/sh\necho \"$TRACEPARENT $TRACESTATE\" >&2\nexit 2\n")
	config := write(t, dir, "hooks.yaml", "hooks:\n  PreToolUse:\n    - {name: trace, handler: ./trace.sh, pool: crew, fail_closed: true, when: 'tool_name == \"Bash\"'}\n")
	b := startBrokerWith(t, env, "--config", config)
	w := startWith(t, env, "hookworker", "--nats", b.url, "--name", "w1", "--pool", "crew", "--hooks", dir, "--http", "127.0.0.1:0")
	awaitWorkers(t, connect(t, b.url), "w1")

	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c := exec.CommandContext(t.Context(), "agentshim", "hook", "--runtime", "generic", "--agent", "tester", "--nats", b.url, "--state", t.TempDir())
	c.Env = append(cleaned(c.Environ()), append(env, "TRACEPARENT="+parent, "TRACESTATE=vendor=1")...)
	c.Stdin = strings.NewReader(`{"hook_type":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"cat hidden-words"}}`)
	out, err := c.Output()
	var v schema.Verdict
	if err = errors.Join(err, schema.Unmarshal(out, &v)); err != nil || v.Decision != schema.Deny {
		t.Fatalf("the shim said %s, %v", out, err)
	}

	// Each below the one before, the children of the broker's own work beside that.
	way := []string{"agentshim: ask PreToolUse", "hookfabric-broker: judge PreToolUse", "hookfabric-broker: batch crew", "hookworker: run PreToolUse", "hookworker: hook trace"}
	beside := []string{"hookfabric-broker: plan", "hookfabric-broker: when", "hookfabric-broker: fold"}
	for _, name := range append(way, beside...) {
		if err := eventually("the collector has "+name, func() bool { return r.span(name) != nil }); err != nil {
			t.Fatal(err, r.fault)
		}
	}
	if r.fault != nil {
		t.Error(r.fault)
	}
	from := trace.Parse(parent, "")
	above := from.Span[:]
	for _, name := range way {
		s := r.span(name)
		if !bytes.Equal(s.GetTraceId(), from.Trace[:]) || !bytes.Equal(s.GetParentSpanId(), above) || s.GetTraceState() != "vendor=1" {
			t.Errorf("%s is in the trace %x below %x, not in %x below %x", name, s.GetTraceId(), s.GetParentSpanId(), from.Trace, above)
		}
		above = s.GetSpanId()
	}
	for _, name := range beside {
		if !bytes.Equal(r.span(name).GetParentSpanId(), r.span(way[1]).GetSpanId()) {
			t.Errorf("%s is not below %s", name, way[1])
		}
	}
	place := trace.Parse(parent, "vendor=1")
	copy(place.Span[:], above)
	if want := place.Parent() + " vendor=1"; v.Reason != want {
		t.Errorf("the hook's program was at %q, not at %q", v.Reason, want)
	}
	event := attribute(r.span(way[3]), trace.EventID)
	for _, name := range way[:2] {
		s := r.span(name)
		if attribute(s, trace.Agent) != "tester" || attribute(s, trace.Tool) != "Bash" || attribute(s, trace.Decision) != "deny" || attribute(s, trace.EventID) != event {
			t.Errorf("of %s this is told: %v", name, s.GetAttributes())
		}
	}
	if bytes.Contains(r.raw, []byte("hidden-words")) {
		t.Error("the collector was told what the tool was to do")
	}
	if said := b.said.String() + w.said.String(); strings.Contains(said, "secret") {
		t.Errorf("a secret stands in the log:\n%s", said)
	}
	if err := eventually("the feed says which trace it was", func() bool {
		stdout, _, _ := told(t, "feed", "--nats", b.url)
		return strings.HasSuffix(stdout, " trace:4bf92f3577b34da6a3ce929d0e0e4736\n")
	}); err != nil {
		t.Error(err)
	}
	_, metrics, err := fetch(b.http + "/metrics")
	if err != nil || !strings.Contains(metrics, "hookfabric_spans_dropped_total 0\n") || strings.Contains(metrics, "hookfabric_spans_total 0\n") {
		t.Errorf("the broker does not count its spans: %v", err)
	}
}
