package fabric_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

func TestRounds(t *testing.T) {
	inBubbles(t, []scenario{
		{"the soft warning comes once in a round, when its time is over", warnedOnce},
		{"nothing is refused before the warning was handed over, however long that takes", neverBeforeWarned},
		{"after the grace only tools that end the round pass", refusedAfterGrace},
		{"ten refused calls in a row end the run, and a vote still passes", tenDenials},
		{"an allowed call resets the count", passedResets},
		{"a refused call that is asked about again counts once", countedOnce},
		{"a new round has its own limits, warning and count", newRoundResets},
		{"who is asked to wrap up is told so once, and has the grace", wrapsUp},
		{"an agent without a round, or without a limit, is left alone", leftAlone},
		{"no override of an agent drops the time limit", survivesOverride},
		{"other tools may end the round, if the hook says so", otherTerminals},
	})
}

func limit(d time.Duration) *schema.Duration { return new(schema.Duration(d)) }

// round makes a request about an agent's round.
func (f *fabric) round(agent string, req schema.RoundRequest) schema.Round {
	f.t.Helper()
	return must[schema.Round](f, schema.VerbRound, agent, req)
}

// usual is how most of these rounds start: ten minutes, then two of grace.
func (f *fabric) usualRound(agent string) schema.Round {
	f.t.Helper()
	return f.round(agent, schema.RoundRequest{Action: schema.RoundStart, Initial: limit(10 * time.Minute), Subsequent: limit(5 * time.Minute)})
}

// overdue is a loop whose agent was warned, and whose grace is over.
func (f *fabric) overdue(id string) *loop {
	f.t.Helper()
	l := f.loop(id)
	f.usualRound(id)
	<-time.After(11 * time.Minute)
	f.holds(id, l.works("Bash"), "TIME LIMIT REACHED")
	l.works("Bash") // which acknowledges it
	<-time.After(3 * time.Minute)
	return l
}

// warnings counts the warnings about its round that an agent received.
func (l *loop) warnings() (n int) {
	for _, in := range l.read {
		if in.Source == schema.SourceTimeout {
			n++
		}
	}
	return n
}

func warnedOnce(t *testing.T) {
	f := start(t, nothingWritten)
	a, b := f.loop("a"), f.loop("b")
	if r := f.usualRound("a"); r.Number != 0 || r.Grace != schema.DefaultGrace || *r.Limit() != *limit(10 * time.Minute) {
		t.Errorf("%+v", r)
	}
	f.usualRound("b")
	<-time.After(9 * time.Minute)
	if got := a.works("Bash"); got != "" {
		t.Errorf("too early: %s", got)
	}
	<-time.After(2 * time.Minute)
	text := a.works("Bash")
	f.holds("a", text, "TIME LIMIT REACHED", "initial answer", "of 600s", "120s", "`vote`", "`new_answer`")
	for range 5 {
		a.works("Bash")
	}
	<-time.After(time.Minute)
	a.works("Bash")
	if n := a.warnings(); n != 1 || b.warnings() != 0 {
		t.Errorf("a was warned %d times, b %d", n, b.warnings())
	}
	if r := f.round("a", schema.RoundRequest{}); !r.Warned || r.Since <= 0 || r.Since >= r.Grace {
		t.Errorf("%+v", r)
	}
}

func neverBeforeWarned(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.usualRound("a")
	<-time.After(30 * time.Minute)
	if v := a.try("Bash"); v.Decision != schema.Continue {
		t.Errorf("before anybody could tell it: %+v", v)
	}
	for range 3 { // its process dies each time before it has handed it over
		if v := a.ran("Bash", `"done"`); !strings.Contains(texts(v.Injections), "TIME LIMIT") {
			t.Errorf("%+v\n%s", v, f.log)
		}
		a.restart()
		<-time.After(10 * time.Minute)
		if v := a.try("Bash"); v.Decision != schema.Continue {
			t.Errorf("an unacknowledged item was not delivered again: %+v", v)
		}
	}
	a.works("Bash")
	a.works("Bash")
	if a.warnings() != 1 {
		t.Errorf("it was warned %d times", a.warnings())
	}
	<-time.After(3 * time.Minute)
	if ran, _ := a.use("Bash"); ran {
		t.Error("a tool ran after the grace")
	}
}

func refusedAfterGrace(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.overdue("a")
	v := a.try("Bash")
	if v.Decision != schema.Deny || v.Terminate != nil {
		t.Errorf("%+v", v)
	}
	f.holds("the refusal", v.Reason, "`Bash` REFUSED", "attempt 1", "use only `vote` or `new_answer`")
	f.lacks("the first refusal", v.Reason, "ends the run")
	for _, tool := range []string{"vote", "new_answer", "mcp__workflow__vote", "server.new_answer"} {
		a.works(tool)
	}
	for _, tool := range []string{"devote", "vote_later", "Vote", "mcp__vote__read", "mcp__workflow__votes"} {
		if ran, _ := a.use(tool); ran {
			t.Errorf("%s ran", tool)
		}
	}
	f.inject("a", &schema.InjectRequest{Content: "well done"})
	if _, told := a.use("Bash"); len(told) > 0 {
		t.Errorf("a refused call brings %+v", told)
	}
	f.holds("after a vote", a.works("vote"), "well done")
}

func tenDenials(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.overdue("a")
	for n := 1; n <= 10; n++ {
		v := a.try("Bash")
		if v.Decision != schema.Deny || (v.Terminate != nil) != (n == 10) || !strings.Contains(v.Reason, fmt.Sprintf("attempt %d", n)) {
			t.Errorf("call %d: %+v", n, v)
		}
		if notice := strings.Contains(v.Reason, "After 10 it ends the run"); notice != (n >= 3 && n < 10) {
			t.Errorf("call %d: %s", n, v.Reason)
		}
	}
	if r := f.round("a", schema.RoundRequest{}); !r.Terminate || r.Denials != 10 {
		t.Errorf("%+v", r)
	}
	if v := a.try("mcp__workflow__vote"); v.Decision != schema.Continue || v.Terminate != nil {
		t.Errorf("a vote: %+v", v)
	}
	f.settle()
	if v := a.try("Bash"); v.Decision != schema.Deny || v.Terminate == nil {
		t.Errorf("a tool after the end: %+v", v)
	}
	if v := a.ask(&schema.Event{HookType: schema.QueryEnd}); v.Terminate == nil || !strings.Contains(v.Terminate.Reason, "round 0") {
		t.Errorf("the end of the query: %+v", v)
	}
}

func passedResets(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.overdue("a")
	for n := range 25 {
		if n%9 == 8 {
			a.works("vote")
			f.settle()
			if r := f.round("a", schema.RoundRequest{}); r.Denials != 0 {
				t.Errorf("after a vote: %+v", r)
			}
		} else if v := a.try("Bash"); v.Decision != schema.Deny || v.Terminate != nil {
			t.Errorf("call %d: %+v", n, v)
		}
	}
}

func countedOnce(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.overdue("a")
	ask := func() *schema.Verdict {
		return a.ask(&schema.Event{HookType: schema.PreToolUse, ToolName: "Bash", ToolInput: jsontext.Value(`{}`), EventID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"})
	}
	first := ask()
	a.restart()
	again := ask()
	if first.Decision != schema.Deny || again.Decision != schema.Deny {
		t.Errorf("%+v, then %+v", first, again)
	}
	var parallel sync.WaitGroup
	for range 16 {
		parallel.Go(func() { ask() })
	}
	parallel.Wait()
	if r := f.round("a", schema.RoundRequest{}); r.Denials != 1 {
		t.Errorf("one event counts %d times", r.Denials)
	}
}

func newRoundResets(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.overdue("a")
	for range 10 {
		a.try("Bash")
	}
	r := f.round("a", schema.RoundRequest{Action: schema.RoundStart})
	if r.Number != 1 || r.Warned || r.Denials != 0 || r.Terminate || *r.Limit() != *limit(5 * time.Minute) {
		t.Errorf("%+v", r)
	}
	if v := a.try("Bash"); v.Decision != schema.Continue || v.Terminate != nil {
		t.Errorf("%+v", v)
	}
	<-time.After(4 * time.Minute)
	if got := a.works("Bash"); got != "" {
		t.Errorf("too early: %s", got)
	}
	<-time.After(2 * time.Minute)
	f.holds("the second warning", a.works("Bash"), "TIME LIMIT REACHED", "voting", "of 300s")
	a.works("Bash")
	if a.warnings() != 2 {
		t.Errorf("it was warned %d times in two rounds", a.warnings())
	}
	<-time.After(3 * time.Minute)
	v := a.try("Bash")
	f.holds("the second round's refusal", v.Reason, "attempt 1")
}

func wrapsUp(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.round("a", schema.RoundRequest{Action: schema.RoundWrapUp, Grace: limit(time.Minute)})
	f.round("a", schema.RoundRequest{Action: schema.RoundWrapUp})
	f.holds("a", a.works("Bash"), "PLEASE WRAP UP", "You have 60s left")
	a.works("Bash")
	if a.warnings() != 1 {
		t.Errorf("it was told %d times", a.warnings())
	}
	<-time.After(2 * time.Minute)
	if ran, _ := a.use("Bash"); ran {
		t.Error("a tool ran after the grace")
	}
	a.works("vote")
}

func leftAlone(t *testing.T) {
	f := start(t, nothingWritten)
	a, b := f.loop("a"), f.loop("b")
	f.round("b", schema.RoundRequest{Action: schema.RoundStart, Subsequent: limit(time.Minute)})
	<-time.After(30 * time.Minute)
	for _, l := range []*loop{a, b} {
		if got := l.works("Bash"); got != "" {
			t.Errorf("%s was told %s", l.id, got)
		}
	}
	if _, failed := control[schema.Round](f, schema.VerbRound, "a", schema.RoundRequest{}); failed == nil || failed.Code != schema.CodeNotFound {
		t.Errorf("a's round: %+v", failed)
	}
}

func survivesOverride(t *testing.T) {
	f := start(t, `agents:
  - id: a
    hooks:
      PreToolUse: {override: true, hooks: [{type: builtin, handler: allow}]}
      PostToolUse: {override: true, hooks: []}
`)
	a := f.overdue("a")
	if ran, _ := a.use("Bash"); ran {
		t.Error("a tool ran after the grace")
	}
}

func otherTerminals(t *testing.T) {
	f := start(t, `hooks:
  PreToolUse:
    - {type: builtin, handler: round_timeout_pre, options: {terminal_tools: [submit]}}
`)
	a := f.loop("a")
	f.usualRound("a")
	<-time.After(11 * time.Minute)
	f.holds("a", a.works("Bash"), "`submit`")
	a.works("Bash")
	<-time.After(3 * time.Minute)
	if ran, _ := a.use("vote"); ran {
		t.Error("vote ran")
	}
	a.works("mcp__s__submit")
}

// Many calls that come at the instant at which a round's time is over: one of
// them brings the warning.
func TestOneSoftTimeOutPerRoundHoweverManyRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const racers = 64
		runs := 50
		if os.Getenv("HOOKFABRIC_LONG") != "" {
			runs = 1000
		}
		f := start(t, nothingWritten)
		a := f.loop("a")
		for run := range runs {
			f.round("a", schema.RoundRequest{Action: schema.RoundStart, Initial: limit(time.Second), Subsequent: limit(time.Second)})
			<-time.After(time.Second)
			var mu sync.Mutex
			warned := 0
			var race sync.WaitGroup
			for range racers {
				race.Go(func() {
					v := a.ran("Bash", `"done"`)
					mu.Lock()
					defer mu.Unlock()
					for _, in := range v.Injections {
						if in.Source == schema.SourceTimeout {
							warned++
						}
					}
					a.client.Handed(v.EventID)
				})
			}
			race.Wait()
			if warned != 1 {
				t.Fatalf("run %d: %d of %d calls brought the warning\n%s", run, warned, racers, f.log)
			}
			if v := a.ran("Bash", `"done"`); len(v.Injections) > 0 {
				t.Fatalf("run %d: afterwards %+v", run, v.Injections)
			}
		}
	})
}
