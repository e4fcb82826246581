package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// hit begins the names of the tools for which the one hook is.
const hit = "hit"

// A kind is a way to write many hooks of which one matches.
type kind struct {
	name string
	// hooks is the configuration with n of them.
	hooks func(n int) string
	// asks are the series that are measured of it, without their windows.
	asks []named
}

// named is a request and what it is called.
type named struct {
	name string
	q    roles.CrowdRequest
}

func kinds() []kind {
	warm := named{"asked before", roles.CrowdRequest{Tool: hit, Hooks: 1}}
	cold := named{"a new tool each time", roles.CrowdRequest{Tool: hit, Hooks: 1, Fresh: roles.FreshTool}}
	return []kind{
		{"of all agents, by tools' names", func(n int) string { return global(n, "miss-%d|other-%d") }, []named{warm, cold}},
		{"of all agents, by globs", func(n int) string { return global(n, "*miss-%d|*other-%d") }, []named{cold}},
		{"one for each agent", ofAgents, []named{warm, cold,
			{"a new agent each time", roles.CrowdRequest{Tool: hit, Fresh: roles.FreshAgent}}}},
	}
}

// global is n hooks of all agents, with matchers of that form; the one in the middle
// is asked.
func global(n int, form string) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = hookYAML(fmt.Sprintf("h%d", i), fmt.Sprintf(form, i, i), schema.DefaultPool)
	}
	lines[n/2] = hookYAML("match", hit+"*", schema.DefaultPool)
	return hooksYAML(lines)
}

// ofAgents is n agents with a hook of their own each.
func ofAgents(n int) string {
	var b strings.Builder
	b.WriteString("presets: []\nagents:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - id: agent-%d\n    hooks:\n      PreToolUse:\n        - {name: h%d, matcher: %q, type: builtin, handler: allow}\n", i, i, hit+"*")
	}
	return b.String()
}

// matchers grows the number of hooks in the configuration, of which one matches.
func (o *Options) matchers(ctx context.Context, r *Report) (err error) {
	var all stands
	defer func() { err = errors.Join(err, all.stop()) }()
	g := &growth{part: "matchers", title: "Hooks in the configuration, of which one matches", of: "hooks in the configuration",
		note: "One caller. A known tool or agent has a cached plan; a new one needs a new plan. The broker looks up names and prefixes of globs. These globs begin with a star, so it tries each of them."}
	t := result.Table{Title: "What a configuration takes", Columns: []string{"hooks", "file", "apply [95 %]", "broker's heap for each further hook", "series in /metrics", "a scrape takes"}}
	for i, k := range kinds() {
		of := make([]*series, len(k.asks))
		for j, a := range k.asks {
			of[j] = &series{name: k.name + ", " + a.name}
		}
		var smallest facts
		for at, n := range o.Matchers {
			s, err := o.stand(ctx, fmt.Sprintf("matchers-%d-%d", i, n), k.hooks(n))
			if err != nil {
				return err
			}
			all = append(all, s)
			for j, a := range k.asks {
				a.q.Window = o.window(1)
				if err := s.ready(ctx, a.q); err != nil {
					return fmt.Errorf("%s, %d hooks: %w", of[j].name, n, err)
				}
				of[j].steps = append(of[j].steps, s.step(counted(n, "hook", "hooks"), n, a.q))
			}
			f, err := o.facts(ctx, s, k.hooks(n))
			if err != nil {
				return err
			}
			if at == 0 {
				smallest = f
			}
			t.Rows = append(t.Rows, f.row(k.name, n, o.Matchers[0], smallest))
			r.Figures = append(r.Figures, result.Figured(fmt.Sprintf("matchers: %s, apply %s", k.name, counted(n, "hook", "hooks")), "s", result.Lower, f.apply))
		}
		o.say("matchers: %d configurations of hooks %s are up", len(o.Matchers), k.name)
		g.all = append(g.all, of...)
	}
	if err := o.repeated(ctx, g); err != nil {
		return err
	}
	g.tell(r)
	r.Tables = append(r.Tables, t)
	return nil
}

// facts are what a broker shows of its configuration.
type facts struct {
	file   int
	heap   uint64
	apply  []float64
	series int
	scrape time.Duration
}

func (f facts) row(name string, n, first int, smallest facts) []string {
	each := "–"
	if n > first {
		each = size((float64(f.heap) - float64(smallest.heap)) / float64(n-first))
	}
	e := stats.Estimated(f.apply)
	return []string{grouped(n) + " " + name, size(float64(f.file)), fmt.Sprintf("%s [%s %s]", micros(e.Median), micros(e.Low), micros(e.High)),
		each, grouped(f.series), micros(f.scrape.Seconds())}
}

// facts applies a configuration a few times, with another comment each, and looks.
func (o *Options) facts(ctx context.Context, s *stand, hooks string) (f facts, err error) {
	f.file = len(hooks)
	took, err := look(ctx, s.broker)
	if err != nil {
		return f, err
	}
	f.heap = took.Heap
	if f.series, f.scrape, err = s.metrics(ctx); err != nil {
		return f, err
	}
	nc, err := bus.Connect(ctx, bus.Options{URL: s.nats, Name: "loadtest scale"})
	if err != nil {
		return f, err
	}
	defer nc.Close()
	for i := range min(o.repetitions(), 3) {
		// A hook's deadline makes it another version.
		text := strings.Replace(hooks, "handler: allow", fmt.Sprintf("timeout: %d, handler: allow", 20+i), 1)
		var a schema.ConfigAnswer
		began := time.Now()
		applyCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := roles.Control(applyCtx, nc, roles.Verb{Verb: "config"}, schema.ConfigRequest{Action: schema.ActionApply, Source: text, File: "hooks.yaml"}, &a)
		cancel()
		if err != nil {
			return f, fmt.Errorf("applying a configuration of %d bytes: %w", len(text), err)
		}
		if !a.Changed || a.Refused {
			return f, fmt.Errorf("applying a configuration returned %+v", a)
		}
		f.apply = append(f.apply, time.Since(began).Seconds())
	}
	return f, nil
}

// metrics looks at the broker's metrics, and says how many series there are.
func (s *stand) metrics(ctx context.Context) (series int, took time.Duration, err error) {
	began := time.Now()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.web+"/metrics", nil)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the metrics: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the metrics: %w", err)
	}
	took = time.Since(began)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	return series, took, nil
}
