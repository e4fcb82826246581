package fabric_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// file is what an agent reads at the path of that file which a text names.
func (l *loop) file(text, name string) string {
	l.f.t.Helper()
	for word := range strings.FieldsSeq(text) {
		if word = strings.TrimRight(word, ".,:)"); strings.HasPrefix(word, l.dir) && strings.HasSuffix(word, name) {
			data, err := os.ReadFile(word)
			if err != nil {
				l.f.t.Errorf("%s cannot open what it was told of: %v", l.id, err)
			}
			return string(data)
		}
	}
	l.f.t.Errorf("no path of %s leads to %s:\n%s", l.id, name, text)
	return ""
}

// TestASessionOfThreeAgents runs a session of three agents from end to end. An agent's answer, a
// person's message and a subagent's result each reach the right agents in the right form.
func TestASessionOfThreeAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nothingWritten)
		alice, bob, carol := f.loop("alice"), f.loop("bob"), f.loop("carol")
		f.settle()
		first := f.answers("alice", "The parser is in WORK/src/parse.go.", map[string]string{"src/parse.go": "package one"})
		if first.Name != "agent1" || first.Label != "agent1.1" {
			t.Errorf("%+v", first)
		}
		bobReadsTheFirst(f, bob)
		f.answers("alice", "Better: WORK/src/parse.go", map[string]string{"src/parse.go": "package two", "README": "how to"})
		bobReadsTheSecond(f, bob)
		everybodyHearsThePerson(f, alice, bob, carol)
		if got := texts(alice.read); strings.Contains(got, "agent1") {
			t.Errorf("alice hears of herself:\n%s", got)
		}
		onlyTheParentHearsItsSubagent(f, alice, bob, carol)
		theVoterRestarts(f, alice, bob, carol)
		for _, l := range []*loop{alice, bob, carol} {
			<-time.After(time.Minute)
			if got := l.works("Bash"); got != "" {
				t.Errorf("in the end %s is told\n%s", l.id, got)
			}
			f.lacks(l.id, texts(l.read), "alice", "bob", "carol", "/work/")
		}
	})
}

func bobReadsTheFirst(f *fabric, bob *loop) {
	f.t.Helper()
	_, told := bob.use("Bash")
	if len(told) != 1 || told[0].Strategy != schema.UserMessage || told[0].Hook != schema.MidStreamInjection || told[0].Source != schema.SourcePeer {
		f.t.Fatalf("the first update is no full message: %+v\n%s", told, f.log)
	}
	text := told[0].Content
	f.holds("the first update", text, "FIRST ANSWERS", "agent1.1", "The parser is in "+bob.dir, "REQUIRED ACTION", "vote", "new_answer")
	if got := bob.file(text, "src/parse.go"); got != "package one" {
		f.t.Errorf("bob reads %q", got)
	}
	if want := filepath.Join(bob.dir, "temp_workspaces", "agent1", "src", "parse.go"); !strings.Contains(text, want) {
		f.t.Errorf("it does not name %s:\n%s", want, text)
	}
}

func bobReadsTheSecond(f *fabric, bob *loop) {
	f.t.Helper()
	_, told := bob.use("Bash")
	if len(told) != 1 || told[0].Strategy != schema.ToolResult {
		f.t.Fatalf("the second update does not come with the tool's result: %+v", told)
	}
	f.holds("the second update", told[0].Content, "agent1.1 -> agent1.2", "[agent1.2]", "Better: "+bob.dir)
	if got := bob.file(told[0].Content, "src/parse.go"); got != "package two" {
		f.t.Errorf("bob reads %q", got)
	}
}

func everybodyHearsThePerson(f *fabric, all ...*loop) {
	f.t.Helper()
	f.inject("", &schema.InjectRequest{Session: team, Content: "mind the licence"})
	for _, l := range all {
		text := l.works("Bash")
		f.holds(l.id, text, "[Human Input]: mind the licence")
		// carol has had no update yet: both answers come as one full message.
		if first := strings.Contains(text, "FIRST ANSWERS"); first != (l.id == "carol") {
			f.t.Errorf("%s is told\n%s", l.id, text)
		}
		if l.id == "carol" {
			f.holds(l.id, text, "agent1.1 -> agent1.2", "as it was at agent1.2")
		}
	}
}

func onlyTheParentHearsItsSubagent(f *fabric, parent *loop, others ...*loop) {
	f.t.Helper()
	f.inject(parent.id, &schema.InjectRequest{Subagent: &schema.SubagentResult{ID: "research", Status: "failed", Error: "no network"}})
	for _, l := range others {
		if got := l.works("Bash"); got != "" {
			f.t.Errorf("%s hears\n%s", l.id, got)
		}
	}
	f.holds(parent.id, parent.works("Bash"), "SUBAGENT RESULTS", `id="research" status="failed"`, "no network")
}

func theVoterRestarts(f *fabric, alice, bob, carol *loop) {
	f.t.Helper()
	if err := carol.client.SetMode(f.t.Context(), "carol", true); err != nil {
		f.t.Error(err)
	}
	if is, err := carol.client.Mode(f.t.Context(), "carol"); err != nil || !is.VoteOnly {
		f.t.Errorf("%+v, %v", is, err)
	}
	second := f.answers("bob", "Mine uses WORK/main.py", map[string]string{"main.py": "print()"})
	if second.Label != "agent2.1" {
		f.t.Errorf("%+v", second)
	}
	if got := carol.works("Bash"); got != "" || len(carol.restarts) != 1 {
		f.t.Fatalf("carol gets %q, and restarts %d times", got, len(carol.restarts))
	}
	text := carol.restarts[0].Content
	f.holds("carol's new turn", text, "TURN STARTS AGAIN", "agent2.1", "vote")
	f.lacks("carol's new turn", text, "agent1.", "bob")
	if got := carol.file(text, "main.py"); got != "print()" {
		f.t.Errorf("carol reads %q", got)
	}
	// alice has had no update before: hers is the full message.
	f.holds("alice", alice.works("Bash"), "FIRST ANSWERS", "agent2.1")
	if got := bob.works("Bash"); got != "" {
		f.t.Errorf("bob hears of himself:\n%s", got)
	}
}

func TestAnswers(t *testing.T) {
	inBubbles(t, []scenario{
		{"the same label is the same answer, and no agent gets the name of another", sameLabel},
		{"what an agent saw in one session is unknown in another", twoSessions},
		{"an agent that joins late does not read its own id as another one's name", lateJoiner},
		{"an answer without a workspace says so, and one with a lost one, too", withoutWorkspace},
		{"an agent is told of others' answers twice in a round, and then in the next one", twiceInARound},
		{"deferred answers wait for the agent's restart, and nothing else does", deferred},
		{"a session's start and a new round are restarts", restarts},
		{"deferred answers come until a checklist was accepted, where that is said", untilChecklist},
		{"where checklists are the gate, the way leads through them", throughChecklist},
	})
}

func sameLabel(t *testing.T) {
	f := start(t, nothingWritten)
	f.loop("alice")
	bob := f.loop("bob")
	req := schema.AnswerRequest{Session: team, Content: "done", Label: "agent3.4"}
	first := must[schema.AnswerReceipt](f, schema.VerbAnswer, "alice", req)
	again := must[schema.AnswerReceipt](f, schema.VerbAnswer, "alice", req)
	if first.Duplicate || !again.Duplicate || first.Label != "agent3.4" || again.Sequence != first.Sequence {
		t.Errorf("%+v, then %+v", first, again)
	}
	if _, failed := control[schema.AnswerReceipt](f, schema.VerbAnswer, "bob", req); failed == nil || failed.Code != schema.CodeConflict {
		t.Errorf("bob calls himself as alice does: %+v", failed)
	}
	text := bob.works("Bash")
	f.holds("bob", text, "agent3.4", "done")
	if strings.Count(text, "[agent3.4]") != 1 {
		t.Errorf("it comes more than once:\n%s", text)
	}
}

func twoSessions(t *testing.T) {
	f := start(t, nothingWritten)
	bob := f.loop("bob")
	tell := func(session, text string) {
		t.Helper()
		must[schema.AnswerReceipt](f, schema.VerbAnswer, "alice", schema.AnswerRequest{Session: session, Content: text})
	}
	tell(team, "one")
	f.holds("bob", bob.works("Bash"), "FIRST ANSWERS", "agent1.1 (new)")
	tell(team, "two")
	f.holds("bob", bob.works("Bash"), "[UPDATE: agent1.1 -> agent1.2]")
	bob.session = "session 2"
	tell(bob.session, "of another task")
	text := bob.works("Bash")
	f.holds("bob, in another session,", text, "FIRST ANSWERS", "[ANSWERS: agent1.1 (new)]")
	f.lacks("bob, in another session,", text, "->", "agent1.2")
	bob.session = ""
	tell(team, "three")
	f.holds("bob, back,", bob.works("Bash"), "[UPDATE: agent1.2 -> agent1.3]")
}

func lateJoiner(t *testing.T) {
	f := start(t, nothingWritten)
	f.loop("agent1")
	if got := f.answers("alice", "In WORK/a.", map[string]string{"a": "42"}); got.Name != "agent2" {
		t.Errorf("beside an agent agent1, alice is %+v", got)
	}
	late := f.loop("agent2")
	text := late.works("Bash")
	f.holds("agent2", text, "[peer-agent2.1]")
	f.lacks("agent2", strings.ReplaceAll(text, "peer-agent2", ""), "agent2")
	if got := late.file(text, "/a"); got != "42" {
		t.Errorf("it reads %q", got)
	}
}

func withoutWorkspace(t *testing.T) {
	f := start(t, nothingWritten)
	f.loop("alice")
	bob := f.loop("bob")
	f.answers("alice", "It is 42.", nil)
	f.holds("bob", bob.works("Bash"), "workspace is not shared", "It is 42.")
	f.answers("alice", "It is in WORK/a.", map[string]string{"a": "42"})
	if err := os.WriteFile(filepath.Join(bob.dir, "temp_workspaces"), []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.holds("bob, whose disk is odd,", bob.works("Bash"), "agent1.2", "workspace unavailable")
}

func twiceInARound(t *testing.T) {
	f := start(t, nothingWritten)
	f.loop("alice")
	bob := f.loop("bob")
	f.round("bob", schema.RoundRequest{Action: schema.RoundStart})
	for n := range 4 {
		f.answers("alice", "another one", nil)
		if got := bob.works("Bash"); (got != "") != (n < 2) {
			t.Errorf("of answer %d bob is told %q", n+1, got)
		}
	}
	f.inject("bob", &schema.InjectRequest{Content: "hello"})
	f.holds("bob", bob.works("Bash"), "hello")
	f.round("bob", schema.RoundRequest{Action: schema.RoundStart})
	f.holds("bob, in the next round,", bob.works("Bash"), "agent1.2 -> agent1.4", "[agent1.3]", "[agent1.4]")
}

// deferring has agents wait for answers; more says what else.
func deferring(more string) string {
	return `hooks:
  PostToolUse:
    - type: builtin
      handler: mid_stream_injection
      options: {defer_peer_updates_until_restart: true, max_updates_per_round: 0` + more + `}
`
}

func deferred(t *testing.T) {
	f := start(t, deferring(""))
	f.loop("alice")
	bob := f.loop("bob")
	f.answers("alice", "one", nil)
	f.inject("bob", &schema.InjectRequest{Content: "hello"})
	text := bob.works("Bash")
	f.holds("bob", text, "hello")
	f.lacks("bob", text, "agent1.1")
	if v := bob.ask(&schema.Event{HookType: schema.ToolError, ToolName: "Bash", ToolInput: []byte(`{}`), Error: "no"}); len(v.Injections) > 0 {
		t.Errorf("after a tool that failed: %+v", v.Injections)
	}
	if err := bob.client.Checkpoint(t.Context(), "bob"); err != nil {
		t.Error(err)
	}
	f.answers("alice", "two", nil)
	text = bob.works("Bash")
	f.holds("bob, restarted,", text, "agent1.1", "one")
	f.lacks("bob, restarted,", text, "agent1.2")
	must[struct{}](f, schema.VerbCheckpoint, "bob", struct{}{})
	f.holds("bob, restarted again,", bob.works("Bash"), "agent1.1 -> agent1.2")
}

// In another session of the agent nothing starts again because one does.
func restarts(t *testing.T) {
	f := start(t, deferring(""))
	f.loop("alice")
	bob := f.loop("bob")
	f.answers("alice", "one", nil)
	must[schema.AnswerReceipt](f, schema.VerbAnswer, "alice", schema.AnswerRequest{Session: "session 2", Content: "elsewhere"})
	if got := bob.works("Bash"); got != "" {
		t.Errorf("before he starts again bob is told %s", got)
	}
	bob.ask(&schema.Event{HookType: schema.SessionStart})
	f.answers("alice", "two", nil)
	text := bob.works("Bash")
	f.holds("bob, whose session started again,", text, "agent1.1", "one")
	f.lacks("bob, whose session started again,", text, "agent1.2")
	bob.session = "session 2"
	if got := bob.works("Bash"); got != "" {
		t.Errorf("in a session that did not start again bob is told %s", got)
	}
	f.round("bob", schema.RoundRequest{Action: schema.RoundStart})
	f.holds("bob, in a new round,", bob.works("Bash"), "elsewhere")
	bob.session = ""
	f.holds("bob, in a new round of his first session,", bob.works("Bash"), "agent1.1 -> agent1.2")
}

func untilChecklist(t *testing.T) {
	f := start(t, deferring(", allow_midstream_peer_updates_before_checklist_submit: true"))
	f.loop("alice")
	bob := f.loop("bob")
	f.answers("alice", "one", nil)
	f.holds("bob", bob.works("Bash"), "agent1.1")
	bob.hear(bob.ran("mcp__c__submit_checklist", `{"status":"rejected"}`))
	f.answers("alice", "two", nil)
	f.holds("bob, whose checklist was not accepted,", bob.works("Bash"), "agent1.2")
	bob.hear(bob.ran("mcp__c__submit_checklist", `{"status":"accepted"}`))
	f.settle()
	f.answers("alice", "three", nil)
	if got := bob.works("Bash"); got != "" {
		t.Errorf("after it was accepted: %s", got)
	}
	f.answers("bob", "mine", nil) // his next answer has a checklist of its own
	f.holds("bob, at his next answer,", bob.works("Bash"), "agent1.3")
}

func throughChecklist(t *testing.T) {
	f := start(t, `hooks:
  PostToolUse:
    - {type: builtin, handler: mid_stream_injection, options: {checklist_gated: true}}
`)
	f.loop("alice")
	bob := f.loop("bob")
	f.answers("alice", "one", nil)
	f.holds("bob", bob.works("Bash"), "submit_checklist", "agent1.1", "propose_improvements only after")
}
