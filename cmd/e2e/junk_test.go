package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// enough is how many malformed inputs there are at least.
const enough = 200

// junkHooks judge the tools that the malformed inputs are about. answer.sh
// prints what the tool's name says.
const junkHooks = `presets: []
hooks:
  PreToolUse:
    - {name: guard, matcher: Guarded, type: builtin, handler: allow, fail_closed: true}
    - {name: lax, matcher: Lax, type: builtin, handler: allow}
    - {name: open, matcher: "open-*", type: command, handler: ./answer.sh, timeout: 2}
    - {name: closed, matcher: "closed-*", type: command, handler: ./answer.sh, timeout: 2, fail_closed: true}
    - {name: crew, matcher: Crew, type: builtin, handler: allow, pool: crew, readonly: true, fail_closed: true}
`

const answerScript = `#!/bin/sh
answer=answers/${HOOK_TOOL_NAME#*-}
if [ -e "$answer.sh" ]; then . "$answer.sh"; else cat "$answer"; fi
`

// A junkFabric is a fabric that is sent nonsense.
type junkFabric struct {
	broker *brokerProcess
	worker *process
	// workerHTTP is where the worker's metrics are.
	workerHTTP string
	dir        string
	nc         *nats.Conn
	client     *client.Client
}

// A junk is one malformed input. Send sends it and returns the sentence that
// answers it, which must contain want.
type junk struct {
	name string
	want string
	send func(t testing.TB, f *junkFabric) string
}

func startJunkFabric(t testing.TB) *junkFabric {
	t.Helper()
	f := &junkFabric{dir: t.TempDir()}
	write(t, f.dir, "answer.sh", answerScript)
	if err := os.Mkdir(filepath.Join(f.dir, "answers"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Collecting often makes what is still held show early.
	env := []string{"HOOKFABRIC_LOG=debug", "GOGC=25"}
	f.broker = startBrokerWith(t, env, "--config", write(t, f.dir, "hooks.yaml", junkHooks))
	f.worker = startWith(t, env, "hookworker", "--nats", f.broker.url, "--pool", "crew", "--name", "w1", "--http", "127.0.0.1:0")
	f.workerHTTP = f.worker.mustSay(t, 0, `health checks and metrics" url=(\S+)`)[1]
	f.nc, f.client = connect(t, f.broker.url), dial(t, f.broker.url)
	awaitWorkers(t, f.nc, "w1")
	return f
}

// TestJunk sends the fabric nonsense in every place that takes something. Each
// gets an error of its own, nothing ends, and nothing is kept of it.
func TestJunk(t *testing.T) { //nolint:tparallel // its cases share the fabric that it then looks at
	t.Parallel()
	f := startJunkFabric(t)
	f.sound(t)
	before := f.usage(t)
	n := 0
	for _, kind := range []struct {
		name  string
		cases []junk
	}{
		{"events", junkEvents()}, {"raw", junkRaw()}, {"results", junkResults()}, {"batches", junkBatches()},
		{"beats", junkBeats()}, {"control", junkControl()}, {"configs", junkConfigs(t)}, {"shim", junkPayloads()},
	} {
		t.Run(kind.name, func(t *testing.T) {
			for _, j := range kind.cases {
				said := j.send(t, f)
				if testing.Verbose() && long() {
					t.Logf("%s: %.300s", j.name, said)
				}
				if j.want == "" || !strings.Contains(said, j.want) {
					t.Errorf("%s: answered %.400q, want %q in it", j.name, said, j.want)
				}
			}
		})
		n += len(kind.cases)
	}
	t.Logf("%d malformed inputs", n)
	if n < enough {
		t.Errorf("only %d malformed inputs, want %d", n, enough)
	}
	f.sound(t)
	f.settle(t, before)
	for _, p := range []*process{f.broker.process, f.worker} {
		if said := p.said.String(); strings.Contains(said, "panic") {
			t.Errorf("%s panicked:\n%s", p.name, said)
		}
	}
}

// sound asks sound questions on every path: they are judged as ever.
func (f *junkFabric) sound(t testing.TB) {
	t.Helper()
	for _, tool := range []string{"Guarded", "Lax", "Crew", "Unknown"} {
		v, err := ask(t.Context(), f.client, tool)
		if err != nil {
			t.Fatalf("a sound call of %s: %v", tool, err)
		}
		want := schema.Allow
		if tool == "Unknown" {
			want = schema.Continue
		}
		if v.Decision != want || len(v.HookErrors) > 0 {
			t.Fatalf("a sound call of %s got %+v", tool, v)
		}
	}
}

// usage is what the processes hold, by their own metrics.
func (f *junkFabric) usage(t testing.TB) map[string]float64 {
	t.Helper()
	all := make(map[string]float64)
	for who, url := range map[string]string{"broker": f.broker.http, "worker": f.workerHTTP} {
		_, body, err := fetch(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "process_open_fds", "process_resident_memory_bytes"} {
			m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(body)
			if m == nil {
				t.Fatalf("%s has no metric %s", who, name)
			}
			v, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			all[who+" "+name] = v
		}
	}
	return all
}

// settle waits until the processes hold no more than before.
func (f *junkFabric) settle(t testing.TB, before map[string]float64) {
	t.Helper()
	slack := map[string]float64{"go_goroutines": 4, "go_memstats_heap_alloc_bytes": 8 << 20, "process_open_fds": 4}
	var after map[string]float64
	err := eventually("goroutines, memory and files come back", func() bool {
		f.sound(t) // what collects garbage is work
		after = f.usage(t)
		for k, v := range after {
			if s, bounded := slack[k[strings.IndexByte(k, ' ')+1:]]; bounded && v > before[k]+s {
				return false
			}
		}
		return true
	})
	for k, v := range after {
		t.Logf("%s: %.0f before, %.0f after", k, before[k], v)
	}
	if err != nil {
		t.Error(err)
	}
}

// request makes one raw request.
func (f *junkFabric) request(t testing.TB, m *nats.Msg) (*nats.Msg, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return f.nc.RequestMsgWithContext(ctx, m)
}
