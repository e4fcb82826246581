package session

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// session is a session of a runtime. The fabric judges each of its moments.
type session struct {
	t       *testing.T
	runtime string
	store   Store
	asked   asked
	stderr  strings.Builder
}

// at returns the answer to the runtime at a moment for which the fabric returns v.
func (s *session) at(event, payload string, v schema.Verdict) string {
	s.t.Helper()
	d, err := dialect.For(s.runtime)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := dialect.Find(d, event)
	if err != nil {
		s.t.Fatal(err)
	}
	s.asked.v = v
	x := &Exchange{Settings: Settings{Runtime: s.runtime, Dialect: d, Moment: m, Unreachable: decide.UnreachableAllow},
		Asker: &s.asked, Store: s.store, Stderr: &s.stderr}
	r := x.Run(s.t.Context(), []byte(payload), nil)
	r.Told()
	return string(r.Stdout)
}

// flags returns the flags of the last event.
func (s *session) flags() string { return string(s.asked.all[len(s.asked.all)-1].Event.Flags) }

func effects(all ...string) schema.Verdict {
	v := schema.Verdict{Decision: schema.Continue}
	for _, e := range all {
		v.Effects = append(v.Effects, jsontext.Value(e))
	}
	return v
}

const (
	stop   = `{"hook_event_name":"Stop","session_id":"s","prompt_id":"p","stop_hook_active":false}`
	prompt = `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt_id":"p","prompt":"go"}`
	sub    = `{"hook_event_name":"PostToolUse","session_id":"s","prompt_id":"p","agent_id":"sub","tool_name":"Read","tool_input":{},"tool_use_id":"t2"}`
)

func TestAFlagThatAHookSetsIsInLaterEvents(t *testing.T) {
	s := &session{t: t, runtime: "claude", store: shimstate.Folder(t.TempDir())}
	s.at("Stop", stop, effects(`{"set_flag":{"warned":true,"times":1}}`, `{"set_flag":{"times":2}}`))
	if got := s.flags(); got != "" {
		t.Errorf("before: %s", got)
	}
	s.at("Stop", stop, effects(`{"set_flag":{"warned":null}}`))
	if got := s.flags(); !strings.Contains(got, `"times":2`) || !strings.Contains(got, `"warned":true`) {
		t.Errorf("then: %s", got)
	}
	s.at("UserPromptSubmit", prompt, effects())
	if got := s.flags(); got != `{"times":2}` {
		t.Errorf("after one was taken away: %s", got)
	}
	s.at("UserPromptSubmit", strings.Replace(prompt, `"s"`, `"another"`, 1), effects())
	if got := s.flags(); got != "" {
		t.Errorf("in another session: %s", got)
	}
	if s.stderr.Len() > 0 {
		t.Error(s.stderr.String())
	}
	s.store = nil
	if s.at("Stop", stop, effects(`{"set_flag":{"a":1}}`)); !strings.Contains(s.stderr.String(), "flags") {
		t.Errorf("what is not kept is not said: %q", s.stderr.String())
	}
}

// A message to append does not put off the end of a turn. The agent gets it once, when it continues
// for another reason. A subagent does not get it.
func TestAMessageToAppendWaitsForAMomentThatCanTellIt(t *testing.T) {
	s := &session{t: t, runtime: "claude", store: shimstate.Folder(t.TempDir())}
	if got := s.at("Stop", stop, effects(`{"append_message":{"content":"remember the tests"}}`)); got != "" {
		t.Errorf("the turn is put off: %s", got)
	}
	if got := s.at("PostToolUse", sub, effects()); got != "" {
		t.Errorf("a subagent is told %s", got)
	}
	refused := effects()
	refused.Decision, refused.Reason = schema.Deny, "no"
	if got := s.at("UserPromptSubmit", prompt, refused); strings.Contains(got, "remember") {
		t.Errorf("beside a refusal nobody reads it: %s", got)
	}
	for i, want := range []bool{true, false} {
		if got := s.at("UserPromptSubmit", prompt, effects()); strings.Contains(got, "remember the tests") != want {
			t.Errorf("prompt %d: %s", i, got)
		}
	}
}

// The shim reports once per verdict what no runtime supports.
func TestMessagesThatCanNotBeDroppedAreSaid(t *testing.T) {
	s := &session{t: t, runtime: "claude"}
	s.at("UserPromptSubmit", prompt, effects(`{"drop_messages":{"last":1}}`, `{"drop_messages":{"first":1}}`))
	if n := strings.Count(s.stderr.String(), "drop_messages"); n != 1 {
		t.Errorf("it is said %d times: %s", n, s.stderr.String())
	}
}

// An agent's own loop applies effects by itself, and keeps its flags.
func TestEffectsPassThroughToAnAgentsOwnLoop(t *testing.T) {
	s := &session{t: t, runtime: "generic", store: shimstate.Folder(t.TempDir())}
	v := effects(`{"append_message":{"content":"x"}}`, `{"set_flag":{"a":1}}`, `{"drop_messages":{"last":1}}`)
	event := `{"hook_type":"BeforeLLMCall","session_id":"s","agent_id":"a"}`
	got := s.at("BeforeLLMCall", event, v)
	for _, e := range v.Effects {
		if !strings.Contains(got, string(e)) {
			t.Errorf("%s is not in %s", e, got)
		}
	}
	if s.at("BeforeLLMCall", event, effects()); s.flags() != "" || s.stderr.Len() > 0 {
		t.Errorf("flags %s, %s", s.flags(), s.stderr.String())
	}
}
