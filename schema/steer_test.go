package schema

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestConstructorsForLoopsMakeReadableAnswers(t *testing.T) {
	for want, r := range map[string]Result{
		`{"decision":"retry","reason":"once more","effects":[{"append_message":{"content":"Use tags."}},{"set_flag":{"tries":1}}]}`: Retried("once more",
			Append("", "Use tags."), Effect{SetFlag: map[string]jsontext.Value{"tries": jsontext.Value("1")}}),
		`{"decision":"fail","reason":"no"}`:                              Failed("no"),
		`{"decision":"stop","value":{"rows":3}}`:                         Stopped(jsontext.Value(`{"rows":3}`)),
		`{"decision":"stop","value":"a \"word\"\n"}`:                     Answered("a \"word\"\n"),
		`{"effects":[{"drop_messages":{"first":2}}]}`:                    Result{}.With(Effect{DropMessages: &DropMessages{First: 2}}),
		`{"effects":[{"append_message":{"role":"user","content":"x"}}]}`: Result{}.With(Append(RoleUser, "x")),
	} {
		got, err := Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("it is written otherwise (-want +got):\n%s", diff)
		}
		for _, e := range r.Effects {
			if _, err := ParseEffect(e); err != nil {
				t.Errorf("%s: %v", e, err)
			}
		}
	}
}

func TestATextWithInvalidUTF8IsAnAnswer(t *testing.T) {
	if r := Answered("a\xffb"); !r.Value.IsValid() || !r.Encodable() {
		t.Errorf("value %q", r.Value)
	}
}

func TestAnInvalidEffectIsAnErrorAndTheOthersStay(t *testing.T) {
	bad := Effect{SetFlag: map[string]jsontext.Value{"a": jsontext.Value("{")}}
	r := Retried("again", bad, Append("", "kept"))
	if len(r.Effects) != 1 || len(r.HookErrors) != 1 || !strings.HasPrefix(r.HookErrors[0], "an effect is not JSON") {
		t.Errorf("%+v", r)
	}
}

func TestWithDoesNotChangeItsReceiver(t *testing.T) {
	base := Result{}.With(Append("", "a"), Append("", "b"))
	base.Effects = base.Effects[:1] // with spare capacity
	one, two := base.With(Append("", "one")), base.With(Append("", "two"))
	if string(one.Effects[1]) == string(two.Effects[1]) {
		t.Errorf("both say %s", one.Effects[1])
	}
}
