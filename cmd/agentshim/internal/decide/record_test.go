package decide_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

func TestWhatNobodyJudgedIsHandedInOnce(t *testing.T) {
	within(t, func(w *world) {
		w.gone()
		w.wants("Early", schema.None, "no policy is known") // no fabric was reached yet
		w.back()
		w.wants("Read", schema.None, "")
		w.gone()
		denied := w.wants("Bash", schema.Deny, "refused")
		passed := w.wants("Write", schema.None, "allowed")
		other := calls("Bash")
		other.Event.AgentID = "b"
		w.asks(other)
		w.back()
		for range 4 { // one batch of one agent each
			w.wants("Read", schema.None, "")
		}
		w.Lock()
		defer w.Unlock()
		if len(w.Unjudged) != 4 || len(w.Recorded) != 4 {
			t.Fatalf("handed in: %v", w.Recorded)
		}
		by := map[string]schema.Unjudged{}
		for _, u := range w.Recorded {
			by[u.EventID] = u
		}
		if u := by[denied.Verdict.EventID]; u.Decision != schema.Deny || u.Tool != "Bash" || u.Agent != "a" || u.Session != "s" || u.Event != schema.PreToolUse ||
			u.ConfigVersion != 7 || u.Time.IsZero() || !strings.Contains(u.Why, "guards-Bash guards it") || !strings.Contains(u.Why, "unreachable") {
			t.Errorf("what was refused: %+v", u)
		}
		if u := by[passed.Verdict.EventID]; u.Decision != schema.Continue || u.Tool != "Write" {
			t.Errorf("what passed: %+v", u)
		}
		if u := w.Recorded[0]; u.Tool != "Early" || u.ConfigVersion != 0 {
			t.Errorf("what came before any fabric: %+v", u)
		}
	})
}

// The shim reports a call again, under the same id, if the fabric's answer is lost or the fabric cannot
// record the call. The fabric counts the call once.
func TestWhatIsNotConfirmedIsHandedInAgain(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		w.gone()
		id := w.wants("Bash", schema.Deny, "refused").Verdict.EventID
		w.back()
		heard := 0
		w.Answer = func(verb string, m *nats.Msg) bool {
			if verb == schema.VerbRecord {
				if heard++; heard == 2 {
					bustest.Refuse(m, schema.CodeUnavailable, "not now")
				}
				return heard <= 2 // the first answer is lost
			}
			return false
		}
		for range 5 {
			w.wants("Read", schema.None, "")
		}
		if heard != 3 || w.Unjudged[id] != 1 {
			t.Errorf("it was said %d times, and counts %d times", heard, w.Unjudged[id])
		}
	})
}

func TestWhatTheFabricWillNeverTakeHoldsNothingBack(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		w.gone()
		w.wants("Bash", schema.Deny, "refused")
		w.back()
		w.Answer = func(verb string, m *nats.Msg) bool {
			if verb == schema.VerbRecord {
				bustest.Refuse(m, schema.CodeBadRequest, "it makes no sense")
			}
			return verb == schema.VerbRecord
		}
		w.wants("Read", schema.None, "agentshim drops the record: reporting unjudged calls of a: it makes no sense")
		w.wants("Read", schema.None, "")
	})
}

func TestALineThatNobodyWroteIsSaidAndCounted(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		w.gone()
		w.wants("Bash", schema.Deny, "refused")
		path := w.file("f-1/unjudged")
		w.write(path, "junk\n{}\n"+w.read(path)+`{"event_id":"torn`)
		w.wants("Bash", schema.Deny, "refused")
		w.back()
		w.wants("Read", schema.None, "dropped 3 unreadable lines of "+path)
		w.wants("Read", schema.None, "")
		w.Lock()
		defer w.Unlock()
		if n := len(w.Recorded); n != 3 || w.Recorded[2].Lost != 3 {
			t.Errorf("handed in: %+v", w.Recorded)
		}
	})
}

// A resident judge serves any number of agents over one connection. It fetches a new policy by
// itself, and keeps running.
func TestOneThatStaysServesManyAgents(t *testing.T) {
	within(t, func(w *world) {
		w.Put(bustest.Item(1, "for one of them"))
		var to said
		j := decide.NewResident(w.link(&to))
		ask := func(agent, tool string) decide.Judgement {
			q := calls(tool)
			q.Event.AgentID = agent
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			defer cancel()
			got := j.Ask(ctx, q)
			j.Handed(ctx, got.Verdict, 0)
			return got
		}
		crowd := func(want schema.Decision) {
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					if got := ask(fmt.Sprint("agent-", i), "Bash"); got.Verdict.Decision != want {
						t.Errorf("%+v", got.Verdict)
					}
				})
			}
			all.Wait()
			synctest.Wait()
		}
		crowd(schema.Continue)
		if w.Lock(); w.Policies != 1 {
			t.Errorf("the policy was asked for %d times", w.Policies)
		}
		w.Unlock()
		w.gone()
		crowd(schema.Deny)
		w.back()
		ask("agent-0", "Read")
		<-time.After(5 * time.Second)
		synctest.Wait()
		w.Lock()
		for id, n := range w.Unjudged {
			if n != 1 {
				t.Errorf("%s was handed in %d times", id, n)
			}
		}
		if len(w.Unjudged) != 50 {
			t.Errorf("%d calls were handed in", len(w.Unjudged))
		}
		w.Unlock()
		j.Close()
		w.Lock()
		defer w.Unlock()
		if len(w.Items) != 0 {
			t.Error("what was handed over was not acknowledged")
		}
		if c, err := w.server.InProcessConn(); err == nil {
			_ = c.Close()
		}
	})
}

// A round's grace begins with the acknowledgement of its warning, so a resident judge sends it at once. Other
// acknowledgements wait for the agent's next question.
func TestAWarningIsAcknowledgedAtOnce(t *testing.T) {
	within(t, func(w *world) {
		var to said
		j := decide.NewResident(w.link(&to))
		defer j.Close()
		for n, source := range []string{schema.SourceTimeout, "human"} {
			it := bustest.Item(uint64(n+1), "your time is over")
			it.Source = source
			w.Put(it)
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			got := j.Ask(ctx, calls("Read"))
			j.Handed(ctx, got.Verdict, 0)
			cancel()
			synctest.Wait()
			w.Lock()
			if waits := len(w.Items); waits != n {
				t.Errorf("%s: %d items wait: %+v", source, waits, w.Acks)
			}
			w.Unlock()
		}
	})
}

// The next process sends the acknowledgements that a judge could not send before it ended.
func TestOneThatEndsLeavesWhatItCouldNotSay(t *testing.T) {
	within(t, func(w *world) {
		w.Put(bustest.Item(1, "once"))
		w.Silent = true
		var to said
		j := decide.NewResident(w.link(&to))
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		got := j.Ask(ctx, calls("Read"))
		w.gone()
		j.Handed(ctx, got.Verdict, 0)
		j.Close()
		all, err := shimstate.Folder(w.state).Handovers("a")
		if err != nil || len(all) != 1 || len(all[0].Events) != 1 || all[0].Events[0] != got.Verdict.EventID {
			t.Errorf("kept: %+v, %v; %s", all, err, &to)
		}
		w.back()
		w.wants("Read", schema.None, "")
		w.Lock()
		defer w.Unlock()
		if len(w.Items) != 0 {
			t.Error("it is still to be acknowledged")
		}
	})
}

// Each question names its own folder for workspaces.
func TestEachQuestionHasAFolderOfItsOwn(t *testing.T) {
	within(t, func(w *world) {
		w.Put(bustest.Item(1, "see "+schema.WorkspacePath("x")))
		w.Workspaces = []schema.Workspace{{Name: "x", Path: schema.WorkspacePath("x"), Snapshot: *w.Object("no snapshot")}}
		var to said
		j := decide.NewResident(w.link(&to))
		defer j.Close()
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		q := calls("Read")
		if got := j.Ask(ctx, q); !strings.Contains(got.Verdict.Injections[0].Content, "there is no folder") {
			t.Errorf("without a folder: %+v", got.Verdict.Injections)
		}
		w.Lock()
		clear(w.Leases)
		w.Unlock()
		q.Workspaces = t.TempDir()
		j.Ask(ctx, q)
		if there, _ := filepath.Glob(filepath.Join(q.Workspaces, "temp_workspaces")); len(there) != 1 {
			t.Error("nothing was put into the folder of the question")
		}
	})
}
