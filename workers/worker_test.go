package workers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// library is a runner of named functions.
type library map[string]workers.HandlerFunc

func (l library) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	if f := l[h.Handler]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("there is no %q", h.Handler)
}

func (l library) Close() error { return nil }

// quiet is the log of tests in which hooks fail on purpose.
var quiet = slog.New(slog.DiscardHandler)

// hook returns a hook of the pool "p" whose handler has its name. A name may be followed
// by settings: "slow readonly".
func hook(words string) schema.Hook {
	name, rest, _ := strings.Cut(words, " ")
	return schema.Hook{
		Name: name, Event: schema.PreToolUse, Type: schema.Builtin, Handler: name, Timeout: schema.DefaultTimeout,
		Pool: "p", Readonly: strings.Contains(rest, "readonly"),
	}
}

func config(hooks ...schema.Hook) schema.Config { return schema.Config{Version: 1, Hooks: hooks} }

// newWorker makes a worker of the pool "p" with cfg.
func newWorker(lib library, cfg schema.Config, change ...func(*workers.Options)) *workers.Worker {
	opt := workers.Options{
		Name: "w", Pools: []string{"p"}, Runners: map[schema.Kind]workers.Runner{schema.Builtin: lib}, Logger: quiet,
	}
	for _, c := range change {
		c(&opt)
	}
	w := workers.New(opt)
	w.Load(cfg)
	return w
}

func capacity(n int) func(*workers.Options) { return func(o *workers.Options) { o.Capacity = n } }

const eventID = "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"

// batch returns a batch of config version 1 for a call of Bash.
func batch(hooks ...int) *schema.Batch {
	return &schema.Batch{
		Routing: schema.Routing{Event: schema.PreToolUse, Agent: "a", Session: "s", Tool: "Bash", ID: eventID},
		Batch:   "b1", Version: 1, Hooks: hooks, Left: time.Minute,
		Body: []byte(`{"tool_name":"Bash","tool_input":{"n":0}}`),
	}
}

// kinds summarises the outcomes of a batch.
func kinds(r schema.BatchReply) string {
	var all []string
	for _, o := range r.Outcomes {
		kind := o.Kind
		if kind == "" {
			kind = schema.OK
		}
		all = append(all, fmt.Sprintf("%d:%s", o.Hook, kind))
	}
	return strings.Join(all, " ")
}

func wantKinds(t *testing.T, r schema.BatchReply, want string) {
	t.Helper()
	if got := kinds(r); got != want || r.Status != schema.StatusOK {
		t.Errorf("outcomes %q, status %q; want %q (%+v)", got, r.Status, want, r)
	}
}

func allows(context.Context, *schema.Event) (schema.Result, error) { return schema.Allowed(), nil }

// hangs ignores its deadline until the channel is closed.
func hangs(until chan struct{}) workers.HandlerFunc {
	return func(context.Context, *schema.Event) (schema.Result, error) {
		<-until
		return schema.Denied("too late"), nil
	}
}

// counting increments n in the input, so that each link of a chain is visible.
func counting(_ context.Context, e *schema.Event) (schema.Result, error) {
	var in struct {
		N int `json:"n"`
	}
	if err := schema.Unmarshal(e.ToolInput, &in); err != nil {
		return schema.Result{}, err
	}
	return schema.Rewritten(jsontext.Value(fmt.Sprintf(`{"n":%d}`, in.N+1))), nil
}

func TestInvalidBatchesAreRefusedWithAStatus(t *testing.T) {
	cases := map[string]struct {
		change func(*schema.Batch)
		want   schema.Status
	}{
		"an unknown version is stale":        {func(b *schema.Batch) { b.Version = 7 }, schema.StatusStale},
		"a hook of another pool is stale":    {func(b *schema.Batch) { b.Hooks = []int{1} }, schema.StatusStale},
		"a hook beyond the end is stale":     {func(b *schema.Batch) { b.Hooks = []int{9} }, schema.StatusStale},
		"a negative hook is stale":           {func(b *schema.Batch) { b.Hooks = []int{-1} }, schema.StatusStale},
		"another tool in the body":           {func(b *schema.Batch) { b.Body = []byte(`{"tool_name":"Edit"}`) }, schema.StatusMismatch},
		"a body that is not JSON":            {func(b *schema.Batch) { b.Body = []byte(`{`) }, schema.StatusMalformed},
		"a body that is not an object":       {func(b *schema.Batch) { b.Body = []byte(`[]`) }, schema.StatusMalformed},
		"a tool input that is not an object": {func(b *schema.Batch) { b.Body = []byte(`{"tool_input":3}`) }, schema.StatusMalformed},
		"a member that is there twice":       {func(b *schema.Batch) { b.Body = []byte(`{"cwd":"/a","cwd":"/b"}`) }, schema.StatusMalformed},
		"no body":                            {func(b *schema.Batch) { b.Body = nil }, schema.StatusMalformed},
		"a valid batch is not refused":       {func(*schema.Batch) {}, schema.StatusOK},
	}
	other := hook("other")
	other.Pool = "q"
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorker(library{"yes": allows, "other": allows}, config(hook("yes"), other))
			b := batch(0)
			c.change(b)
			r := w.Run(t.Context(), b)
			if r.Status != c.want || r.Worker != "w" || (r.Error == "") != (c.want == schema.StatusOK) || (len(r.Outcomes) > 0) != (c.want == schema.StatusOK) {
				t.Errorf("%+v", r)
			}
			if n := w.Beat("p").InFlight; n != 0 {
				t.Errorf("%d slots are taken", n)
			}
		})
	}
}

func TestABrokenHandlerIsAnError(t *testing.T) {
	var nothing map[string]int
	lib := library{
		"fails": func(context.Context, *schema.Event) (schema.Result, error) {
			return schema.Result{}, errors.New("no idea")
		},
		"panics": func(context.Context, *schema.Event) (schema.Result, error) {
			nothing["x"]++
			return schema.Result{}, nil
		},
		"vanishes": func(context.Context, *schema.Event) (schema.Result, error) {
			runtime.Goexit()
			return schema.Result{}, nil
		},
		"floods": func(context.Context, *schema.Event) (schema.Result, error) {
			return schema.Denied(strings.Repeat("x", schema.MaxResult+1)), nil
		},
		"yes": allows,
	}
	bounded := hook("vanishes")
	bounded.MaxConcurrent = 1
	w := newWorker(lib, config(hook("fails"), hook("panics"), bounded, bounded, hook("yes"), hook("floods"), hook("yes")))
	r := w.Run(t.Context(), batch(0, 1, 2, 3, 4, 5, 6))
	wantKinds(t, r, "0:error 1:error 2:error 3:error 4:ok 5:error")
	for i, want := range []string{"no idea", "panicked: assignment to entry in nil map", "ended its goroutine", "ended its goroutine", "", "answered with 1048581 bytes"} {
		if got := r.Outcomes[i].Error; !strings.Contains(got, want) {
			t.Errorf("%d: %q", i, got)
		}
	}
	if d := r.Outcomes[5].Result; d.Decision != schema.Deny || len(d.Reason) > schema.MaxReason+3 {
		t.Errorf("a refusal that is too large is %q with %d bytes", d.Decision, len(d.Reason))
	}
}

func TestAnInlineHandlerPanicsWithoutHarm(t *testing.T) {
	w := newWorker(library{"panics": func(context.Context, *schema.Event) (schema.Result, error) { panic("ouch") }, "yes": allows},
		config(hook("panics"), hook("yes")), func(o *workers.Options) { o.Inline = []schema.Kind{schema.Builtin} })
	wantKinds(t, w.Run(t.Context(), batch(0, 1)), "0:error 1:ok")
}

func TestALoadErrorEndsTheBatch(t *testing.T) {
	w := workers.New(workers.Options{Name: "w", Pools: []string{"p"}, Logger: quiet,
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: library{"yes": allows}}})
	program := hook("program")
	program.Type = schema.Command
	elsewhere := hook("unknown")
	elsewhere.Pool = "q"
	errs := w.Load(config(hook("yes"), hook("missing"), hook("yes"), program, elsewhere))
	want := map[string]string{
		"missing": `there is no "missing"`,
		"program": `this worker does not run handlers of type "command"; give the hook a pool whose workers do`,
	}
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, w.Beat("p").LoadErrors); diff != "" {
		t.Error(diff)
	}
	r := w.Run(t.Context(), batch(0, 1, 2))
	wantKinds(t, r, "0:ok 1:load_error")
	if got := r.Outcomes[1].Error; got != `its handler cannot be loaded: there is no "missing"` {
		t.Error(got)
	}
}

// Hooks of presets and stages of the aggregator without a handler are not load errors.
func TestPresetsAndStagesAreNotLoadErrors(t *testing.T) {
	missing, stage := hook("missing"), hook("stage")
	missing.Preset, stage.Handler = "delivery", schema.HumanInput
	w := workers.New(workers.Options{Name: "w", Pools: []string{"p"}, Logger: quiet,
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: library{"yes": allows}}})
	if errs := w.Load(config(missing, stage, hook("yes"))); len(errs) > 0 {
		t.Error(errs)
	}
	r := w.Run(t.Context(), batch(0, 2))
	wantKinds(t, r, "0:ok 2:ok")
	if d := cmp.Diff(schema.Result{}, r.Outcomes[0].Result); d != "" {
		t.Errorf("the outcome of the preset's hook (-want +got):\n%s", d)
	}
	if r := w.Run(t.Context(), batch(1)); r.Status != schema.StatusStale {
		t.Errorf("the reply about a stage is %+v", r)
	}
}

func TestAnUnloadedHandlerEndsTheBatch(t *testing.T) {
	w := newWorker(library{"yes": allows, "gone": func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Result{}, fmt.Errorf("policy: %w", &workers.UnloadedError{Err: errors.New("its module is gone")})
	}}, config(hook("gone"), hook("yes")))
	r := w.Run(t.Context(), batch(0, 1))
	wantKinds(t, r, "0:load_error")
	if got := r.Outcomes[0].Error; got != "policy: its module is gone" {
		t.Error(got)
	}
}

func TestRewritersChainAndADenyEndsTheBatch(t *testing.T) {
	var seen string
	sees := func(_ context.Context, e *schema.Event) (schema.Result, error) {
		seen = string(e.ToolInput)
		return schema.Denied("seen"), nil
	}
	w := newWorker(library{"counts": counting, "sees": sees}, config(hook("counts"), hook("counts"), hook("sees readonly"), hook("counts")))
	b := batch(0, 1, 2, 3)
	body := string(b.Body)
	r := w.Run(t.Context(), b)
	wantKinds(t, r, "0:ok 1:ok 2:ok")
	if seen != `{"n":2}` || string(b.Body) != body {
		t.Errorf("the last hook saw %s; the batch's own body is %s", seen, b.Body)
	}
}

func TestARefusedRewriteIsDropped(t *testing.T) {
	var seen string
	sees := func(_ context.Context, e *schema.Event) (schema.Result, error) {
		seen = string(e.ToolInput)
		return schema.Result{}, nil
	}
	w := newWorker(library{"counts": counting, "sees": sees}, config(hook("counts readonly"), hook("sees")))
	wantKinds(t, w.Run(t.Context(), batch(0, 1)), "0:ok 1:ok")
	if seen != `{"n":0}` {
		t.Errorf("behind a readonly hook that rewrote, the next saw %s", seen)
	}
}

func TestReadonlyNeighboursRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := func(d time.Duration, r schema.Result) workers.HandlerFunc {
			return func(context.Context, *schema.Event) (schema.Result, error) {
				<-time.After(d)
				return r, nil
			}
		}
		lib := library{"a": takes(3*time.Second, schema.Allowed()), "b": takes(time.Second, schema.Denied("no")), "c": takes(2*time.Second, schema.Allowed())}
		w := newWorker(lib, config(hook("a readonly"), hook("b readonly"), hook("c readonly"), hook("a")))
		start := time.Now()
		wantKinds(t, w.Run(t.Context(), batch(0, 1, 2, 3)), "0:ok 1:ok 2:ok")
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("side by side they took %v", took)
		}
		w = newWorker(lib, config(hook("a"), hook("c readonly")))
		start = time.Now()
		wantKinds(t, w.Run(t.Context(), batch(0, 1)), "0:ok 1:ok")
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("one after the other they took %v", took)
		}
	})
}

func TestAWorkerKeepsThreeVersions(t *testing.T) {
	w := newWorker(library{"yes": allows}, config(hook("yes")), lingering(-1))
	for v := uint64(2); v <= 4; v++ {
		cfg := config(hook("yes"))
		cfg.Version = v
		w.Load(cfg)
	}
	if diff := cmp.Diff([]uint64{2, 3, 4}, w.Beat("p").Versions); diff != "" || w.Version() != 4 {
		t.Error(w.Version(), diff)
	}
	if r := w.Run(t.Context(), batch(0)); r.Status != schema.StatusStale {
		t.Errorf("%+v", r)
	}
	b := batch(0)
	b.Version = 2
	wantKinds(t, w.Run(t.Context(), b), "0:ok")
}
