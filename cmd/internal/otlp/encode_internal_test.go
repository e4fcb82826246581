package otlp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// TestSpansAreWrittenAsOpenTelemetryReadsThem checks that OpenTelemetry's own code reads the
// hand-written encoding.
func TestSpansAreWrittenAsOpenTelemetryReadsThem(t *testing.T) {
	began := time.Unix(1700000000, 5)
	child := &trace.Span{
		Context: *trace.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1"), Parent: [8]byte{1, 2, 3},
		Name: "judge PreToolUse", Kind: trace.Server, Start: began, End: began.Add(time.Second), Error: strings.Repeat("e", 200),
		Attributes: []trace.Attribute{{Key: "s", Value: ""}, {Key: "n", Value: int64(-3)}, {Key: "b", Value: true}},
	}
	root := &trace.Span{Context: trace.Context{Trace: [16]byte{9}, Span: [8]byte{8}}, Kind: trace.Internal, Start: began, End: began.Add(-1)}
	var got collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(encode([]trace.Attribute{{Key: "service.name", Value: "x"}}, []*trace.Span{child, root}), &got); err != nil {
		t.Fatal(err)
	}
	text := func(key, s string) *common.KeyValue {
		return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}}
	}
	at := uint64(began.UnixNano())
	want := &collector.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "x")}},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &common.InstrumentationScope{Name: "github.com/hookfabric/hookfabric", Version: schema.Release},
			Spans: []*tracepb.Span{
				{
					TraceId: child.Context.Trace[:], SpanId: child.Context.Span[:], ParentSpanId: child.Parent[:], TraceState: "vendor=1", Flags: 1,
					Name: "judge PreToolUse", Kind: tracepb.Span_SPAN_KIND_SERVER, StartTimeUnixNano: at, EndTimeUnixNano: at + 1e9,
					Attributes: []*common.KeyValue{
						text("s", ""),
						{Key: "n", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -3}}},
						{Key: "b", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}},
					},
					Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: strings.Repeat("e", 200)},
				},
				{
					TraceId: root.Context.Trace[:], SpanId: root.Context.Span[:],
					Kind: tracepb.Span_SPAN_KIND_INTERNAL, StartTimeUnixNano: at, EndTimeUnixNano: at,
				},
			},
		}},
	}}}
	if d := cmp.Diff(want, &got, protocmp.Transform()); d != "" {
		t.Errorf("they are read as something else (-want +got):\n%s", d)
	}
}
