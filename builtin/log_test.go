package builtin

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

func logged(t *testing.T, options map[string]any, at *trace.Context) string {
	t.Helper()
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h, err := Catalog(logger)["log"](schema.Hook{Name: "test", Handler: "log", Event: schema.PostToolUse, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Handle(trace.With(t.Context(), at), event(schema.PostToolUse))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, schema.Result{}, got)
	return out.String()
}

func TestLogRecordsHaveNoContent(t *testing.T) {
	line := logged(t, nil, nil)
	for _, want := range []string{"level=INFO", "hook=test", "event=PostToolUse", "agent=agent-1", "tool=Bash", "event_id=event-1"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %q", want, line)
		}
	}
	if strings.Contains(line, "secret") || strings.Contains(line, "trace_id") || strings.Count(line, "\n") != 1 {
		t.Errorf("logged %q", line)
	}
	at := trace.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "")
	if line := logged(t, nil, at); !strings.Contains(line, " trace_id=4bf92f3577b34da6a3ce929d0e0e4736\n") {
		t.Errorf("in a trace, logged %q", line)
	}
}

func TestLogUsesTheLevelOfItsOption(t *testing.T) {
	for name, want := range map[string]string{"debug": "DEBUG", "info": "INFO", "warn": "WARN", "error": "ERROR", "": "INFO"} {
		if line := logged(t, map[string]any{"level": name}, nil); !strings.Contains(line, "level="+want) {
			t.Errorf("at level %q: %q", name, line)
		}
	}
}
