package bus

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/nats-io/nats.go"
)

const (
	someID  = "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"
	otherID = "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607183"
)

func someRouting() schema.Routing {
	return schema.Routing{Event: schema.PreToolUse, Agent: "agent.1", Session: "s 1", Tool: "Bash\n%é ", ID: someID,
		Trace: trace.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")}
}

// eventRouting returns the routing of an event whose answer cannot carry injections.
func eventRouting() schema.Routing {
	r := someRouting()
	r.Mute, r.MidTurn = true, true
	return r
}

func someEventMsg(t testing.TB) *nats.Msg {
	r := eventRouting()
	subj, err := EventSubject(r.Agent, r.Event)
	if err != nil {
		t.Fatal(err)
	}
	m := EventMsg(subj, r, 2, 1500*time.Millisecond, []string{otherID, someID}, []byte(`{"a":1}`))
	m.Reply = "_INBOX.x"
	m.Header = overTheWire(t, m.Header)
	return m
}

func TestEventMsg(t *testing.T) {
	got, err := ParseEventMsg(someEventMsg(t))
	if err != nil {
		t.Fatal(err)
	}
	want := EventRequest{Routing: eventRouting(), Attempt: 2, Left: 1500 * time.Millisecond,
		Acks: []string{otherID, someID}, Body: []byte(`{"a":1}`), Reply: "_INBOX.x"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// An event that cannot be sent is malformed. Its message has the reason as its body.
func TestTheReasonOfAnUnreadableEventArrives(t *testing.T) {
	for why, want := range map[string]string{
		"it is larger than 8323072 bytes": "the shim could not read the event: it is larger than 8323072 bytes",
		strings.Repeat("ä", 300):          "the shim could not read the event: " + strings.Repeat("ä", 256),
	} {
		m := someEventMsg(t)
		m.Data = UnreadBody(errors.New(why))
		if q, err := ParseEventMsg(m); err == nil || err.Error() != want || q.Tool != eventRouting().Tool {
			t.Errorf("%v; %+v", err, q.Routing)
		}
	}
	m := someEventMsg(t)
	m.Data = []byte(`"` + strings.Repeat("x", 2000) + `"`) // longer than UnreadBody makes it
	if _, err := ParseEventMsg(m); err == nil || len(err.Error()) > 600 {
		t.Errorf("%v", err)
	}
}

func TestEventMsgOmitsEmptyHeaders(t *testing.T) {
	m := EventMsg("hook.v1.event.a.SessionStart", schema.Routing{ID: someID}, 1, time.Second, nil, nil)
	want := nats.Header{"Hook-Id": {someID}, "Hook-Attempt": {"1"}, "Hook-Left": {"1s"}}
	if d := cmp.Diff(want, m.Header); d != "" {
		t.Error(d)
	}
}

// Traces are for observation, so an invalid one must not fail an event.
func TestAnInvalidTraceIsIgnored(t *testing.T) {
	for name, junk := range map[string]nats.Header{
		"no traceparent": {schema.HeaderTraceparent: {"00-1-2-3"}},
		"two":            {schema.HeaderTraceparent: {someRouting().Trace.Parent(), someRouting().Trace.Parent()}},
		"a state alone":  {schema.HeaderTracestate: {"vendor=1"}},
	} {
		m := someEventMsg(t)
		delete(m.Header, schema.HeaderTraceparent)
		delete(m.Header, schema.HeaderTracestate)
		maps.Copy(m.Header, junk)
		if got, err := ParseEventMsg(m); err != nil || got.Trace != nil {
			t.Errorf("%s: the position is %+v, %v", name, got.Trace, err)
		}
	}
}

func TestParseEventMsgAcceptsVariantsOfOtherClients(t *testing.T) {
	m := &nats.Msg{Subject: "hook.v1.event.a.PreToolUse", Header: nats.Header{
		"Hook-Id": {strings.ToUpper(someID)}, "Hook-Left": {"1m"}, "Hook-Ack": {otherID + ", " + strings.ToUpper(someID)},
	}}
	got, err := ParseEventMsg(m)
	want := EventRequest{Routing: schema.Routing{Event: schema.PreToolUse, Agent: "a", ID: someID},
		Attempt: 1, Left: time.Minute, Acks: []string{otherID, someID}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(err, d)
	}
}

// faults are header values that make a message malformed, with a part of the error. A nil value
// removes the header.
type faults map[string]struct {
	key    string
	values []string
	want   string
}

func eventFaults() faults {
	return faults{
		"no id":                   {"Hook-Id", nil, "Hook-Id is missing"},
		"an empty id":             {"Hook-Id", []string{""}, "Hook-Id is missing"},
		"an id that is no UUID":   {"Hook-Id", []string{"42"}, "not a UUID"},
		"an id with odd digits":   {"Hook-Id", []string{strings.Replace(someID, "0", "g", 1)}, "not a UUID"},
		"an id without hyphens":   {"Hook-Id", []string{strings.ReplaceAll(someID, "-", "0")}, "not a UUID"},
		"two ids":                 {"Hook-Id", []string{someID, otherID}, "Hook-Id 2 times"},
		"two tools":               {"Hook-Tool", []string{"Read", "Bash"}, "Hook-Tool 2 times"},
		"a tool too long":         {"Hook-Tool", []string{strings.Repeat("x", schema.MaxHeader+1)}, "at most 4096"},
		"a tool badly escaped":    {"Hook-Tool", []string{"50%"}, "%25"},
		"a session badly escaped": {"Hook-Session", []string{"%g0"}, "Hook-Session"},
		"no time":                 {"Hook-Left", nil, "Hook-Left is missing"},
		"a time without a unit":   {"Hook-Left", []string{"10"}, "not a duration"},
		"a negative time":         {"Hook-Left", []string{"-1s"}, "above zero"},
		"no time left":            {"Hook-Left", []string{"0s"}, "above zero"},
		"an absurd time":          {"Hook-Left", []string{"1000h"}, "at most 24h"},
		"a time that overflows":   {"Hook-Left", []string{"99999999999999999h"}, "not a duration"},
		"two times":               {"Hook-Left", []string{"1s", "2s"}, "2 times"},
	}
}

func TestParseEventMsgRefuses(t *testing.T) {
	cases := eventFaults()
	maps.Copy(cases, faults{
		"attempt zero":                    {"Hook-Attempt", []string{"0"}, "from 1 to 100"},
		"a negative attempt":              {"Hook-Attempt", []string{"-1"}, "from 1 to 100"},
		"attempt 101":                     {"Hook-Attempt", []string{"101"}, "from 1 to 100"},
		"an attempt that is a word":       {"Hook-Attempt", []string{"first"}, "from 1 to 100"},
		"another delivery":                {"Hook-Deliver", []string{"later"}, "send none"},
		"another restart":                 {"Hook-Restart", []string{"later"}, "send none"},
		"an ack that is no UUID":          {"Hook-Ack", []string{someID + ",x"}, "lists \"x\""},
		"an ack that ends with a comma":   {"Hook-Ack", []string{someID + ","}, "not a UUID"},
		"101 acks":                        {"Hook-Ack", []string{strings.Repeat(",", 100)}, "lists 101 events"},
		"an ack header beyond all bounds": {"Hook-Ack", []string{strings.Repeat("x", 5000)}, "at most 4096"},
	})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := someEventMsg(t)
			spoil(m, c.key, c.values)
			q, err := ParseEventMsg(m)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want one with %q", err, c.want)
			}
			if q.Event != schema.PreToolUse || q.Agent != "agent.1" || q.Reply != m.Reply {
				t.Errorf("the request lost the fields of its subject: %+v", q)
			}
		})
	}
}

func spoil(m *nats.Msg, key string, values []string) {
	if values == nil {
		delete(m.Header, key)
	} else {
		m.Header[key] = values
	}
}

func TestParseEventMsgRefusesBodiesAndSubjects(t *testing.T) {
	m := someEventMsg(t)
	m.Data = make([]byte, schema.MaxEvent)
	if _, err := ParseEventMsg(m); err != nil {
		t.Errorf("the largest body: %v", err)
	}
	m.Data = make([]byte, schema.MaxEvent+1)
	if _, err := ParseEventMsg(m); err == nil || !strings.Contains(err.Error(), "body has") {
		t.Errorf("a body one byte too large: %v", err)
	}
	m.Subject = "hook.v1.event.a.Nothing"
	if q, err := ParseEventMsg(m); err == nil || q.Event != "" {
		t.Errorf("a faulty subject: %+v, %v", q, err)
	}
	if _, err := ParseEventMsg(&nats.Msg{Subject: "hook.v1.event.a.PreToolUse"}); err == nil {
		t.Error("a message without headers is accepted")
	}
}

func FuzzParseEventMsg(f *testing.F) {
	f.Add("hook.v1.event.a.PreToolUse", someID, "1", "Bash", "s", "1s", otherID, []byte("{}"))
	f.Add("hook.v1.event.=2E.QueryEnd", "", "x", "%", "% 0", "-1h", ",", []byte(nil))
	f.Fuzz(func(t *testing.T, subj, id, attempt, tool, session, left, ack string, body []byte) {
		m := &nats.Msg{Subject: subj, Data: body, Header: nats.Header{"Hook-Id": {id}, "Hook-Attempt": {attempt},
			"Hook-Tool": {tool}, "Hook-Session": {session}, "Hook-Left": {left}, "Hook-Ack": {ack}}}
		q, err := ParseEventMsg(m)
		if err != nil {
			return
		}
		again := EventMsg(subj, q.Routing, q.Attempt, q.Left, q.Acks, q.Body)
		again.Header = overTheWire(t, again.Header)
		if got, err := ParseEventMsg(again); err != nil || !cmp.Equal(got, q) {
			// Escaped values may be longer than a header may be.
			if len(tool)*3 > schema.MaxHeader || len(session)*3 > schema.MaxHeader {
				return
			}
			t.Errorf("%+v is read back as %+v, %v", q, got, err)
		}
	})
}

func BenchmarkEventMsg(b *testing.B) {
	r := schema.Routing{Event: schema.PreToolUse, Agent: "agent1", Session: "s-1", Tool: "Bash", ID: someID}
	b.ReportAllocs()
	for b.Loop() {
		_ = EventMsg("hook.v1.event.agent1.PreToolUse", r, 1, 30*time.Second, nil, nil)
	}
}

func BenchmarkParseEventMsg(b *testing.B) {
	r := schema.Routing{Event: schema.PreToolUse, Agent: "agent1", Session: "s-1", Tool: "Bash", ID: someID}
	m := EventMsg("hook.v1.event.agent1.PreToolUse", r, 1, 30*time.Second, nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEventMsg(m); err != nil {
			b.Fatal(err)
		}
	}
}
