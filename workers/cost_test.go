package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// TestABatchAllocatesLittle limits the allocations for a batch of hooks that return at
// once: its job, its event with its texts, and its outcomes. It protects the budget of a call
// that 'loadtest bench' checks.
func TestABatchAllocatesLittle(t *testing.T) {
	bustest.PlainOnly(t, "how much is allocated, which the detector adds to")
	allow := func(schema.Hook) (workers.Handler, error) {
		return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) { return schema.Allowed(), nil }), nil
	}
	for _, hooks := range []int{1, 8} {
		w := workers.New(workers.Options{
			Name: "w", Pools: []string{"p"}, Inline: []schema.Kind{schema.Builtin},
			Runners: map[schema.Kind]workers.Runner{schema.Builtin: loads(allow)},
		})
		cfg, b := schema.Config{Version: 1}, &schema.Batch{
			Routing: schema.Routing{Event: schema.PreToolUse, Agent: "a", Tool: "Bash", ID: "e"},
			Batch:   "b", Version: 1, Left: time.Minute, Body: []byte(`{"hook_type":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`),
		}
		for i := range hooks {
			cfg.Hooks = append(cfg.Hooks, schema.Hook{Name: string(rune('a' + i)), Event: schema.PreToolUse, Type: schema.Builtin, Pool: "p"})
			b.Hooks = append(b.Hooks, i)
		}
		if errs := w.Load(cfg); len(errs) > 0 {
			t.Fatal(errs)
		}
		var r schema.BatchReply
		n := testing.AllocsPerRun(100, func() { r = w.Run(t.Context(), b) })
		if r.Status != schema.StatusOK || len(r.Outcomes) != hooks {
			t.Fatalf("the reply is %+v", r)
		}
		if n > 4 {
			t.Errorf("a batch of %d hooks makes %v objects", hooks, n)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// loads is a runner that makes handlers with a factory.
type loads workers.Factory

func (l loads) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) { return l(h) }
func (loads) Close() error                                                  { return nil }
