package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// The same with real workers, whose handlers answer, fail, hang until their timeout, or
// cannot be loaded.
func TestDispatchOnRealWorkersEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := gen.Cases(gen.Shape{Pools: stagePools, Conditions: stageConditions, Stages: true}).Draw(rt, "case")
		for name, answers := range c.Table {
			c.Table[name] = playable(answers)
		}
		for _, h := range c.Config.Hooks {
			if h.Preset != "" && c.Table[h.Name][0].Kind == schema.LoadError {
				c.Table[h.Name] = []model.Answer{{Kind: schema.OK}} // hooks of presets without a handler have no effect
			}
		}
		local := rapid.Bool().Draw(rt, "with a local worker")
		want := c.Judge(model.Options{When: holds})
		want.Beside = beside(c, want)
		var d []string
		synctest.Test(t, func(t *testing.T) {
			realWorkers := newRealWorkers(c)
			got := realWorkers.judge(t, local)
			synctest.Wait()
			d = append(want.Diff(got), want.DiffCalls(realWorkers.calls, realWorkers.unloaded...)...)
		})
		if len(d) > 0 {
			rt.Fatal(strings.Join(d, "\n"))
		}
	})
}

// beside returns the hooks that may have run beside the one that ended the chain: its
// readonly neighbours. A hook whose condition is false is a neighbour for the model, but
// splits no batch.
func beside(c gen.Case, x model.Expectation) (out []model.Call) {
	if len(x.Calls) == 0 {
		return nil
	}
	last, found := x.Calls[len(x.Calls)-1], false
	for _, h := range model.Resolve(c.Config, c.Event.AgentID, c.Event.HookType, c.Event.ToolName) {
		switch ok, err := holds(h.When, last.Input); {
		case h.Name == last.Hook:
			found = h.Readonly
		case !found || h.Mode == schema.Shadow || h.When != "" && !ok && err == nil:
		case !h.Readonly:
			return out
		default:
			out = append(out, model.Call{Hook: h.Name, Input: last.Input})
		}
	}
	return out
}

// playable limits drawn answers to what a handler can do: it cannot lose its worker, and
// a handler that cannot be loaded never answers otherwise.
func playable(answers []model.Answer) []model.Answer {
	if answers[0].Kind == schema.LoadError {
		return answers[:1]
	}
	for i := range answers {
		switch answers[i].Kind {
		case schema.OK, schema.Errored, schema.Deadline:
		default:
			answers[i].Kind = schema.Errored
		}
	}
	return answers
}

// realWorkers are two real workers for each pool, and one in the dispatcher's process.
type realWorkers struct {
	c       gen.Case
	local   *workers.Worker
	workers map[string]*workers.Worker // by pool and name

	mu       sync.Mutex // guards the fields below
	calls    []model.Call
	unloaded []string
}

var (
	_ dispatch.Caller = (*realWorkers)(nil)
	_ workers.Runner  = (*realWorkers)(nil)
)

func newRealWorkers(c gen.Case) *realWorkers {
	w := &realWorkers{c: c, workers: map[string]*workers.Worker{}}
	w.local = w.add(schema.DefaultPool, "local")
	for _, pool := range stagePools {
		for _, name := range []string{"a", "b"} {
			w.workers[pool+"/"+name] = w.add(pool, name)
		}
	}
	return w
}

func (w *realWorkers) add(pool, name string) *workers.Worker {
	worker := workers.New(workers.Options{
		Name: name, Pools: []string{pool}, Capacity: 4,
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: w},
		Logger:  slog.New(slog.DiscardHandler),
	})
	worker.Load(w.c.Config)
	return worker
}

func (w *realWorkers) judge(t *testing.T, local bool) schema.Verdict {
	snap, err := dispatch.Compile(w.c.Config, compileCondition)
	if err != nil {
		t.Fatal(err)
	}
	body, err := schema.Marshal(&w.c.Event)
	if err != nil {
		t.Fatal(err)
	}
	var ids atomic.Uint64
	opt := dispatch.Options{
		Caller: w, Members: dispatch.NewMembers(10),
		NewID: func() string { return strconv.FormatUint(ids.Add(1), 10) },
	}
	if local {
		opt.Local = w.local
	}
	for key, worker := range w.workers {
		pool, _, _ := strings.Cut(key, "/")
		opt.Members.Beat(worker.Beat(pool))
	}
	r := routing(&w.c.Event)
	v := dispatch.New(opt).Dispatch(t.Context(), snap, snap.Plan(r.Agent, r.Event, r.Tool), &dispatch.Request{
		Routing: r, Attempt: 1, Deadline: time.Now().Add(time.Hour), Body: body,
	})
	v.ConfigVersion = w.c.Config.Version
	pass(time.Hour) // shadow hooks, and those that ran beside, hang as well
	return v
}

// Call is the bus between dispatcher and workers.
func (w *realWorkers) Call(ctx context.Context, pool, name string, b *schema.Batch) (schema.BatchReply, error) {
	worker := w.workers[pool+"/"+name]
	if worker == nil {
		return schema.BatchReply{}, dispatch.ErrNoWorker
	}
	return worker.Run(ctx, b), nil
}

// Load makes the handler of a hook that answers by the script.
func (w *realWorkers) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	if answers := w.c.Table[h.Name]; answers[0].Kind == schema.LoadError {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !slices.Contains(w.unloaded, h.Name) {
			w.unloaded = append(w.unloaded, h.Name)
		}
		return nil, errors.New(answers[0].Error)
	}
	return workers.HandlerFunc(func(ctx context.Context, e *schema.Event) (schema.Result, error) {
		w.record(&h, e)
		switch a := w.c.Table.Script(h, *e); a.Kind {
		case schema.OK:
			return a.Result, nil
		case schema.Deadline:
			<-ctx.Done()
			return schema.Result{}, fmt.Errorf("stopped: %w", context.Cause(ctx))
		default:
			return schema.Result{}, errors.New(a.Error)
		}
	}), nil
}

// Close does nothing.
func (w *realWorkers) Close() error { return nil }

func (w *realWorkers) record(h *schema.Hook, e *schema.Event) {
	if h.Mode == schema.Shadow {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, model.Call{Hook: h.Name, Input: *e})
}
