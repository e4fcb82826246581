// Package runnertest has the tests that every runner must pass.
//
// The test of a runner fills a [Suite] with hooks that do what the fields' comments
// describe, and calls [Run]. The tests do not wait longer than necessary: handlers report
// through a [Lifeline], which ends when the last process that holds it has ended.
package runnertest

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// Reason is the reason of the hook Refuses.
const Reason = "not on my watch"

// NewInput is the rewrite of the hook Rewrites.
const NewInput = `{"command":"true"}`

// A Suite is a runner and hooks for it, all for the event of [Event]. A hook without a
// handler is unsupported by the kind, and its checks are skipped.
type Suite struct {
	// New makes a runner; the suite closes it.
	New func(t *testing.T) workers.Runner
	// Dirs are the folders of the handlers.
	Dirs []string
	// Answers allows, without other members.
	Answers schema.Hook
	// Refuses denies with Reason.
	Refuses schema.Hook
	// Rewrites replaces the tool's input with NewInput.
	Rewrites schema.Hook
	// Echoes injects the name of the event's tool as a user_message.
	Echoes schema.Hook
	// Crashes ends in the worst possible way, without an answer.
	Crashes schema.Hook
	// Floods answers with more than schema.MaxResult, or endlessly.
	Floods schema.Hook
	// Junk answers with something that is not an answer.
	Junk schema.Hook
	// Unknown answers with an object of unknown members, with at most a reason beside
	// them.
	Unknown schema.Hook
	// Missing names a handler that does not exist.
	Missing schema.Hook
	// Hangs returns a hook that holds l and never answers; every process that it starts
	// holds l too. nil: the kind cannot hang.
	Hangs func(t *testing.T, l *Lifeline) schema.Hook
}

// Event returns the event for the hooks: a call of a tool.
func Event(tool string) *schema.Event {
	return &schema.Event{
		HookType: schema.PreToolUse, EventID: "01980000-0000-7000-8000-000000000001",
		SessionID: "session-1", AgentID: "agent-1", OrchestratorID: "orchestrator-1",
		ToolName: tool, ToolInput: jsontext.Value(`{"command":"rm -rf /tmp/x"}`), Cwd: "/home/dev/project",
	}
}

// Run checks the runner of s.
func Run(t *testing.T, s Suite) {
	t.Run("it answers", s.answers)
	t.Run("a hook whose handler is missing cannot be loaded, and the error names it", s.missing)
	t.Run("a call whose time is over is not started", s.late)
	t.Run("calls side by side get each their own answer", s.parallel)
	t.Run("a handler without an answer is an error and harms no other call", s.failing)
	if s.Hangs != nil {
		t.Run("a handler that hangs is killed at its deadline", s.deadline)
		t.Run("a handler that hangs delays no other call and ends when its call is cancelled", s.cancelled)
		t.Run("close ends a handler that hangs", s.closing)
	}
	t.Run("close can be called again", s.closedTwice)
	t.Run("nothing is left behind", s.leaves)
}

// Judge makes a worker run hooks about e as one batch with their failure policies, and
// folds the outcomes as the fabric does. The hooks are named h1, h2 and so on. r is not
// closed.
func Judge(t *testing.T, r workers.Runner, dirs []string, e *schema.Event, hooks ...schema.Hook) schema.Verdict {
	t.Helper()
	b := &schema.Batch{
		Routing: schema.Routing{Event: e.HookType, Agent: e.AgentID, Session: e.SessionID, Tool: e.ToolName, ID: e.EventID},
		Batch:   "b", Version: 1, Left: 2 * Patience,
	}
	kinds := make(map[schema.Kind]workers.Runner)
	for i := range hooks {
		h := &hooks[i]
		h.Name, h.Event, h.Pool = fmt.Sprintf("h%d", i+1), e.HookType, "p"
		if h.Timeout == 0 {
			h.Timeout = schema.Duration(Patience)
		}
		kinds[h.Type] = notClosed{r}
		b.Hooks = append(b.Hooks, i)
	}
	var err error
	if b.Body, err = schema.Marshal(e); err != nil {
		t.Fatal(err)
	}
	w := workers.New(workers.Options{
		Name: "w", Pools: []string{"p"}, Dirs: dirs, Runners: kinds, Linger: -1, Logger: slog.New(slog.DiscardHandler),
	})
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if errs := w.Load(schema.Config{Version: 1, Hooks: hooks}); len(errs) > 0 {
		t.Fatal(errs)
	}
	reply := w.Run(t.Context(), b)
	if reply.Status != schema.StatusOK {
		t.Fatalf("status %q: %s", reply.Status, reply.Error)
	}
	var sum schema.Verdict
	for i := range reply.Outcomes {
		o := &reply.Outcomes[i]
		sum = dispatch.Fold(e.HookType, sum, dispatch.Settle(&hooks[o.Hook], o))
	}
	return sum
}

// Match reports whether errs and parts have the same length and each error contains its
// part.
func Match(errs, parts []string) bool {
	if len(errs) != len(parts) {
		return false
	}
	for i := range errs {
		if !strings.Contains(errs[i], parts[i]) {
			return false
		}
	}
	return true
}

// notClosed is a runner that its worker does not close.
type notClosed struct{ workers.Runner }

func (notClosed) Close() error { return nil }

// Tree writes files into a new folder; those whose name ends in * are executable.
func Tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		mode := os.FileMode(0o644)
		if program, ok := strings.CutSuffix(name, "*"); ok {
			name, mode = program, 0o755
		}
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
