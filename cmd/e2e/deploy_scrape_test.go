package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// watchedHooks fail and answer in all ways that dashboards show.
const watchedHooks = `
hooks:
  PreToolUse:
    - {name: passes, type: builtin, handler: allow, readonly: true}
    - {name: open, matcher: Open, handler: ./fail.sh, timeout: 5, readonly: true}
    - {name: closed, matcher: Closed, handler: ./fail.sh, timeout: 5, readonly: true, fail_closed: true}
    - {name: away, matcher: Away, type: builtin, handler: allow, pool: heavy, readonly: true, fail_closed: true}
    - {name: shadow, type: builtin, handler: deny, mode: shadow}
    - {name: strange, matcher: Open, type: builtin, handler: allow, readonly: true, when: tool_input.nothing == "x"}
  PostToolUse:
    - {name: after, type: builtin, handler: log}
`

// A metered fabric is a broker and a worker under load, as Prometheus meets them.
type metered struct {
	broker *brokerProcess
	worker *process
	// scraped are the addresses of their metrics by Prometheus' jobs.
	scraped map[string]string
	client  *client.Client
}

// startMetered starts them, and has every hook asked.
func startMetered(t testing.TB) *metered {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "fail.sh", "#!/bin/sh\nexit 1\n")
	w := &metered{broker: startBroker(t, "--config", write(t, dir, "hooks.yaml", watchedHooks))}
	w.worker = startWith(t, nil, "hookworker", "--nats", w.broker.url, "--pool", "heavy", "--name", "w1", "--http", "127.0.0.1:0")
	w.scraped = map[string]string{
		"hookfabric-broker": w.broker.http,
		"hookfabric-worker": "http://" + w.worker.mustSay(t, 0, `health checks and metrics" url=http://(\S+)`)[1],
	}
	w.client = dial(t, w.broker.url)
	awaitWorkers(t, connect(t, w.broker.url), "w1")
	w.load(t)
	return w
}

// load has every hook asked once.
func (w *metered) load(t testing.TB) {
	t.Helper()
	for _, tool := range []string{"Open", "Closed", "Away", "Other"} {
		if _, err := ask(t.Context(), w.client, tool); err != nil {
			t.Fatal(err)
		}
	}
	after := &schema.Event{HookType: schema.PostToolUse, AgentID: "tester", ToolName: "Other", ToolInput: []byte(`{}`), ToolOutput: []byte(`"x"`)}
	if _, err := w.client.Ask(t.Context(), after); err != nil {
		t.Fatal(err)
	}
}

var (
	seriesLine = regexp.MustCompile(`(?m)^([A-Za-z_:][\w:]*)(?:\{(.*)\})? \S+$`)
	seriesName = regexp.MustCompile(`(\w+)="`)
)

// scrape has the labels of every metric of a process, and how many series there are.
func scrape(t testing.TB, url string) (labels map[string][]string, series int) {
	t.Helper()
	_, body, err := fetch(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	labels = make(map[string][]string)
	all := seriesLine.FindAllStringSubmatch(body, -1)
	for _, m := range all {
		if _, ok := labels[m[1]]; !ok {
			labels[m[1]] = nil
		}
		for _, l := range seriesName.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels[m[1]], l[1]) {
				labels[m[1]] = append(labels[m[1]], l[1])
			}
		}
	}
	return labels, len(all)
}

// known are the labels of all metrics that rules and dashboards may ask for: those
// of the processes, what Prometheus adds, and what the rules record.
func (w *metered) known(t testing.TB) map[string][]string {
	t.Helper()
	target := []string{"job", "instance"}
	all := map[string][]string{"up": target}
	for _, url := range w.scraped {
		labels, _ := scrape(t, url)
		for metric, names := range labels {
			all[metric] = slices.Concat(all[metric], names, target)
		}
	}
	for _, r := range rules(t) {
		if r.Record != "" {
			all[r.Record] = metricsOf(r.Expr).grouped
		}
	}
	return all
}

// asksForWhatThereIs reports a metric or a label that an expression names and that
// is nowhere.
func asksForWhatThereIs(t testing.TB, where, expr string, known map[string][]string) {
	t.Helper()
	q := metricsOf(expr)
	if len(q.selected) == 0 {
		t.Errorf("%s asks for nothing: %s", where, expr)
	}
	for _, s := range q.selected {
		names, ok := known[s.metric]
		if !ok {
			t.Errorf("%s asks for %s, which no process shows and no rule records", where, s.metric)
			continue
		}
		for _, label := range slices.Concat(s.labels, q.grouped) {
			if !slices.Contains(names, label) {
				t.Errorf("%s asks for the label %s of %s, which has %q", where, label, s.metric, names)
			}
		}
	}
}

// Each metric in rules, dashboards and runbooks is in a scrape of a broker and a worker under load, and each
// scraped metric is on a dashboard.
func TestScrapesHaveTheMetricsOfRulesAndDashboards(t *testing.T) {
	t.Parallel()
	w := startMetered(t)
	known := w.known(t)
	for _, r := range rules(t) {
		asksForWhatThereIs(t, "the rule "+r.Alert+r.Record, r.Expr, known)
		for _, text := range r.Annotations {
			for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				if !mentions(r.Expr, m[1], known) {
					t.Errorf("the alert %s speaks of the label %s, which its expression does not leave", r.Alert, m[1])
				}
			}
		}
	}
	shown := map[string]bool{}
	for file, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if values, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
				metric, label, _ := strings.Cut(strings.TrimSuffix(values, ")"), ", ")
				asksForWhatThereIs(t, file+", variable "+v.Name, metric+`{`+label+`=""}`, known)
			}
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				where := fmt.Sprintf("%s, panel %q", file, p.Title)
				asksForWhatThereIs(t, where, plain(q.Expr), known)
				for _, s := range metricsOf(q.Expr).selected {
					shown[s.metric] = true
				}
				for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.Legend, -1) {
					if !mentions(plain(q.Expr), m[1], known) {
						t.Errorf("%s: its lines are named by %s, which its query does not leave", where, m[1])
					}
				}
			}
		}
	}
	for _, expr := range bookQueries(t) {
		asksForWhatThereIs(t, "a runbook", expr, known)
	}
	for _, r := range rules(t) {
		if shown[r.Record] {
			for _, s := range metricsOf(r.Expr).selected {
				shown[s.metric] = true
			}
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(known)) {
		family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(metric, "")
		if strings.HasPrefix(metric, "hookfabric_") && !shown[family] && !shown[family+"_bucket"] && !shown[family+"_sum"] {
			t.Errorf("no dashboard shows %s", metric)
		}
	}
}

// mentions reports whether an expression leaves a label: it groups by it, or does not
// group at all and its metric has it.
func mentions(expr, label string, known map[string][]string) bool {
	q := metricsOf(expr)
	if len(q.grouped) > 0 {
		return slices.Contains(q.grouped, label)
	}
	return slices.ContainsFunc(q.selected, func(s selected) bool { return slices.Contains(known[s.metric], label) })
}

// Ten thousand agents, each with a session and a tool of its own, make as many series
// as ten.
func TestSeriesDoNotGrowWithAgents(t *testing.T) {
	t.Parallel()
	w := startMetered(t)
	w.agents(t, 0, 10)
	_, few := scrape(t, w.broker.http)
	w.agents(t, 10, 10_000)
	labels, many := scrape(t, w.broker.http)
	t.Logf("%d series with 10 agents, %d with 10,000", few, many)
	if many != few {
		t.Errorf("%d series with 10 agents, %d with 10,000", few, many)
	}
	for metric, names := range labels {
		for _, name := range names {
			if !isOneOf(name, "event", "decision", "pool", "hook", "outcome", "cause", "decided", "would", "source", "result", "connection", "le", "quantile", "version", "scope", "when", "limit", "stream", "state") {
				t.Errorf("%s has the label %s, which is not in the list of labels with few values", metric, name)
			}
		}
	}
}

// agents has agents ask, a hundred at a time, each once about a tool of its own.
func (w *metered) agents(t testing.TB, from, to int) {
	t.Helper()
	var next, failed atomic.Int64
	next.Store(int64(from))
	var crowd sync.WaitGroup
	for range 100 {
		crowd.Go(func() {
			for n := next.Add(1); n <= int64(to); n = next.Add(1) {
				name := fmt.Sprintf("agent%d", n)
				e := &schema.Event{HookType: schema.PreToolUse, AgentID: name, SessionID: "session-" + name, ToolName: "Tool" + name, ToolInput: []byte(`{}`)}
				if _, err := w.client.Ask(t.Context(), e); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	crowd.Wait()
	if n := failed.Load(); n > 0 {
		t.Fatalf("%d of %d agents were not answered", n, to-from)
	}
}

// The example configuration of Prometheus has the job names that rules and dashboards use.
func TestTheScrapeNamesTheJobs(t *testing.T) {
	text, err := os.ReadFile(deployed + "prometheus/scrape.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"hookfabric-broker", "hookfabric-worker"} {
		if !strings.Contains(string(text), "job_name: "+job+"\n") {
			t.Errorf("scrape.yaml has no job %s, which rules and dashboards use", job)
		}
	}
}
