package schema

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func genInjection(t *rapid.T) InjectionRecord {
	return InjectionRecord{
		Hook: plainTexts().Draw(t, "hook"), Source: plainTexts().Draw(t, "source"), Strategy: Strategy(plainTexts().Draw(t, "strategy")),
		Length: rapid.IntRange(-1, 1000).Draw(t, "length"), Sequence: rapid.Uint64Range(0, 3).Draw(t, "sequence"),
	}
}

// genTime draws a time in UTC, in another zone, or in a year that JSON cannot have.
func genTime(t *rapid.T) time.Time {
	at := time.Unix(rapid.Int64Range(-1<<36, 1<<38).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
	return rapid.SampledFrom([]time.Time{{}, at.UTC(), at.UTC(), at.UTC(), at.UTC(), at.In(time.FixedZone("", 3600))}).Draw(t, "time")
}

func genRecord(t *rapid.T) *Record {
	texts := rapid.StringMatching(`[ !#-Z]{0,9}`)
	if rapid.IntRange(0, 3).Draw(t, "any texts") == 0 {
		texts = plainTexts()
	}
	text := func(what string) string { return texts.Draw(t, what) }
	is := func(what string) bool { return rapid.IntRange(0, 4).Draw(t, what) == 0 }
	r := &Record{
		Time: genTime(t), EventID: text("id"), TraceID: text("trace"), Attempt: rapid.IntRange(0, 3).Draw(t, "attempt"), Event: EventType(text("event")),
		Agent: text("agent"), Session: text("session"), Runtime: text("runtime"), Host: text("host"), Broker: text("broker"), Tool: text("tool"),
		ToolKind: text("kind"), InputHash: text("hash"), Decision: Decision(text("decision")), Reason: text("reason"), Rewritten: is("rewritten"),
		ConfigVersion: rapid.Uint64Range(0, 3).Draw(t, "version"), Took: durations().Draw(t, "took"), Failed: Failure(text("failed")),
		Shed: is("shed"), Malformed: is("malformed"), Limited: text("limited"), More: rapid.IntRange(-1, 3).Draw(t, "more"), Aside: is("aside"), Would: Decision(text("would")), Unjudged: is("unjudged"),
		Lost: rapid.IntRange(-1, 3).Draw(t, "lost"), Frozen: is("frozen"), Content: seldom(t, "content"),
	}
	if is("injections") {
		r.Injections = rapid.SliceOfN(rapid.Custom(genInjection), 0, 3).Draw(t, "injections")
	}
	if is("hooks") {
		r.ExecutedHooks = rapid.SliceOfN(rapid.Custom(genExecuted), 0, 3).Draw(t, "hooks")
	}
	if is("errors") {
		r.HookErrors = rapid.SliceOfN(texts, 0, 3).Draw(t, "errors")
	}
	switch rapid.IntRange(0, 30).Draw(t, "few") {
	case 0:
		r.Cut = []string{"content"}
	case 1:
		r.Freeze = &FreezeChange{}
	case 2:
		r.Expired = &PendingItem{Key: "k"}
	}
	return r
}

func TestRecordsAgreeWithTheCodec(t *testing.T) {
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		r := genRecord(t)
		var w plainWriter
		if r.write(&w); !w.fancy {
			plain++
		}
		want, wantErr := json.Marshal(r, options)
		got, err := AppendRecord([]byte("before"), r)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != "before"+string(want) {
			t.Fatalf("it is written\n%s (%v), by the codec\n%s (%v)", got, err, want, wantErr)
		}
	})
	if plain == 0 {
		t.Error("none was plain")
	}
}

// TestMostRecordsArePlain compares each member with the codec's, and checks that the fast
// path is used.
func TestMostRecordsArePlain(t *testing.T) {
	hooks := []ExecutedHook{{Hook: "a", Decision: Deny, Reason: "no such luck", Outcome: OK, Duration: 1500, Worker: "host-1", Mode: Enforce}, {Hook: "b", Outcome: Errored, Error: "e"}}
	full := &Record{
		Time: time.Date(2026, 11, 21, 10, 0, 0, 250_000_000, time.UTC), EventID: "id", TraceID: "0af7651916cd43dd", Attempt: 2, Event: PreToolUse, Agent: "a", Session: "s", Runtime: "claude", Host: "h",
		Broker: "b", Tool: "Bash", ToolKind: "shell", InputHash: "sha256-0", Decision: Deny, Reason: "no such luck", Rewritten: true,
		Injections:    []InjectionRecord{{Hook: "a", Source: "ci", Strategy: ToolResult, Length: 3, Sequence: 4}, {Source: "ci"}, {}},
		ExecutedHooks: hooks, HookErrors: []string{"one", "two"}, ConfigVersion: 7, Took: Duration(time.Millisecond), Failed: FailedClosed,
		Shed: true, Malformed: true, Aside: true, Would: Allow, Unjudged: true, Lost: 3, Frozen: true,
	}
	for _, r := range []*Record{full, {}, {Injections: []InjectionRecord{}, ExecutedHooks: []ExecutedHook{}, HookErrors: []string{}}} {
		var w plainWriter
		r.write(&w)
		want, err := json.Marshal(r, options)
		if w.fancy || err != nil || string(w.b) != string(want) {
			t.Errorf("plain: %t; it is written\n%s, by the codec (%v)\n%s", !w.fancy, w.b, err, want)
		}
		if data, err := Marshal(r); err != nil || string(data) != string(want) {
			t.Errorf("Marshal writes %s (%v)", data, err)
		}
	}
	room := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { _, _ = AppendRecord(room, full) }); n > 1 {
		t.Errorf("writing a record into room that is there takes %v allocations", n)
	}
	full.Content = jsontext.Value(`{"x": 1}`)
	if data, err := Marshal(full); err != nil || !jsontext.Value(data).IsValid() {
		t.Errorf("%s (%v)", data, err)
	}
}
