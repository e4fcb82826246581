package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// runnerOf is a runner of named functions.
type runnerOf map[string]workers.HandlerFunc

func (s runnerOf) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	return s[h.Handler], nil
}
func (s runnerOf) Close() error { return nil }

func (s runnerOf) worker() *workers.Worker {
	return workers.New(workers.Options{Name: "w", Pools: []string{"p"}, Runners: map[schema.Kind]workers.Runner{schema.Builtin: s}})
}

// guards returns a configuration of readonly hooks with these handlers.
func guards(version uint64, fabric string, handlers ...string) schema.Config {
	cfg := schema.Config{Version: version, Fabric: fabric}
	for _, h := range handlers {
		cfg.Hooks = append(cfg.Hooks, schema.Hook{
			Name: h, Event: schema.PreToolUse, Type: schema.Builtin, Handler: h, Timeout: schema.DefaultTimeout, Pool: "p", Readonly: true,
		})
	}
	return cfg
}

func batchOf(version uint64, fabric string, hooks ...int) *schema.Batch {
	return &schema.Batch{
		Routing: schema.Routing{Event: schema.PreToolUse, Agent: "a", Tool: "T", ID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"},
		Batch:   "b1", Version: version, Fabric: fabric, Hooks: hooks, Left: 20 * time.Second, Body: []byte(`{"tool_name":"T"}`),
	}
}

func TestAWorkerOfANewFabricRunsNothingOfTheOldOne(t *testing.T) {
	s := runnerOf{
		"old": func(context.Context, *schema.Event) (schema.Result, error) { return schema.Allowed(), nil },
		"new": func(context.Context, *schema.Event) (schema.Result, error) { return schema.Denied("no"), nil },
	}
	w := s.worker()
	for v := range uint64(3) {
		w.Load(guards(v+1, "first", "old"))
	}
	if r := w.Run(t.Context(), batchOf(1, "second", 0)); r.Status != schema.StatusStale {
		t.Errorf("before the update of the new fabric: %+v", r)
	}
	w.Load(guards(1, "second", "new"))
	if r := w.Run(t.Context(), batchOf(1, "second", 0)); r.Status != schema.StatusOK || r.Outcomes[0].Result.Decision != schema.Deny {
		t.Errorf("after: %+v", r)
	}
	if r := w.Run(t.Context(), batchOf(3, "first", 0)); r.Status != schema.StatusStale {
		t.Errorf("the old one's: %+v", r)
	}
}

func TestAnInvalidValueFailsOnlyItsHook(t *testing.T) {
	s := runnerOf{
		"junk": func(context.Context, *schema.Event) (schema.Result, error) {
			return schema.Result{Effects: nil, Value: []byte(`{"a":`)}, nil
		},
		"deny": func(context.Context, *schema.Event) (schema.Result, error) { return schema.Denied("no"), nil },
	}
	w := s.worker()
	w.Load(guards(1, "", "junk", "deny"))
	r := w.Run(t.Context(), batchOf(1, "", 0, 1))
	if len(r.Outcomes) != 2 || r.Outcomes[0].Kind != schema.Errored || r.Outcomes[1].Result.Decision != schema.Deny {
		t.Errorf("%+v", r)
	}
	if _, err := schema.Marshal(&r); err != nil {
		t.Error(err)
	}
}
