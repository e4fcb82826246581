package dispatch_test

import (
	"context"
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

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// A world is a dispatcher with workers in the test, inside a bubble. Workers send
// heartbeats and the dispatcher ticks as in the fabric, in fake time.
type world struct {
	t       *testing.T
	hooks   []schema.Hook
	members *dispatch.Members
	opt     dispatch.Options
	d       *dispatch.Dispatcher
	snap    *dispatch.Snapshot
	life    context.Context
	end     context.CancelFunc
	ids     atomic.Uint64
	stopped atomic.Bool // the aggregator's process: it neither ticks nor receives

	mu     sync.Mutex // guards the fields below
	peers  []*peer
	events []string // calls of the dispatcher's Watch
}

// inWorld runs f in a bubble with a world of the hooks.
func inWorld(t *testing.T, hooks []schema.Hook, f func(w *world)) {
	t.Helper()
	inWorldWithQueue(t, 100, hooks, f)
}

// inWorldWithQueue is inWorld with a limit of waiting calls.
func inWorldWithQueue(t *testing.T, queue int, hooks []schema.Hook, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { inBubble(t, queue, hooks, f) })
}

// inBubble runs f in a world, inside an existing bubble.
func inBubble(t *testing.T, queue int, hooks []schema.Hook, f func(w *world)) {
	life, end := context.WithCancel(t.Context())
	defer end()
	w := &world{t: t, hooks: hooks, members: dispatch.NewMembers(queue), life: life, end: end}
	w.opt = dispatch.Options{
		Caller: w, Members: w.members, NewID: func() string { return strconv.FormatUint(w.ids.Add(1), 10) },
		Logger: slog.New(slog.DiscardHandler), Watch: w.watch(),
	}
	w.build()
	go w.run()
	f(w)
}

// build makes a new dispatcher after its options or hooks were changed.
func (w *world) build() {
	var err error
	if w.snap, err = dispatch.Compile(schema.Config{Version: 1, Hooks: w.hooks}, compileCondition); err != nil {
		w.t.Fatal(err)
	}
	w.d = dispatch.New(w.opt)
}

func (w *world) watch() dispatch.Watch {
	return dispatch.Watch{
		Rerun: func(pool string, n int) { w.record("rerun %d of %s", n, pool) },
		Aside: func(_ *dispatch.Request, h *schema.Hook, part schema.Verdict) {
			w.record("aside %s=%s", h.Name, part.ExecutedHooks[0].Outcome)
		},
		Shadow: func(_ *dispatch.Request, s *dispatch.Shadowed) {
			rewrites := ""
			if s.Rewrites {
				rewrites = " and rewrites"
			}
			w.record("shadow %s=%s, %s would be %s%s", s.Hook.Name, s.Part.ExecutedHooks[0].Outcome, s.Decided, s.Would, rewrites)
		},
		ShadowDropped:   func(n int) { w.record("%d shadows dropped", n) },
		ConditionFailed: func(h *schema.Hook, _ error) { w.record("condition of %s failed", h.Name) },
	}
}

func (w *world) record(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf(format, args...))
}

// run sends heartbeats and ticks.
func (w *world) run() {
	const every = schema.BeatEvery / 5
	t := time.NewTicker(every)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-w.life.Done():
			return
		case <-t.C:
		}
		if w.stopped.Load() {
			continue
		}
		if n%5 == 0 {
			for _, p := range w.all() {
				p.beat()
			}
		}
		w.members.Tick(every)
	}
}

func (w *world) all() []*peer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.peers)
}

// ask makes a call with that much time left, and returns how long it took.
func (w *world) ask(left time.Duration) (schema.Verdict, time.Duration) {
	return w.request(&dispatch.Request{Attempt: 1, Deadline: time.Now().Add(left)})
}

func (w *world) request(r *dispatch.Request) (schema.Verdict, time.Duration) {
	r.Routing = schema.Routing{Event: w.hooks[0].Event, Agent: "agent-1", ID: "id"}
	if r.Event.HasTool() {
		r.Tool = "Bash"
	}
	if r.Body == nil {
		r.Body = []byte(`{"tool_input":{"n":0}}`)
	}
	start := time.Now()
	v := w.d.Dispatch(w.life, w.snap, w.snap.Plan(r.Agent, r.Event, r.Tool), r)
	return v, time.Since(start)
}

// askAside makes a call in the background.
func (w *world) askAside(left time.Duration) <-chan schema.Verdict {
	got := make(chan schema.Verdict, 1)
	go func() {
		v, _ := w.ask(left)
		got <- v
	}()
	synctest.Wait()
	return got
}

// trail formats the outcomes of hooks with their workers.
func trail(v schema.Verdict) string {
	var out []string
	for _, x := range v.ExecutedHooks {
		s := fmt.Sprintf("%s=%s", x.Hook, x.Outcome)
		if x.Worker != "" {
			s += "@" + x.Worker
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// wants checks a verdict's decision and trail.
func (w *world) wants(v schema.Verdict, d schema.Decision, want string) {
	w.t.Helper()
	if v.Decision != d || trail(v) != want {
		w.t.Errorf("decided %q, %s; want %q, %s\nerrors: %q", v.Decision, trail(v), d, want, v.HookErrors)
	}
}

func (w *world) wantsEvents(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.events, want) {
		w.t.Errorf("events %q, want %q", w.events, want)
	}
}

// took checks that a duration is within limits.
func (w *world) took(got, least, most time.Duration) {
	w.t.Helper()
	if got < least || got > most {
		w.t.Errorf("took %s; want %s to %s", got, least, most)
	}
}

// Call is the bus of the world.
func (w *world) Call(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
	for _, p := range w.all() {
		if p.pool == pool && (worker == "" || p.name == worker) && !p.dead.Load() {
			return p.take(ctx, b)
		}
	}
	return schema.BatchReply{}, dispatch.ErrNoWorker
}

// names joins the names of hooks.
func (w *world) names(hooks []int) string {
	var out []string
	for _, i := range hooks {
		out = append(out, w.hooks[i].Name)
	}
	return strings.Join(out, "+")
}

// hook returns an idempotent hook of the pool "remote", with changes for the test.
func hook(name string, changes ...func(*schema.Hook)) schema.Hook {
	h := schema.Hook{
		Name: name, Event: schema.PreToolUse, Type: schema.Builtin, Handler: name,
		Timeout: schema.DefaultTimeout, Pool: "remote", Idempotent: true,
	}
	for _, change := range changes {
		change(&h)
	}
	return h
}

func once(h *schema.Hook)     { h.Idempotent = false }
func closed(h *schema.Hook)   { h.FailClosed = true }
func readonly(h *schema.Hook) { h.Readonly = true }
func shadow(h *schema.Hook)   { h.Mode = schema.Shadow }

func pool(name string) func(*schema.Hook) { return func(h *schema.Hook) { h.Pool = name } }

func at(e schema.EventType) func(*schema.Hook) { return func(h *schema.Hook) { h.Event = e } }

func timeout(d time.Duration) func(*schema.Hook) {
	return func(h *schema.Hook) { h.Timeout = schema.Duration(d) }
}

// pass waits on the bubble's clock.
func pass(d time.Duration) { <-time.After(d) }
