package runnertest

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

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
