package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// under sets the id of an event.
func under(n int) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(idHeader, fmt.Sprintf("01990000-0000-7000-8000-%012d", n)) }
}

func (w *web) acknowledged() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handed
}

// A model may use the id of a call twice. The second call is another event, and the daemon
// has it judged again.
func TestALoopsSecondCallIsJudgedAnew(t *testing.T) {
	w := atHTTP(t, &bench{})
	for i, c := range []struct {
		event int
		says  string
		asked int
	}{
		{1, "verdict 1", 1}, // and the answer is lost
		{1, "verdict 1", 1},
		{2, "verdict 2", 2},
		{1, "verdict 1", 2},
	} {
		code, said := w.post("/v1/events/PreToolUse?ack=explicit", denied, under(c.event))
		if code != http.StatusOK || !strings.Contains(said, `"`+c.says+`"`) || w.count() != c.asked {
			t.Errorf("%d: %d %s; %d were judged", i, code, said, w.count())
		}
		if !strings.Contains(said, "careful") {
			t.Errorf("%d: who hears the answer is not told what waited: %s", i, said)
		}
	}
	w.post("/v1/ack", `{"agent_id":"a","event_ids":["e1"]}`, nil)
	if _, said := w.post("/v1/events/PreToolUse?ack=explicit", denied, under(1)); strings.Contains(said, "careful") {
		t.Errorf("what is acknowledged comes again: %s", said)
	}
}

// The result of the second call is not taken for that of the first.
func TestALoopsSecondResultIsJudgedAnew(t *testing.T) {
	w := atHTTP(t, &bench{})
	for i := range 3 {
		_, said := w.post("/v1/events/PostToolUse", strings.Replace(denied, "PreToolUse", "PostToolUse", 1), under(i))
		if want := fmt.Sprint("verdict ", i+1); !strings.Contains(said, want) {
			t.Errorf("%s, not %s", said, want)
		}
	}
}

func TestALoopThatWillAcknowledgeHasNothingByAskingOn(t *testing.T) {
	w := atHTTP(t, &bench{})
	for i := range 3 {
		w.post("/v1/events/PreToolUse?ack=explicit", denied, under(i))
	}
	if got := w.acknowledged(); len(got) > 0 {
		t.Errorf("it has %v", got)
	}
	w.post("/v1/ack", `{"agent_id":"a","event_ids":["e2"]}`, nil)
	if diff := cmp.Diff([]string{"e2"}, w.acknowledged()); diff != "" {
		t.Error(diff)
	}
}

// A loop can acknowledge answers after a turn with many calls.
func TestALoopMayAcknowledgeAfterALongTurn(t *testing.T) {
	w := atHTTP(t, &bench{})
	w.post("/v1/events/PreToolUse?ack=explicit", denied, under(0))
	w.says = func(context.Context, decide.Question) decide.Judgement {
		return decide.Judgement{Verdict: &schema.Verdict{}}
	}
	for i := range 10 * maxAnswers {
		w.post("/v1/events/PostToolUse?ack=explicit", strings.Replace(denied, "PreToolUse", "PostToolUse", 1), under(i+1))
	}
	if code, said := w.post("/v1/ack", `{"agent_id":"a","event_ids":["e1"]}`, nil); said != `{"acknowledged":1}` {
		t.Errorf("%d %s", code, said)
	}
}
