package fabric_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func TestScenariosOfFailure(t *testing.T) {
	inBubbles(t, slices.Concat(deadlines, failClosed, lostAndFound))
}

// waits is a hook that never answers, and heeds its deadline.
func waits(ctx context.Context, _ *schema.Event) (schema.Result, error) {
	<-ctx.Done()
	return schema.Result{}, context.Cause(ctx)
}

// timed calls Bash and returns how long that took.
func timed(a *agent) time.Duration {
	start := time.Now()
	a.call("Bash", bash)
	return time.Since(start)
}

var deadlines = []scenario{
	{"default timeout 30 s", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{name: slow, type: builtin, handler: waits, pool: go}]}}`)
		f.serve("w", handlers{"waits": waits})
		a := f.agent("agent1")
		if took := timed(a); took < 30*time.Second || took > 30500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		a.wantErrors(0, 1, `hook "slow": did not answer within its timeout of 30s`)
	}},
	{"custom timeout", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{name: slow, type: builtin, handler: waits, pool: go, timeout: 60}, {name: quick, type: builtin, handler: waits, pool: go, timeout: 1.5s}]}}`)
		f.serve("w", handlers{"waits": waits})
		a := f.agent("agent1")
		if took := timed(a); took < 61500*time.Millisecond || took > 62*time.Second {
			t.Errorf("they took %v", took)
		}
		a.wantErrors(0, 2, `hook "quick": did not answer within its timeout of 1.5s`)
	}},
	{"timed-out hook is terminated and fails open", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{name: slow, type: builtin, handler: waits, pool: go, timeout: 2}]}}`)
		ended := make(chan error, 1)
		f.serve("w", handlers{"waits": func(ctx context.Context, e *schema.Event) (schema.Result, error) {
			r, err := waits(ctx, e)
			ended <- err
			return r, err
		}})
		a := f.agent("agent1")
		if took := timed(a); took < 2*time.Second || took > 2200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		a.wantTrail(0, "slow:deadline")
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the handler ended with %v", err)
		}
		f.log.want(t, "WARN", "hook=slow", "outcome=deadline", "agent=agent1")
	}},
	{"a hook that ignores its deadline delays no other call", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{name: hangs, type: builtin, handler: hangs, pool: go, timeout: 2}]}}`)
		end := make(chan struct{})
		defer close(end)
		f.serve("w", handlers{"hangs": func(context.Context, *schema.Event) (schema.Result, error) {
			<-end
			return schema.Denied("too late"), nil
		}})
		a := f.agent("agent1")
		for range 3 {
			if took := timed(a); took > 2200*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		}
	}},
}

// guard is a hooks.yaml with one fail-closed hook of two seconds.
func guard(more string) string {
	return `{hooks: {PreToolUse: [{name: guard, type: builtin, handler: guard, fail_closed: true, timeout: 2` + more + `}]}}`
}

// denied checks that the guard's failure denied the call.
func denied(t *testing.T, a *agent, outcome, says string) {
	t.Helper()
	a.wantTrail(0, "guard:"+outcome)
	if len(a.transcript) != 1 || !strings.HasPrefix(a.transcript[0], `error hook "guard" is fail-closed and gave no answer: `) || !strings.Contains(a.transcript[0], says) {
		t.Errorf("the transcript is %q", a.transcript)
	}
}

var failClosed = []scenario{
	{"fail_closed on deadline", func(t *testing.T) {
		f := start(t, guard(", pool: go"))
		f.serve("w", handlers{"guard": waits})
		a := f.agent("agent1")
		if took := timed(a); took < 2*time.Second || took > 2200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		denied(t, a, "deadline", "did not answer within its timeout of 2s")
	}},
	{"fail_closed on crash", func(t *testing.T) {
		f := start(t, guard(", pool: go"))
		f.serve("w", handlers{"guard": func(context.Context, *schema.Event) (schema.Result, error) { panic("ouch") }})
		a := f.agent("agent1")
		a.call("Bash", bash)
		denied(t, a, "error", "panicked: ouch")
	}},
	{"fail_closed on junk", func(t *testing.T) {
		f := start(t, guard(", pool: go"))
		f.serve("w", handlers{"guard": does(schema.Result{Decision: "perhaps"})})
		a := f.agent("agent1")
		a.call("Bash", bash)
		denied(t, a, "error", `decided "perhaps"`)
	}},
	{"fail_closed on no worker", func(t *testing.T) {
		f := start(t, guard(", pool: unserved"))
		a := f.agent("agent1")
		// Right after a start a worker may be on its way.
		if took := timed(a); took > schema.Missed*schema.BeatEvery+100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		denied(t, a, "no_worker", `no worker serves the pool "unserved"`)
	}},
	{"fail_closed on lost worker", func(t *testing.T) {
		f := start(t, guard(", pool: go"))
		die := f.dying("w", "guard")
		a := f.agent("agent1")
		time.AfterFunc(time.Second, die)
		if took := timed(a); took > 1020*time.Millisecond {
			t.Errorf("it took %v to notice", took-time.Second)
		}
		denied(t, a, "lost", "the worker is gone")
	}},
	{"fail_closed on busy", func(t *testing.T) {
		f := start(t, guard(", pool: go"))
		f.full("w", "guard")
		hog, a := f.agent("agent1"), f.agent("agent2")
		done := make(chan struct{})
		go func() {
			defer close(done)
			hog.call("Bash", bash)
		}()
		<-time.After(time.Second)
		if took := timed(a); took < 2*time.Second || took > 2500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		<-done
		denied(t, a, "busy", "every worker of its pool stayed busy")
	}},
	{"a handler that cannot be loaded denies", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - {name: unknown, type: builtin, handler: no-such-thing, matcher: Bash}
    - {name: unserved, type: builtin, handler: no-such-thing, pool: go, matcher: Edit}
`)
		f.serve("w", handlers{})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.call("Edit", `{}`)
		a.wantTrail(0, "unknown:load_error")
		a.wantTrail(1, "unserved:load_error")
		for i, line := range a.transcript {
			if !strings.Contains(line, "guards this call and gave no answer: its handler cannot be loaded") || i > 1 {
				t.Errorf("%q", a.transcript)
			}
		}
		f.log.want(t, "handler cannot be loaded", "hook=unknown")
	}},
	{"without fail_closed the same failures pass, and are counted as errors", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - {name: crash, type: builtin, handler: crash, pool: go}
    - {name: junk, type: builtin, handler: junk, pool: go}
    - {name: unserved, type: builtin, handler: x, pool: unserved}
`)
		f.serve("w", handlers{
			"crash": func(context.Context, *schema.Event) (schema.Result, error) { panic("ouch") },
			"junk":  does(schema.Result{Decision: "perhaps"}),
		})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		a.wantTrail(0, "crash:error junk:error unserved:no_worker")
		a.wantErrors(0, 3, "panicked: ouch")
	}},
}

var lostAndFound = []scenario{
	{"an idempotent hook of a lost worker runs on another one", func(t *testing.T) {
		f := start(t, guard(", pool: go, idempotent: true"))
		die := f.dying("dies", "guard")
		a := f.agent("agent1")
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.call("Bash", bash)
		}()
		synctest.Wait()
		f.serve("lives", handlers{"guard": does(schema.Allowed())})
		die()
		<-done
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		if w := a.verdicts[0].ExecutedHooks[0].Worker; w != "lives" {
			t.Errorf("%q ran it", w)
		}
	}},
	{"a broker that stops answers what is under way", func(t *testing.T) {
		f := start(t, guard(", pool: go"))
		f.serve("w", handlers{"guard": func(context.Context, *schema.Event) (schema.Result, error) {
			<-time.After(time.Second)
			return schema.Denied("after a second"), nil
		}})
		a := f.agent("agent1")
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.ask(&schema.Event{HookType: schema.PreToolUse, ToolName: "Bash", ToolInput: []byte(bash)})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), stopTime)
		defer cancel()
		if err := f.broker.Close(ctx); err != nil {
			t.Error(err)
		}
		<-done
		if r := a.verdicts[0].Reason; r != "after a second" {
			t.Errorf("the answer is %q", r)
		}
	}},
}

// dying serves the pool "go" as a worker that never answers. It returns how to
// let it die.
func (f *fabric) dying(name, hook string) (die func()) {
	f.t.Helper()
	end := make(chan struct{})
	f.t.Cleanup(func() { close(end) })
	return f.serve(name, handlers{hook: func(context.Context, *schema.Event) (schema.Result, error) {
		<-end
		return schema.Allowed(), nil
	}}).Close
}

// full serves the pool "go" with a worker that runs one batch at a time, and gives it a batch that never ends.
func (f *fabric) full(name, hook string) {
	f.t.Helper()
	end := make(chan struct{})
	w := workers.New(workers.Options{
		Name: name, Pools: []string{"go"}, Capacity: 1, Logger: slog.New(f.log),
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: one{hook, func(context.Context, *schema.Event) (schema.Result, error) {
			<-end
			return schema.Result{}, nil
		}}},
	})
	nc := f.connect(workers.ConnectionPrefix + name)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- workers.Run(ctx, nc, w) }()
	f.t.Cleanup(func() {
		close(end)
		stop()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
	synctest.Wait()
}

// one is a runner that knows one handler.
type one struct {
	name    string
	handler workers.HandlerFunc
}

func (o one) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	if h.Handler != o.name {
		return nil, errors.New("it is not here")
	}
	return o.handler, nil
}

func (one) Close() error { return nil }
