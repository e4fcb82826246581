package e2e_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// soundEvent is a question that can be answered.
func soundEvent() *nats.Msg {
	return &nats.Msg{
		Subject: "hook.v1.event.junk.PreToolUse",
		Header: nats.Header{
			schema.HeaderID: {uuid.NewString()}, schema.HeaderLeft: {"5s"}, schema.HeaderTool: {"Guarded"},
		},
		Data: []byte(`{"tool_name":"Guarded","tool_input":{}}`),
	}
}

// junkEvent is a sound question with one thing wrong: a denied one, because a
// fail-closed hook guards the call.
func junkEvent(name, want string, spoil func(*nats.Msg)) junk {
	return junk{name, want, func(t testing.TB, f *junkFabric) string {
		m := soundEvent()
		spoil(m)
		v := f.verdict(t, m)
		if v == nil {
			return nats.ErrNoResponders.Error()
		}
		if v.Decision != schema.Deny || v.Reason == "" {
			t.Errorf("%s: decided %q, %q; want a deny with its reason", name, v.Decision, v.Reason)
		}
		return strings.Join(v.HookErrors, "; ")
	}}
}

// verdict makes a raw request; nil: there are no responders.
func (f *junkFabric) verdict(t testing.TB, m *nats.Msg) *schema.Verdict {
	t.Helper()
	answer, err := f.request(t, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	v := new(schema.Verdict)
	if err := schema.Unmarshal(answer.Data, v); err != nil {
		t.Fatalf("the verdict %q cannot be read: %v", answer.Data, err)
	}
	return v
}

func set(key string, values ...string) func(*nats.Msg) {
	return func(m *nats.Msg) { m.Header[key] = values }
}

func unset(key string) func(*nats.Msg) { return func(m *nats.Msg) { delete(m.Header, key) } }

func body(s string) func(*nats.Msg) { return func(m *nats.Msg) { m.Data = []byte(s) } }

func subject(s string) func(*nats.Msg) { return func(m *nats.Msg) { m.Subject = s } }

func junkEvents() []junk {
	id := uuid.NewString()
	long := strings.Repeat("x", schema.MaxHeader+1)
	var all []junk
	for _, c := range []struct {
		name, want string
		spoil      func(*nats.Msg)
	}{
		{"no headers at all", "Hook-Id is missing", func(m *nats.Msg) { m.Header = nil }},
		{"no id", "Hook-Id is missing", unset(schema.HeaderID)},
		{"an empty id", "Hook-Id is missing", set(schema.HeaderID, "")},
		{"a word for an id", "is not a UUID", set(schema.HeaderID, "one")},
		{"an id without hyphens", "is not a UUID", set(schema.HeaderID, strings.ReplaceAll(id, "-", ""))},
		{"an id in braces", "is not a UUID", set(schema.HeaderID, "{"+id+"}")},
		{"an id with a letter too many", "is not a UUID", set(schema.HeaderID, id+"0")},
		{"an id that is not hex", "is not a UUID", set(schema.HeaderID, "g"+id[1:])},
		{"two ids", " 2 times; send it once", set(schema.HeaderID, id, id)},
		{"a long id", "at most 4096 are allowed", set(schema.HeaderID, long)},
		{"no time left said", "Hook-Left is missing", unset(schema.HeaderLeft)},
		{"a bare number for the time left", "is not a duration", set(schema.HeaderLeft, "5")},
		{"a word for the time left", "is not a duration", set(schema.HeaderLeft, "soon")},
		{"no time left", "send a duration above zero", set(schema.HeaderLeft, "0s")},
		{"less than no time left", "send a duration above zero", set(schema.HeaderLeft, "-5s")},
		{"two days left", "send at most 24h0m0s", set(schema.HeaderLeft, "48h")},
		{"more time than fits", "is not a duration", set(schema.HeaderLeft, "99999999999h")},
		{"two times left", " 2 times", set(schema.HeaderLeft, "5s", "6s")},
		{"attempt nought", "send a number from 1 to 100", set(schema.HeaderAttempt, "0")},
		{"a negative attempt", "send a number from 1 to 100", set(schema.HeaderAttempt, "-1")},
		{"attempt 101", "send a number from 1 to 100", set(schema.HeaderAttempt, "101")},
		{"a word for the attempt", "send a number from 1 to 100", set(schema.HeaderAttempt, "first")},
		{"an attempt that overflows", "send a number from 1 to 100", set(schema.HeaderAttempt, "99999999999999999999")},
		{"two attempts", " 2 times", set(schema.HeaderAttempt, "1", "1")},
		{"half an escape in the tool", "write a percent sign as %25", set(schema.HeaderTool, "Guarded%")},
		{"a wrong escape in the tool", "write a percent sign as %25", set(schema.HeaderTool, "Guarded%zz")},
		{"two tools", " 2 times", set(schema.HeaderTool, "Guarded", "Lax")},
		{"a long tool", "at most 4096 are allowed", set(schema.HeaderTool, long)},
		{"half an escape in the session", "write a percent sign as %25", set(schema.HeaderSession, "100%")},
		{"two sessions", " 2 times", set(schema.HeaderSession, "a", "b")},
		{"a long session", "at most 4096 are allowed", set(schema.HeaderSession, long)},
		{"an ack of a word", "list event ids", set(schema.HeaderAck, "all")},
		{"an ack with a gap", "list event ids", set(schema.HeaderAck, id+",,"+id)},
		{"a hundred acks and one", "at most", set(schema.HeaderAck, strings.Repeat(id+",", 100)+id)},
		{"two lists of acks", " 2 times", set(schema.HeaderAck, id, id)},
		{"no body", "the event is", body("")},
		{"a blank body", "the event is", body(" \n")},
		{"null", "the event is null; it must be a JSON object", body("null")},
		{"a list", "it must be a JSON object", body(`["Guarded"]`)},
		{"a string, which says why an event could not be sent", "the shim could not read the event: tool_name", body(`"tool_name"`)},
		{"a number", "it must be a JSON object", body("42")},
		{"half an object", "the event", body(`{"tool_name":"Guarded"`)},
		{"a trailing comma", "the event", body(`{"tool_name":"Guarded","tool_name":"Guarded",}`)},
		{"two objects", "the event", body(`{"tool_name":"Guarded"}{"tool_name":"Guarded"}`)},
		{"a name twice", "the event", body(`{"tool_name":"Guarded","tool_name":"Guarded"}`)},
		{"single quotes", "the event", body(`{'tool_name':'Guarded'}`)},
		{"binary", "the event", body("\x00\x01\xfe\xff")},
		{"another tool in the body", `names the tool "Lax" but its Hook-Tool header "Guarded"`, body(`{"tool_name":"Lax"}`)},
		{"another case in the body", "names the tool", body(`{"tool_name":"guarded"}`)},
		{"a hidden tool in the body", "names the tool", body(`{"tool\u005fname":"Lax"}`)},
		{"a tool in the body alone", "names the tool", func(m *nats.Msg) { delete(m.Header, schema.HeaderTool) }},
		{"a number for the tool", "the event", body(`{"tool_name":1}`)},
		{"a nested tool first", "the event", body(`{"tool_input":{"tool_name":"Guarded"},"tool_name":["Guarded"]}`)},
		{"a tool twice, hidden", "the event", body(`{"tool_name":"Guarded","tool\u005fname":"Lax"}`)},
		{"a body of more than fits", "at most", body(`{"tool_name":"Guarded","prompt":"` + strings.Repeat("x", schema.MaxEvent) + `"}`)},
		{"an unknown event", "unknown event", subject("hook.v1.event.junk.Nonsense")},
		{"an event in small letters", "unknown event", subject("hook.v1.event.junk.pretooluse")},
		{"an agent with a faulty escape", "faulty escape", subject("hook.v1.event.a=zz.PreToolUse")},
		{"an agent with a needless escape", "needs none", subject("hook.v1.event.=41.PreToolUse")},
		{"an agent with a raw character", "write it as =", subject("hook.v1.event.ä.PreToolUse")},
		{"a long agent", "at most 128 are allowed", subject("hook.v1.event." + strings.Repeat("a", 129) + ".PreToolUse")},
		{"a subject that is too short", "no responders", subject("hook.v1.event.PreToolUse")},
		{"a subject that is too long", "no responders", subject("hook.v1.event.a.b.PreToolUse")},
		{"another version", "no responders", subject("hook.v2.event.a.PreToolUse")},
	} {
		all = append(all, junkEvent(c.name, c.want, c.spoil))
	}
	return all
}
