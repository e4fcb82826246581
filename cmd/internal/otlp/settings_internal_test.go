package otlp

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// environment returns the lookup function of an environment with these variables, name=value.
func environment(all ...string) func(string) string {
	return func(name string) string {
		for _, kv := range all {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestNobodyTracesUnlessAskedTo(t *testing.T) {
	for name, env := range map[string][]string{
		"without an endpoint nothing else is looked at": {"OTEL_TRACES_SAMPLER=junk", "OTEL_SERVICE_NAME=x"},
		"switched off altogether":                       {"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1", "OTEL_SDK_DISABLED=TRUE"},
		"traces are for nobody":                         {"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1", "OTEL_TRACES_EXPORTER=none"},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := start(environment(env...), "s", nil)
			if err != nil || x != nil || x.Tracer() != nil || x.Dropped()+x.Sent() != 0 {
				t.Errorf("%+v, %v", x, err)
			}
			x.CloseIn(0)
		})
	}
}

func TestSettings(t *testing.T) {
	got, err := Read(environment(
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://collector:4318/base/", "OTEL_EXPORTER_OTLP_HEADERS=api-key=a%2Cb%3D, x-team = t",
		"OTEL_EXPORTER_OTLP_TIMEOUT=1500", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_SERVICE_NAME=mine", "OTEL_RESOURCE_ATTRIBUTES=service.name=other,deployment.environment.name=a%20b,host.name=h,process.pid=1",
		"OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=20",
	), "hookworker")
	if err != nil {
		t.Fatal(err)
	}
	got.Sample = nil
	want := Settings{
		URL: "https://collector:4318/base/v1/traces", Gzip: true, Timeout: 1500 * time.Millisecond, Queue: 10, Batch: 10, Delay: 100 * time.Millisecond,
		Header: http.Header{"Api-Key": {"a,b="}, "X-Team": {"t"}, "Content-Type": {"application/x-protobuf"}, "User-Agent": {"hookfabric/" + schema.Release}},
		Resource: []trace.Attribute{{Key: "service.name", Value: "mine"}, {Key: "deployment.environment.name", Value: "a b"},
			{Key: "host.name", Value: "h"}, {Key: "process.pid", Value: "1"}, {Key: "service.version", Value: schema.Release}},
	}
	want.TLS.CA = "/ca"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	own, err := Read(environment("OTEL_EXPORTER_OTLP_ENDPOINT=http://all:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://traces:1/as/it/is",
		"OTEL_EXPORTER_OTLP_TIMEOUT=1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=2"), "s")
	if err != nil || own.URL != "http://traces:1/as/it/is" || own.Timeout != 2*time.Millisecond {
		t.Errorf("what is said of traces alone comes to %q and %v, %v", own.URL, own.Timeout, err)
	}
}

// TestFaultySettings checks that an error names the variable and a valid value, and contains no
// secret.
func TestFaultySettings(t *testing.T) {
	for fault, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=secret:4318":         "OTEL_EXPORTER_OTLP_ENDPOINT is not a valid URL for spans; use one such as http://127.0.0.1:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://secret": "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a valid URL",
		"OTEL_EXPORTER_OTLP_HEADERS=secret":               "OTEL_EXPORTER_OTLP_HEADERS has a part that is not name=value",
		"OTEL_EXPORTER_OTLP_HEADERS=a=secret%zz":          "OTEL_EXPORTER_OTLP_HEADERS has a part that is not name=value",
		"OTEL_EXPORTER_OTLP_HEADERS=a=secret%0Ab":         "OTEL_EXPORTER_OTLP_HEADERS has an invalid header",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; only http/protobuf is supported`,
		"OTEL_EXPORTER_OTLP_COMPRESSION=zstd":             `OTEL_EXPORTER_OTLP_COMPRESSION is "zstd"; use gzip or none`,
		"OTEL_EXPORTER_OTLP_TIMEOUT=10s":                  `OTEL_EXPORTER_OTLP_TIMEOUT is "10s"; use a number from 1 to`,
		"OTEL_TRACES_EXPORTER=jaeger":                     `OTEL_TRACES_EXPORTER is "jaeger"; use otlp or none`,
		"OTEL_TRACES_SAMPLER=sometimes":                   `OTEL_TRACES_SAMPLER is "sometimes"; use always_on, always_off or traceidratio`,
		"OTEL_TRACES_SAMPLER_ARG=NaN":                     `OTEL_TRACES_SAMPLER_ARG is "NaN"; use a number from 0 to 1`,
		"OTEL_BSP_MAX_QUEUE_SIZE=0":                       `OTEL_BSP_MAX_QUEUE_SIZE is "0"; use a number from 1 to`,
		"OTEL_RESOURCE_ATTRIBUTES=a":                      "OTEL_RESOURCE_ATTRIBUTES has a part that is not name=value",
	} {
		_, err := Read(environment(fault, "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1", "OTEL_TRACES_SAMPLER=traceidratio"), "s")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %s", fault, err, want)
		}
	}
}

func TestSampling(t *testing.T) {
	kept, left := trace.Context{Flags: 1}, trace.Context{}
	low, high := [16]byte{8: 0x10}, [16]byte{8: 0xf0} // of the second, 15 sixteenths lie below
	for sampler, want := range map[string][4]bool{
		"":                         {true, false, true, true},
		"always_on":                {true, true, true, true},
		"always_off":               {false, false, false, false},
		"parentbased_always_off":   {true, false, false, false},
		"traceidratio":             {true, true, true, false},
		"parentbased_traceidratio": {true, false, true, false},
	} {
		r := &reading{env: environment("OTEL_TRACES_SAMPLER="+sampler, "OTEL_TRACES_SAMPLER_ARG=0.5")}
		s := r.sampler()
		got := [4]bool{s(&kept, low), s(&left, low), s(nil, low), s(nil, high)}
		if got != want || r.errs != nil {
			t.Errorf("%q keeps a kept trace, one that is not, and two new ones: %v, not %v (%v)", sampler, got, want, r.errs)
		}
	}
}
