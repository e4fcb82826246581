package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func BenchmarkPlan(b *testing.B) {
	s := compile(b, hook(""), hook("", func(h *schema.Hook) { h.Matcher = "Write|Edit" }), hook("", func(h *schema.Hook) { h.Agent = "agent-*" }))
	b.ReportAllocs()
	for b.Loop() {
		if s.Plan("agent-1", schema.PreToolUse, "Bash").Empty() {
			b.Fatal("the plan is empty")
		}
	}
}

// fleet returns a large configuration: a third of its 5,000 hooks are global, half of
// those with a condition; the others belong to agents.
func fleet() schema.Config {
	c := schema.Config{Version: 1}
	for i := range 5000 {
		h := hook(fmt.Sprint("hook-", i), closed, pool(schema.DefaultPool))
		switch {
		case i >= 5000/3:
			h.Agent = fmt.Sprintf("team-%d-*", i)
		case i%2 == 0:
			h.Matcher = fmt.Sprintf("mcp__server%d__*|Write", i)
			h.When = fmt.Sprintf(`tool_input.?command.orValue("").contains("danger-%d")`, i)
		default:
			h.Matcher = fmt.Sprintf("mcp__server%d__*", i)
		}
		c.Hooks = append(c.Hooks, h)
	}
	return c
}

// compileFleet compiles as a broker does.
func compileFleet(b *testing.B, c schema.Config) *dispatch.Snapshot {
	b.Helper()
	conditions, err := cond.NewCompiler()
	if err != nil {
		b.Fatal(err)
	}
	s, err := dispatch.Compile(c, conditions.Compile)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkCompile5000Hooks(b *testing.B) {
	c := fleet()
	b.ReportAllocs()
	for b.Loop() {
		compileFleet(b, c)
	}
}

// BenchmarkPlan5000Hooks finds the hooks of a call: for a new agent, for a new tool, and
// for a known pair.
func BenchmarkPlan5000Hooks(b *testing.B) {
	s := compileFleet(b, fleet())
	for name, call := range map[string]func(n int) (agent, tool string){
		"new agent": func(n int) (string, string) { return fmt.Sprintf("team-%d-%d", 4000+n%1000, n), fmt.Sprint("Tool", n) },
		"new tool":  func(n int) (string, string) { return "team-4000-a", fmt.Sprint("Tool", n) },
		"cached":    func(int) (string, string) { return "team-4000-a", "Write" },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				agent, tool := call(n)
				if s.Plan(agent, schema.PreToolUse, tool).Empty() {
					b.Fatal("the plan is empty")
				}
				n++
			}
		})
	}
}

// BenchmarkDispatch measures a whole call with hooks that have no opinion, run by a real
// worker in this process, or by one behind a bus without costs.
func BenchmarkDispatch(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("local/hooks=%d", n), func(b *testing.B) { benchDispatch(b, n, schema.DefaultPool) })
		b.Run(fmt.Sprintf("local/hooks=%d/shadow", n), func(b *testing.B) { benchDispatch(b, n, schema.DefaultPool, hook("watched", shadow)) })
		b.Run(fmt.Sprintf("remote/hooks=%d", n), func(b *testing.B) { benchDispatch(b, n, "remote") })
	}
}

func benchDispatch(b *testing.B, n int, in string, more ...schema.Hook) {
	hooks := make([]schema.Hook, n)
	for i := range hooks {
		hooks[i] = hook(fmt.Sprint("hook-", i), pool(in), readonly)
	}
	s := compile(b, slices.Concat(hooks, more)...)
	w := workers.New(workers.Options{
		Name: "w", Pools: []string{in}, Inline: []schema.Kind{schema.Builtin},
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: noOpinion{}}, Logger: slog.New(slog.DiscardHandler),
	})
	w.Load(s.Config)
	members := dispatch.NewMembers(10)
	members.Beat(w.Beat(in))
	opt := dispatch.Options{
		Members: members, NewID: func() string { return "id" },
		Caller: callerFunc(func(ctx context.Context, _, _ string, b *schema.Batch) (schema.BatchReply, error) {
			return w.Run(ctx, b), nil
		}),
	}
	if in == schema.DefaultPool {
		opt.Local = w
	}
	d := dispatch.New(opt)
	r := &dispatch.Request{
		Routing: schema.Routing{Event: schema.PreToolUse, Agent: "agent-1", Tool: "Bash", ID: "id"}, Attempt: 1,
		Body: []byte(`{"tool_name":"Bash","tool_input":{"command":"ls"}}`),
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Deadline = time.Now().Add(time.Minute)
		v := d.Dispatch(b.Context(), s, s.Plan(r.Agent, r.Event, r.Tool), r)
		if len(v.ExecutedHooks) != n {
			b.Fatalf("%+v", v)
		}
	}
}

// noOpinion runs hooks that have no opinion.
type noOpinion struct{}

// Load prepares nothing.
func (noOpinion) Load(schema.Hook, workers.Site) (workers.Handler, error) {
	return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) { return schema.Result{}, nil }), nil
}

// Close does nothing.
func (noOpinion) Close() error { return nil }
