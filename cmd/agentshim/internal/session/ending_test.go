package session

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// ending is the end of a turn of Codex, with hooks that want the agent to continue.
type ending struct {
	t      *testing.T
	store  Store
	stderr strings.Builder
}

func (e *ending) run(v schema.Verdict, active string) string {
	e.t.Helper()
	d, err := dialect.For("codex")
	if err != nil {
		e.t.Fatal(err)
	}
	m, err := dialect.Find(d, "Stop")
	if err != nil {
		e.t.Fatal(err)
	}
	x := &Exchange{Settings: Settings{Runtime: "codex", Dialect: d, Moment: m, Unreachable: decide.UnreachableAllow},
		Asker: &asked{v: v}, Store: e.store, Stderr: &e.stderr}
	x.Workspaces = e.t.TempDir()
	payload := `{"hook_event_name":"Stop","session_id":"s","turn_id":"t","stop_hook_active":` + active + `,"last_assistant_message":"m"}`
	r := x.Run(e.t.Context(), []byte(payload), nil)
	return string(r.Stdout)
}

// goesOn returns how often the agent continues until its turn ends, and at most 100.
func (e *ending) goesOn(v schema.Verdict) (times int) {
	e.t.Helper()
	for active := "false"; times < 100 && strings.Contains(e.run(v, active), "block"); times++ {
		active = "true"
	}
	return times
}

// A hook that always asks for a retry does not keep an agent going without an end. It can put off the
// end of the next turn again.
func TestAnAgentDoesNotGoOnForEver(t *testing.T) {
	for name, store := range map[string]struct {
		of   Store
		want int
	}{
		"counted":                 {shimstate.Folder(t.TempDir()), mostTurns},
		"nowhere to count":        {nil, 1},
		"a folder that can't be":  {shimstate.Folder(filepath.Join("/dev/null", "state")), 1},
		"nobody named the folder": {shimstate.Folder(""), 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := &ending{t: t, store: store.of}
			for range 2 {
				if n := e.goesOn(schema.Verdict{Decision: schema.Retry, Reason: "once more"}); n != store.want {
					t.Errorf("it goes on %d times, not %d", n, store.want)
				}
			}
			if !strings.Contains(e.stderr.String(), "turn ends") {
				t.Errorf("nobody is told: %q", e.stderr.String())
			}
		})
	}
}

// After a turn that ends by itself, hooks may keep the agent going as often as before.
func TestATurnThatEndsIsCountedAnew(t *testing.T) {
	e := &ending{t: t, store: shimstate.Folder(t.TempDir())}
	retry := schema.Verdict{Decision: schema.Retry, Reason: "once more"}
	for range 3 * mostTurns {
		if said := e.run(retry, "false"); !strings.Contains(said, "once more") {
			t.Fatalf("it ends: %s", said)
		}
		if said := e.run(schema.Verdict{}, "true"); said != "" {
			t.Fatalf("it goes on: %s", said)
		}
	}
}

// An item that waited reaches the agent also at the limit, where the shim ignores hooks.
func TestWhatWaitedIsNotHeldBackByTheBound(t *testing.T) {
	e := &ending{t: t, store: shimstate.Folder(t.TempDir())}
	retry := schema.Verdict{Decision: schema.Retry, Reason: "once more", Injections: []schema.Injection{{Content: "always", Hook: "h"}}}
	for range mostTurns {
		e.run(retry, "true")
	}
	retry.Injections = append(retry.Injections, schema.Injection{Content: "from a person", Hook: "human_input", Sequence: 7})
	if said := e.run(retry, "true"); !strings.Contains(said, "from a person") || strings.Contains(said, "once more") || strings.Contains(said, "always") {
		t.Errorf("it goes on with %s", said)
	}
}

// waiting is a fabric that always has another item for the agent. It keeps the agent going whenever it
// may deliver one.
type waiting struct{ asked, brought int }

func (w *waiting) Ask(_ context.Context, q decide.Question) decide.Judgement {
	w.asked++
	v := &schema.Verdict{Decision: schema.Continue}
	if !q.Event.Mute {
		w.brought++
		v.Decision, v.Reason = schema.Retry, "1 message came"
		v.Injections = []schema.Injection{{Content: "go on", Hook: "human_input", Sequence: uint64(w.asked)}}
	}
	return decide.Judgement{Verdict: v}
}

// At the limit the shim takes no more items, also in runtimes with a limit of their own: the runtime
// would drop their last continuation, and the item with it.
func TestWhatWaitsStaysInTheQueueAtTheBound(t *testing.T) {
	claude := `{"hook_event_name":"Stop","session_id":"s","prompt_id":"p","stop_hook_active":%t}`
	for name, c := range map[string]struct {
		runtime, event, payload string
		store                   Store
		want                    int
	}{
		"codex":                       {"codex", "Stop", `{"hook_event_name":"Stop","session_id":"s","turn_id":"t","stop_hook_active":%t}`, shimstate.Folder(t.TempDir()), mostTurns},
		"gemini":                      {"gemini", "AfterAgent", `{"hook_event_name":"AfterAgent","session_id":"s","prompt":"p","stop_hook_active":%t}`, shimstate.Folder(t.TempDir()), mostTurns},
		"claude":                      {"claude", "Stop", claude, shimstate.Folder(t.TempDir()), mostTurns},
		"copilot":                     {"copilot", "agentStop", `{"sessionId":"s","stop_hook_active":%t}`, shimstate.Folder(t.TempDir()), mostTurns},
		"cursor":                      {"cursor", "stop", `{"hook_event_name":"stop","conversation_id":"s","x":%t,"loop_count":1}`, shimstate.Folder(t.TempDir()), 5},
		"agy":                         {"agy", "Stop", `{"conversationId":"s","x":%t}`, shimstate.Folder(t.TempDir()), mostTurns},
		"claude, nowhere to count":    {"claude", "Stop", claude, nil, 1},
		"claude, a folder that fails": {"claude", "Stop", claude, shimstate.Folder("/dev/null/state"), 1},
		"agy, nowhere to count":       {"agy", "Stop", `{"conversationId":"s","x":%t}`, nil, 0},
		"agy, a folder that fails":    {"agy", "Stop", `{"conversationId":"s","x":%t}`, shimstate.Folder("/dev/null/state"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dialect.For(c.runtime)
			if err != nil {
				t.Fatal(err)
			}
			m, err := dialect.Find(d, c.event)
			if err != nil {
				t.Fatal(err)
			}
			w := &waiting{}
			for turn := 1; turn <= 2; turn++ {
				w.brought = 0
				var stderr strings.Builder
				for again := false; w.brought < 100; again = true {
					x := &Exchange{Settings: Settings{Runtime: c.runtime, Dialect: d, Moment: m, Unreachable: decide.UnreachableAllow},
						Asker: w, Store: c.store, Stderr: &stderr}
					if r := x.Run(t.Context(), fmt.Appendf(nil, c.payload, again), nil); !strings.Contains(string(r.Stdout), "go on") {
						break
					}
				}
				if w.brought != c.want {
					t.Errorf("turn %d: it goes on %d times, not %d\n%s", turn, w.brought, c.want, stderr.String())
				}
			}
		})
	}
}

// The reason to continue and the injections form one text, which the runtime would cut off.
func TestWhatTheAgentGoesOnWithIsNotCutOff(t *testing.T) {
	e := &ending{t: t, store: shimstate.Folder(t.TempDir())}
	long := strings.Repeat("x", 9_990)
	said := e.run(schema.Verdict{Decision: schema.Retry, Reason: strings.Repeat("y", 200), Injections: []schema.Injection{{Content: long, Sequence: 1}}}, "false")
	if strings.Contains(said, long) || !strings.Contains(said, "temp_workspaces") {
		t.Errorf("%d bytes: %s, %.300s", len(said), e.stderr.String(), said)
	}
}
