package aggregator_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// discards is a sink that drops its spans.
type discards struct{}

func (discards) Take(*trace.Span) {}

// TestRecordsAndLogsSayWhichTraceTheyAreIn checks that a record and a line of the log name their
// trace, if the trace is kept.
func TestRecordsAndLogsSayWhichTraceTheyAreIn(t *testing.T) {
	const kept, left = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	begins := &trace.Tracer{Sink: discards{}, Sample: func(*trace.Context, [16]byte) bool { return true }}
	for name, c := range map[string]struct {
		tracer *trace.Tracer
		parent string
		want   func(id string) bool
	}{
		"of who asked":                     {nil, kept, func(id string) bool { return id == kept[3:35] }},
		"that goes on here":                {begins, kept, func(id string) bool { return id == kept[3:35] }},
		"that begins here":                 {begins, "", func(id string) bool { return len(id) == 32 }},
		"that is not kept":                 {nil, left, func(id string) bool { return id == "" }},
		"and there is none where none was": {nil, "", func(id string) bool { return id == "" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				notes, logged := new(notebook), new(bytes.Buffer)
				lib := library{"breaks": func(context.Context, *schema.Event) (schema.Result, error) {
					return schema.Result{}, errors.New("broken")
				}}
				f := startWith(t, aggregator.Options{Recorder: notes, Tracer: c.tracer, Logger: slog.New(slog.NewTextHandler(logged, nil))}, lib, hook("breaks"))
				records := f.records()
				m := event(schema.PreToolUse)
				if c.parent != "" {
					m.Header.Set(schema.HeaderTraceparent, c.parent)
				}
				f.ask(m)
				on := records()
				if len(on) != 1 || len(notes.entries()) != 1 || !c.want(on[0].TraceID) || notes.entries()[0].Record.TraceID != on[0].TraceID {
					t.Fatalf("the feed has %+v, written down is %+v", on, notes.entries())
				}
				_, line, _ := strings.Cut(logged.String(), "hook failed")
				line, _, _ = strings.Cut(line, "\n")
				if _, id, _ := strings.Cut(line, " trace_id="); line == "" || !strings.HasPrefix(id, on[0].TraceID) || strings.Contains(line, "trace_id") != (on[0].TraceID != "") {
					t.Errorf("the log says %q of the trace %q", line, on[0].TraceID)
				}
			})
		})
	}
}
