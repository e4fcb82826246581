package decide_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// Each fabric that answers at a URL adds its guards there. The guards of earlier fabrics stay until an operator
// resets the policy.
func TestAnotherFabricAddsGuardsUntilAReset(t *testing.T) {
	within(t, func(w *world) {
		w.freezes(1, "b")
		w.wants("Read", schema.None, "")
		w.gone()
		w.begin("f-2", 2)
		w.becomes(1, guarding("Read"))
		w.wants("Bash", schema.None, "the fabric f-2 answers at the URL where f-1 answered before; the guards of both count until 'agentshim policy reset'")
		w.wants("Bash", schema.None, "") // the shim reports it once
		w.gone()
		w.wants("Read", schema.Deny, "version 1")
		w.wants("Write", schema.None, "no fail-closed hook guards it")
		if got := w.wants("Bash", schema.Deny, "version 7"); !strings.Contains(got.Verdict.Reason, "'agentshim policy reset' forgets them") {
			t.Errorf("what can be done is not said: %s", got.Verdict.Reason)
		}
		frozen := calls("Write")
		frozen.Event.AgentID = "b"
		if got, _ := w.asks(frozen); !got.Verdict.Frozen {
			t.Errorf("the freeze of before: %+v", got.Verdict)
		}
		w.back()
		w.wants("Read", schema.None, "")
		if all, err := shimstate.Folder(w.state).Forget(""); err != nil || !slices.Equal(all, []string{"f-1", "f-2"}) {
			t.Fatalf("forgotten: %v, %v", all, err)
		}
		w.wants("Write", schema.None, "")
		w.gone()
		w.wants("Bash", schema.None, "version 1")
		w.wants("Read", schema.Deny, "version 1")
		if got, _ := w.asks(frozen); got.Verdict.Frozen {
			t.Errorf("after the reset: %+v", got.Verdict)
		}
	})
}

// A resident judge notices a reset, also while the fabric answers, so that the next shim knows the policy.
func TestOneThatStaysHearsOfAReset(t *testing.T) {
	within(t, func(w *world) {
		var to said
		j := decide.NewResident(w.link(&to))
		defer j.Close()
		ask := func() decide.Judgement {
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			defer cancel()
			got := j.Ask(ctx, calls("Bash"))
			synctest.Wait()
			return got
		}
		ask()
		if _, err := shimstate.Folder(w.state).Forget(""); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		ask()
		w.wants("Read", schema.None, "")
		w.gone()
		w.wants("Bash", schema.Deny, "version 7")
		if _, err := shimstate.Folder(w.state).Forget(""); err != nil {
			t.Fatal(err)
		}
		if got := ask(); got.Verdict.Decision != schema.None {
			t.Errorf("it applies what was forgotten: %+v", got.Verdict)
		}
	})
}

// A resident judge reads an unreadable policy again, although that of another fabric is readable.
func TestOneThatStaysTakesUpAMendedPolicy(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		w.gone()
		w.begin("f-2", 2)
		w.wants("Read", schema.None, "answers at the URL where")
		w.gone()
		path := w.file("f-1/policy")
		good := w.read(path)
		w.write(path, "junk")
		var to said
		j := decide.NewResident(w.link(&to))
		defer j.Close()
		ask := func() schema.Decision {
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			defer cancel()
			return j.Ask(ctx, calls("Read")).Verdict.Decision
		}
		if got := ask(); got != schema.Deny {
			t.Errorf("while it is junk: %q", got)
		}
		w.write(path, good)
		if got := ask(); got != schema.None {
			t.Errorf("once it is mended: %q", got)
		}
	})
}

// If more fabrics answered than a shim remembers, it forgets no earlier one, and no call passes.
func TestOfTooManyFabricsNoneIsForgotten(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		for n := range shimstate.MaxReached {
			w.gone()
			w.begin(fmt.Sprintf("hostile-%d", n), byte(10+n))
			w.becomes(1)
			w.wants("Read", schema.None, "answers at the URL where")
		}
		w.gone()
		w.wants("Bash", schema.Deny, "version 7")
		w.wants("Read", schema.Deny, "more than 16 fabrics answered at this URL")
		if _, err := shimstate.Folder(w.state).Forget(w.link(nil).URL); err != nil {
			t.Fatal(err)
		}
		w.wants("Bash", schema.None, "no policy is known")
	})
}
