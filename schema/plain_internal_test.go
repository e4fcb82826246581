package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// plainTexts draws strings, most of which are plain.
func plainTexts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "", "a", "allow", "worker-1", "<&>", "a b", "\x7f", "µ", "…", "\u2028", "\"", "\\", "\n", "\xff", "},{"}),
		rapid.StringMatching(`[ -~]{0,20}`))
}

func durations() *rapid.Generator[Duration] {
	return rapid.Map(rapid.Int64Range(-1, int64(time.Hour)), func(n int64) Duration { return Duration(n) })
}

// seldom draws a value that is usually absent.
func seldom(t *rapid.T, what string) jsontext.Value {
	if rapid.IntRange(0, 30).Draw(t, what) > 0 {
		return nil
	}
	return jsontext.Value(`{"a":1}`)
}

func genOutcome(t *rapid.T) Outcome {
	return Outcome{
		Hook: rapid.IntRange(-1, 1_000_000).Draw(t, "hook"), Kind: OutcomeKind(plainTexts().Draw(t, "kind")), Error: plainTexts().Draw(t, "error"),
		Took: durations().Draw(t, "took"), Worker: plainTexts().Draw(t, "worker"),
		Result: Result{
			Decision: Decision(plainTexts().Draw(t, "decision")), Reason: plainTexts().Draw(t, "reason"),
			UpdatedInput: seldom(t, "input"), Value: seldom(t, "value"),
		},
	}
}

func genReply(t *rapid.T) *BatchReply {
	return &BatchReply{
		Worker: plainTexts().Draw(t, "worker"), Status: Status(plainTexts().Draw(t, "status")), Error: plainTexts().Draw(t, "error"),
		Outcomes: rapid.SliceOfN(rapid.Custom(genOutcome), 0, 4).Draw(t, "outcomes"),
	}
}

func genExecuted(t *rapid.T) ExecutedHook {
	return ExecutedHook{
		Hook: plainTexts().Draw(t, "hook"), Decision: Decision(plainTexts().Draw(t, "decision")), Reason: plainTexts().Draw(t, "reason"),
		Outcome: OutcomeKind(plainTexts().Draw(t, "outcome")), Duration: durations().Draw(t, "duration"),
		Worker: plainTexts().Draw(t, "worker"), Mode: Mode(plainTexts().Draw(t, "mode")), Error: plainTexts().Draw(t, "error"),
	}
}

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

func genVerdict(t *rapid.T) *Verdict {
	v := &Verdict{
		Decision: Decision(plainTexts().Draw(t, "decision")), Reason: plainTexts().Draw(t, "reason"), AutoApprove: rapid.Bool().Draw(t, "auto"),
		UpdatedInput: seldom(t, "input"), ExecutedHooks: rapid.SliceOfN(rapid.Custom(genExecuted), 0, 4).Draw(t, "executed"),
		ConfigVersion: rapid.Uint64Range(0, 3).Draw(t, "version"), Fabric: plainTexts().Draw(t, "fabric"),
		Frozen: rapid.Bool().Draw(t, "frozen"), FreezeVersion: rapid.Uint64Range(0, 3).Draw(t, "freeze version"),
	}
	if rapid.IntRange(0, 20).Draw(t, "acked") == 0 {
		v.Acked = []string{"e"}
	}
	return v
}

// genEvent draws an event whose members are in any form that senders choose.
func genEvent(t *rapid.T) *Event {
	values := rapid.SampledFrom([]jsontext.Value{
		nil, nil, jsontext.Value(`null`), jsontext.Value(`{}`), jsontext.Value(`"a"`), jsontext.Value(`{"b":1,"a":[1.5e3,{"a":null}]}`), jsontext.Value(`{"a":{"b":1,"a":2,"b":3}}`),
		jsontext.Value(`{"\u0061":1,"a":2}`), jsontext.Value(`{"file":"µ\n\u00b5\ud800"}`), jsontext.Value(`-1`), jsontext.Value(`{ "a" : [ ] }`),
		jsontext.Value(`{"command":"a\n\t\"\\µ\u2028` + "\x7f" + `","n":[1.50,-0,1e999,true]}`), jsontext.Value(`"\/"`), jsontext.Value(`1 `), jsontext.Value(`{"a":"\u001f"}`), jsontext.Value(""), jsontext.Value("{"), jsontext.Value("\"\xff\""),
	})
	texts := rapid.StringMatching(`[ !#-Z]{0,9}`)
	if rapid.IntRange(0, 2).Draw(t, "any texts") == 0 {
		texts = plainTexts()
	} else {
		values = rapid.SampledFrom([]jsontext.Value{nil, jsontext.Value(`{"b":"a\n","a":[1.5]}`)})
	}
	text := func(what string) string { return texts.Draw(t, what) }
	e := &Event{
		HookType: EventType(text("type")), SessionID: text("session"), Timestamp: genTime(t), ToolName: text("tool"),
		ToolArgs: values.Draw(t, "args"), ToolInput: values.Draw(t, "input"), Prompt: text("prompt"), Iteration: rapid.IntRange(-1, 3).Draw(t, "iteration"),
		Flags: values.Draw(t, "flags"), Cwd: text("cwd"), Native: text("native"),
	}
	if rapid.Bool().Draw(t, "labels") {
		e.Labels = rapid.MapOfN(texts, texts, 0, 3).Draw(t, "all labels")
	}
	return e
}

// rawMembers returns the members of an event as JSON, without a check.
func rawMembers(t *rapid.T, e *Event) []string {
	var all []string
	add := func(name string, v any) {
		data, err := json.Marshal(v, options)
		if err != nil {
			return
		}
		all = append(all, `"`+name+`"`+rapid.SampledFrom([]string{":", " : ", ":\n"}).Draw(t, "colon")+string(data))
	}
	add("hook_type", e.HookType)
	add("session_id", e.SessionID)
	add("timestamp", e.Timestamp)
	add("tool_name", e.ToolName)
	add("prompt", e.Prompt)
	add("iteration", e.Iteration)
	add("cwd", e.Cwd)
	add("native", e.Native)
	add("labels", e.Labels)
	for name, v := range map[string]jsontext.Value{"tool_args": e.ToolArgs, "tool_input": e.ToolInput, "flags": e.Flags} {
		if v != nil {
			all = append(all, `"`+name+`":`+string(v))
		}
	}
	slices.Sort(all)
	return rapid.Permutation(all).Draw(t, "order")
}

func TestPlainEventsAgreeWithTheCodec(t *testing.T) {
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		members := rawMembers(t, genEvent(t))
		members = members[:rapid.IntRange(0, len(members)).Draw(t, "members")]
		switch rapid.IntRange(0, 20).Draw(t, "odd") {
		case 0:
			members = append(members, `"unknown":1`)
		case 1:
			members = append(members, `"cwd":"twice"`)
		}
		data := []byte("{" + strings.Join(members, rapid.SampledFrom([]string{",", ", ", " ,"}).Draw(t, "comma")) + "}" + rapid.SampledFrom([]string{"", "\n", "x"}).Draw(t, "end"))
		if rapid.IntRange(0, 5).Draw(t, "damage") == 0 {
			i := rapid.IntRange(0, len(data)-1).Draw(t, "place")
			data[i] = rapid.SampledFrom([]byte(`{}[]",:\0a`+"\xff")).Draw(t, "byte")
		}
		sameRead[Event](t, data)
		if readPlain(data, new(Event)) {
			plain++
		}
	})
	if plain == 0 {
		t.Error("none was plain")
	}
}

// written compares the plain encoding of v with the codec's, and reports whether it was used.
func written[T any](t failer, v *T) bool {
	t.Helper()
	want, wantErr := json.Marshal(v, options)
	got, err := AppendJSON([]byte("before"), v)
	if (err == nil) != (wantErr == nil) || err == nil && string(got) != "before"+string(want) {
		t.Fatalf("it is written\n%s (%v), by the codec\n%s (%v)", got, err, want, wantErr)
	}
	sameRead[T](t, want)
	_, plain := appendPlain(nil, v)
	return plain
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sameRead compares the plain decoding of data with the codec's.
func sameRead[T any](t failer, data []byte) {
	var got, want T
	gotErr, wantErr := Unmarshal(data, &got), json.Unmarshal(data, &want, options)
	if (gotErr == nil) != (wantErr == nil) || gotErr == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%s is read as\n%+v (%v), by the codec as\n%+v (%v)", data, got, gotErr, want, wantErr)
	}
}

func TestPlainMessagesAgreeWithTheCodec(t *testing.T) {
	plain := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for name, used := range map[string]bool{"reply": written(t, genReply(t)), "verdict": written(t, genVerdict(t)), "record": written(t, genRecord(t)), "event": written(t, genEvent(t))} {
			if used {
				plain[name]++
			}
		}
	})
	if len(plain) < 4 {
		t.Errorf("only these were plain: %v", plain)
	}
}

// TestCommonMessagesArePlain checks that the fast path is used.
func TestCommonMessagesArePlain(t *testing.T) {
	reply := &BatchReply{Worker: "host-1", Outcomes: []Outcome{
		{Hook: 0, Result: Allowed(), Took: Duration(1500)}, {Hook: 3, Result: Denied("no such luck"), Took: Duration(time.Second)},
		{Hook: 4, Kind: Busy, Error: "all slots are taken"}, {Hook: 5},
	}}
	verdict := &Verdict{Decision: Deny, Reason: "no such luck", ConfigVersion: 7, Fabric: "f", ExecutedHooks: []ExecutedHook{
		{Hook: "a", Decision: Allow, Outcome: OK, Duration: Duration(1500), Worker: "host-1", Mode: Enforce},
		{Hook: "b", Decision: Deny, Reason: "no such luck", Outcome: OK},
	}}
	for _, v := range []any{reply, verdict} {
		data, ok := appendPlain(nil, v)
		if !ok {
			t.Fatalf("%+v is not written as plain", v)
		}
		into := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if !readPlain(data, into) || !reflect.DeepEqual(into, v) {
			t.Errorf("%s is not read as plain: %+v", data, into)
		}
	}
	for _, r := range []*Record{fullRecord(), {}, {Injections: []InjectionRecord{}, ExecutedHooks: []ExecutedHook{}, HookErrors: []string{}}} {
		if !written(t, r) {
			t.Errorf("%+v is not written as plain", r)
		}
	}
}

// TestEventsArePlain checks events as the client, and a program in Python, write them.
func TestEventsArePlain(t *testing.T) {
	for _, s := range []string{
		`{"hook_type":"PreToolUse","event_id":"e","session_id":"s","agent_id":"a","runtime":"claude","timestamp":"2026-11-26T10:00:00.123Z","tool_name":"Edit","tool_kind":"file.write",` +
			`"tool_args":{"path":"/tmp/x"},"tool_input":{"file_path":"/tmp/x","old_string":"a\n\t\u00b5","new_string":"µ"},"tool_use_id":"t","cwd":"/tmp","labels":{"host":"h"}}`,
		`{"hook_type": "UserPromptSubmit", "prompt": "say \"hello\",\nthen stop", "flags": {"a": [1, 2]}, "iteration": 3}`,
	} {
		if !readPlain([]byte(s), new(Event)) {
			t.Errorf("%s is not read as plain", s)
		}
		sameRead[Event](t, []byte(s))
		e, err := ReadEvent([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		if e.Prompt, e.ToolInput = "", jsontext.Value(`{"command":"a\n\"b\"","n":1.5}`); !written(t, e) && e.Flags == nil {
			t.Errorf("%s is not written as plain", s)
		}
	}
}

// TestValuesOfAnEventShareNoMemory checks that a hook can change a value in place.
func TestValuesOfAnEventShareNoMemory(t *testing.T) {
	data := []byte(`{"tool_name":"Bash","tool_input":{"b":1,"a":2}}`)
	want := string(data)
	e, err := ReadEvent(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ToolInput.Canonicalize(); err != nil || string(data) != want || e.ToolName != "Bash" {
		t.Errorf("the message is %s, the event %+v (%v)", data, e, err)
	}
}

// fullRecord returns a record with all members that can be plain.
func fullRecord() *Record {
	hooks := []ExecutedHook{{Hook: "a", Decision: Deny, Reason: "no such luck", Outcome: OK, Duration: 1500, Worker: "host-1", Mode: Enforce}, {Hook: "b", Outcome: Errored, Error: "e"}}
	return &Record{
		Time: time.Date(2026, 11, 21, 10, 0, 0, 250_000_000, time.UTC), EventID: "id", TraceID: "0af7651916cd43dd", Attempt: 2, Event: PreToolUse, Agent: "a", Session: "s", Runtime: "claude", Host: "h",
		Broker: "b", Tool: "Bash", ToolKind: "shell", InputHash: "sha256-0", Decision: Deny, Reason: "no such luck", Rewritten: true,
		Injections:    []InjectionRecord{{Hook: "a", Source: "ci", Strategy: ToolResult, Length: 3, Sequence: 4}, {Source: "ci"}, {}},
		ExecutedHooks: hooks, HookErrors: []string{"one", "two"}, ConfigVersion: 7, Took: Duration(time.Millisecond), Failed: FailedClosed,
		Shed: true, Malformed: true, Aside: true, Would: Allow, Unjudged: true, Lost: 3, Frozen: true,
	}
}

// TestReadingPlainKeepsAbsentMembers checks that decoding merges into the value, like the
// codec's.
func TestReadingPlainKeepsAbsentMembers(t *testing.T) {
	got, want := Verdict{Fabric: "f", Reason: "r"}, Verdict{Fabric: "f", Reason: "r"}
	data := []byte(`{"decision":"deny"}`)
	if err := Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want, options); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v; the codec makes it %+v (%v)", got, want, err)
	}
}

// TestReadingPlainReusesMemory checks that nothing of the old elements remains in a list.
func TestReadingPlainReusesMemory(t *testing.T) {
	old := []Outcome{{Hook: 1, Error: "e", Result: Denied("r")}, {Hook: 2, Worker: "w"}}
	got := BatchReply{Outcomes: old}
	want := []Outcome{{Hook: 7}, {Hook: 8}}
	if !readPlain([]byte(`{"worker":"w","outcomes":[{"hook":7},{"hook":8}]}`), &got) || !reflect.DeepEqual(got.Outcomes, want) || &got.Outcomes[0] != &old[0] {
		t.Errorf("it is read as %+v", got)
	}
	if !readPlain([]byte(`{"worker":"w","outcomes":[{"hook":7},{"hook":8},{"hook":9}]}`), &got) || len(got.Outcomes) != 3 || got.Outcomes[2].Hook != 9 {
		t.Errorf("it is read as %+v", got)
	}
}

// TestATypeThatEmbedsAPlainValueIsComplete checks types that embed a verdict, because
// they have its methods.
func TestATypeThatEmbedsAPlainValueIsComplete(t *testing.T) {
	type answer struct {
		EventID string `json:"event_id"`
		*Verdict
		Answered bool `json:"answered"`
	}
	const want = `{"event_id":"e","decision":"deny","answered":true}`
	data, err := Marshal(&answer{EventID: "e", Verdict: &Verdict{Decision: Deny}, Answered: true})
	if err != nil || string(data) != want {
		t.Errorf("it is written %s (%v); want %s", data, err, want)
	}
	var back answer
	if err := Unmarshal(data, &back); err != nil || !back.Answered || back.EventID != "e" || back.Decision != Deny {
		t.Errorf("it is read as %+v (%v)", back, err)
	}
	var none *Verdict
	if data, err := Marshal(none); err != nil || string(data) != "null" {
		t.Errorf("no verdict is written %s (%v)", data, err)
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{
		`{"worker":"w","outcomes":[{"hook":0,"result":{"decision":"allow"},"took":"1.5µs"}]}`,
		`{"worker":"w","status":"busy","error":"e"}`, `{"worker":"w","outcomes":[{"hook":01}]}`, `{"worker":"w","outcomes":[]}`,
		`{"decision":"allow","executed_hooks":[{"hook":"a","decision":"allow","outcome":"ok","duration":"2s"}],"config_version":1,"fabric":"f"}`,
		`{"hook_type":"PreToolUse","timestamp":"2026-11-26T10:00:00.5Z","tool_name":"Bash","tool_input":{"command":"ls","a":[1]},"labels":{"host":"h"}}`,
		`{ "prompt" : "a\nb" , "iteration" : 3 , "tool_input" : { "b" : 1 , "a" : 2 } }`,
		`{"decision":"deny","reason":"r","auto_approve":true}`, `{"decision":"deny","decision":"allow"}`, `{"decision":"deny"} `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sameRead[BatchReply](t, data)
		sameRead[Verdict](t, data)
		sameRead[Event](t, data)
	})
}
