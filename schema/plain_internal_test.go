package schema

import (
	"reflect"
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

// sameAsTheCodec compares the plain encoding and decoding of v with the codec's.
func sameAsTheCodec[T any](t *rapid.T, v *T) {
	want, err := json.Marshal(v, options)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Marshal(v)
	if err != nil || string(got) != string(want) {
		t.Fatalf("it is written\n%s (%v), by the codec\n%s", got, err, want)
	}
	sameRead[T](t, want)
}

type failer interface {
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

func TestPlainValuesAgreeWithTheCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sameAsTheCodec(t, genReply(t))
		sameAsTheCodec(t, genVerdict(t))
	})
}

// TestCommonRepliesArePlain checks that the fast path is used.
func TestCommonRepliesArePlain(t *testing.T) {
	reply := &BatchReply{Worker: "host-1", Outcomes: []Outcome{
		{Hook: 0, Result: Allowed(), Took: Duration(1500)}, {Hook: 3, Result: Denied("no such luck"), Took: Duration(time.Second)},
		{Hook: 4, Kind: Busy, Error: "all slots are taken"}, {Hook: 5},
	}}
	verdict := &Verdict{Decision: Deny, Reason: "no such luck", ConfigVersion: 7, Fabric: "f", ExecutedHooks: []ExecutedHook{
		{Hook: "a", Decision: Allow, Outcome: OK, Duration: Duration(1500), Worker: "host-1", Mode: Enforce},
		{Hook: "b", Decision: Deny, Reason: "no such luck", Outcome: OK},
	}}
	for _, v := range []plainValue{reply, verdict} {
		data, ok := v.appendPlain(nil)
		if !ok {
			t.Fatalf("%+v is not written as plain", v)
		}
		into := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if !into.(plainValue).readPlain(data) || !reflect.DeepEqual(into, v) {
			t.Errorf("%s is not read as plain: %+v", data, into)
		}
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
		`{"decision":"deny","reason":"r","auto_approve":true}`, `{"decision":"deny","decision":"allow"}`, `{"decision":"deny"} `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sameRead[BatchReply](t, data)
		sameRead[Verdict](t, data)
	})
}
