package policytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// Options configure an [Engine].
type Options struct {
	Config schema.Config
	// Condition compiles the conditions of hooks.
	Condition func(expr string) (dispatch.Condition, error)
	// Runners run the hooks, and Inline are the kinds that return at once.
	Runners map[schema.Kind]workers.Runner
	Inline  []schema.Kind
	// Stub has programs, functions and servers have no opinion, instead of running them.
	Stub bool
}

// An Engine runs the hooks of one configuration. It is safe for concurrent use.
type Engine struct {
	config     schema.Config
	snapshot   *dispatch.Snapshot
	dispatcher *dispatch.Dispatcher
	worker     *workers.Worker
	reached    reached
}

// failures are the hooks that fail in a case, in the context of its calls.
type failures struct{}

// NewEngine loads a configuration. A hook that cannot be loaded is an error. Call [Engine.Close].
func NewEngine(o Options) (*Engine, error) {
	cfg := o.Config
	cfg.Version, cfg.Fabric, cfg.Hooks = 1, "test", slices.Clone(cfg.Hooks)
	for i := range cfg.Hooks {
		if !cfg.Hooks[i].Stage() {
			cfg.Hooks[i].Pool = schema.DefaultPool // this process runs all pools
		}
	}
	e := &Engine{config: cfg}
	log := slog.New(slog.DiscardHandler)
	e.worker = workers.New(workers.Options{Name: "test", Pools: []string{schema.DefaultPool}, Runners: stubs(o), Inline: o.Inline, Logger: log})
	if errs := e.worker.Load(cfg); len(errs) > 0 {
		names := slices.Sorted(maps.Keys(errs))
		return nil, errors.Join(fmt.Errorf("the hook %q cannot be loaded: %s", names[0], errs[names[0]]), e.Close())
	}
	var err error
	if e.snapshot, err = dispatch.Compile(cfg, e.reached.compiler(o.Condition)); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.dispatcher = dispatch.New(dispatch.Options{Local: local{e}, Caller: nobody{}, Members: dispatch.NewMembers(0), NewID: func() string { return "test" }, Logger: log})
	return e, nil
}

// Close ends the runners.
func (e *Engine) Close() error { return e.worker.Close() }

// Verdict runs the hooks for an event, with those that fail.
func (e *Engine) Verdict(ctx context.Context, r schema.Routing, body []byte, fails map[string]Stub) schema.Verdict {
	plan := e.snapshot.Plan(r.Agent, r.Event, r.Tool)
	ctx = context.WithValue(ctx, failures{}, fails)
	v := e.dispatcher.Dispatch(ctx, e.snapshot, plan, &dispatch.Request{Routing: r, Attempt: 1, Deadline: time.Now().Add(10 * time.Minute), Body: body})
	if v.Decision == schema.None {
		v.Decision = schema.Continue
	}
	e.reached.hooks(&v)
	return v
}

// local runs batches, and has hooks fail as a case asks.
type local struct{ engine *Engine }

// Try runs a batch. It always has a free slot soon, so it waits for one.
func (l local) Try(ctx context.Context, b *schema.Batch) (schema.BatchReply, bool) {
	reply, ok := l.engine.worker.Try(ctx, b)
	fails, _ := ctx.Value(failures{}).(map[string]Stub)
	for i := range reply.Outcomes {
		o := &reply.Outcomes[i]
		if stub, is := fails[l.engine.config.Hooks[o.Hook].Name]; is {
			o.Result = schema.Result{}
			o.Kind, o.Error = outcomeOf(stub.Fails)
		}
	}
	return reply, ok
}

// outcomeOf returns the outcome of a failure.
func outcomeOf(f Failure) (kind schema.OutcomeKind, why string) {
	switch f {
	case Timeout:
		return schema.Deadline, ""
	case NoWorker:
		return schema.NoWorker, ""
	case Junk:
		return schema.Errored, "its answer cannot be read"
	}
	return schema.Errored, "it crashed"
}

// nobody is a bus without workers.
type nobody struct{}

// Call reports that no worker listens.
func (nobody) Call(context.Context, string, string, *schema.Batch) (schema.BatchReply, error) {
	return schema.BatchReply{}, dispatch.ErrNoWorker
}

// stubs returns the runners, whose hooks do not run where they fail or are stubbed.
func stubs(o Options) map[schema.Kind]workers.Runner {
	all := make(map[schema.Kind]workers.Runner, len(o.Runners))
	for kind, r := range o.Runners {
		outside := kind == schema.Command || kind == schema.Python || kind == schema.HTTP
		all[kind] = stubbed{r, o.Stub && outside}
	}
	return all
}

type stubbed struct {
	workers.Runner

	always bool
}

// Load loads a hook that does not run if it fails in a case.
func (s stubbed) Load(h schema.Hook, site workers.Site) (workers.Handler, error) {
	if s.always {
		return workers.HandlerFunc(func(context.Context, *schema.Event) (r schema.Result, err error) { return r, nil }), nil
	}
	inner, err := s.Runner.Load(h, site)
	if err != nil {
		return nil, err
	}
	return unlessFailing{inner, h.Name}, nil
}

type unlessFailing struct {
	workers.Handler

	name string
}

// Handle runs the hook, unless it fails in the case.
func (u unlessFailing) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	if fails, _ := ctx.Value(failures{}).(map[string]Stub); fails[u.name].Fails != "" {
		return schema.Result{}, nil
	}
	return u.Handler.Handle(ctx, e)
}

// Close closes the hook's handler.
func (u unlessFailing) Close() error {
	if c, ok := u.Handler.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Names returns the hooks that a case may name.
func (e *Engine) Names() string {
	var names []string
	for i := range e.config.Hooks {
		if h := &e.config.Hooks[i]; h.Preset == "" && !h.Stage() {
			names = append(names, h.Name)
		}
	}
	return strings.Join(names, ", ")
}
