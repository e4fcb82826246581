package workers_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
)

// spans are the ended spans.
type spans []*trace.Span

func (s *spans) Take(one *trace.Span) { *s = append(*s, one) }

// A handler finds its position in a trace, whether its worker traces or not.
func TestHandlersFindTheirPositionInATrace(t *testing.T) {
	from := trace.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "")
	for name, traces := range map[string]bool{"of a worker that traces": true, "of one that does not": false} {
		t.Run(name, func(t *testing.T) {
			var at *trace.Context
			var all spans
			var log bytes.Buffer
			opt := workers.Options{
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Name:   "w", Pools: []string{"p"}, Inline: []schema.Kind{schema.Builtin},
				Runners: map[schema.Kind]workers.Runner{schema.Builtin: loads(func(schema.Hook) (workers.Handler, error) {
					return workers.HandlerFunc(func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
						at = trace.From(ctx)
						return schema.Result{}, errors.New("what it says is not for everybody")
					}), nil
				})},
			}
			if traces {
				opt.Tracer = &trace.Tracer{Sink: &all, Sample: func(*trace.Context, [16]byte) bool { return true }}
			}
			w := workers.New(opt)
			if errs := w.Load(schema.Config{Version: 1, Hooks: []schema.Hook{{Name: "h", Event: schema.PreToolUse, Type: schema.Builtin, Pool: "p"}}}); len(errs) > 0 {
				t.Fatal(errs)
			}
			w.Run(t.Context(), &schema.Batch{
				Routing: schema.Routing{Event: schema.PreToolUse, Agent: "a", Tool: "Bash", ID: "e", Trace: from},
				Batch:   "b", Version: 1, Left: time.Minute, Hooks: []int{0}, Body: []byte(`{"tool_name":"Bash"}`),
			})
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if !strings.Contains(log.String(), `msg="hook failed" trace_id=`+from.ID()) {
				t.Errorf("the log says %q", &log)
			}
			if !traces {
				if at != from || len(all) > 0 {
					t.Errorf("it is at %+v, and %d spans ended", at, len(all))
				}
				return
			}
			if len(all) != 2 || all[0].Name != "hook h" || all[1].Name != "run PreToolUse" {
				t.Fatalf("%d spans ended, want that of the hook and that of the batch", len(all))
			}
			if *at != all[0].Context || all[0].Parent != all[1].Context.Span || all[1].Parent != from.Span {
				t.Errorf("it is at %+v; the hook's span is %+v, the batch's %+v", at, all[0].Context, all[1].Context)
			}
			if all[0].Error != string(schema.Errored) {
				t.Errorf("the error of its span is %q", all[0].Error)
			}
		})
	}
}
