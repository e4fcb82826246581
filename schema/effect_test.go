package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

// flags returns the JSON of an object with n flags.
func flags(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"f%d":%d`, i, i)
	}
	return "{" + strings.Join(all, ",") + "}"
}

var legalEffects = []struct {
	is, effect string
	want       schema.Effect
}{
	{"a message", `{"append_message":{"role":"user","content":"hi"}}`, schema.Effect{AppendMessage: &schema.AppendMessage{Role: "user", Content: "hi"}}},
	{"a message without a role is the system's", `{"append_message":{"content":"hi"}}`, schema.Effect{AppendMessage: &schema.AppendMessage{Content: "hi"}}},
	{"unknown members are ignored", `{"append_message":{"role":"assistant","content":"hi","name":"x"}}`,
		schema.Effect{AppendMessage: &schema.AppendMessage{Role: "assistant", Content: "hi"}}},
	{"a null role counts as absent", `{"append_message":{"role":null,"content":"hi"}}`, schema.Effect{AppendMessage: &schema.AppendMessage{Content: "hi"}}},
	{"flags of any value", `{"set_flag":{"a":1,"b":{"c":[]}}}`, schema.Effect{SetFlag: map[string]jsontext.Value{"a": raw("1"), "b": raw(`{"c":[]}`)}}},
	{"a flag taken away", `{"set_flag":{"a":null}}`, schema.Effect{SetFlag: map[string]jsontext.Value{"a": raw("null")}}},
	{"the last messages", `{"drop_messages":{"last":2}}`, schema.Effect{DropMessages: &schema.DropMessages{Last: 2}}},
	{"the first results with a text", `{"drop_messages":{"first":1,"role":"tool","containing":"x"}}`,
		schema.Effect{DropMessages: &schema.DropMessages{First: 1, Role: "tool", Containing: "x"}}},
	{"all of the system's", `{"drop_messages":{"role":"system"}}`, schema.Effect{DropMessages: &schema.DropMessages{Role: "system"}}},
}

func TestEffectsAreRead(t *testing.T) {
	for _, c := range legalEffects {
		t.Run(c.is, func(t *testing.T) {
			got, err := schema.ParseEffect(raw(c.effect))
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

var illegalEffects = []struct{ is, effect, want string }{
	{"nothing", ``, "an effect is a JSON object such as"},
	{"a text", `"set_flag"`, "not a string"},
	{"a list", `[{"set_flag":{"a":1}}]`, "not a list"},
	{"an empty object", `{}`, "has one member, append_message, set_flag or drop_messages, and this one has 0"},
	{"two effects in one", `{"set_flag":{"a":1},"append_message":{"content":"x"}}`, "and this one has 2"},
	{"one effect twice", `{"set_flag":{"a":1},"set_flag":{"a":2}}`, "the effect is not valid JSON"},
	{"a broken object", `{"set_flag":{"a":1}`, "the effect is not valid JSON"},
	{"another name", `{"reboot":{}}`, `there is no effect "reboot"; write append_message, set_flag or drop_messages`},
	{"a name in capitals", `{"Set_Flag":{"a":1}}`, `there is no effect "Set_Flag"`},
	{"a text for a message", `{"append_message":"hi"}`, "append_message is a string; write an object such as"},
	{"null for a message", `{"append_message":null}`, "append_message is null"},
	{"no content", `{"append_message":{"role":"user"}}`, "append_message has no content; write the text"},
	{"content that is no text", `{"append_message":{"content":7}}`, "the effect's append_message.content is"},
	{"a tool's message", `{"append_message":{"role":"tool","content":"x"}}`, `append_message has the role "tool"; write system, user or assistant`},
	{"no flags", `{"set_flag":{}}`, "set_flag sets 0 flags; set 1 to 256"},
	{"too many flags", `{"set_flag":` + flags(schema.MaxFlags+1) + `}`, "set_flag sets 257 flags"},
	{"a flag without a name", `{"set_flag":{"":1}}`, "set_flag has a name of 0 bytes; write 1 to 128"},
	{"too long a name", `{"set_flag":{"` + strings.Repeat("f", schema.MaxFlag+1) + `":1}}`, "set_flag has a name of 129 bytes"},
	{"too long a flag", `{"set_flag":{"f":"` + strings.Repeat("f", schema.MaxFlagValue) + `"}}`, `the flag "f" has 16386 bytes; write at most 16384`},
	{"a drop of nothing", `{"drop_messages":{}}`, "drop_messages picks nothing; write first, last, role or containing"},
	{"a drop from both ends", `{"drop_messages":{"first":1,"last":1}}`, "drop_messages has first and last; write one of them"},
	{"a drop with an unknown member", `{"drop_messages":{"first":1,"contains":"x"}}`, `drop_messages has no "contains"; write first, last, role or containing`},
	{"a count below 0", `{"drop_messages":{"first":-1}}`, "drop_messages counts from 1"},
	{"a count that is no whole number", `{"drop_messages":{"last":1.5}}`, "the effect's drop_messages.last is"},
	{"a drop of an unknown role", `{"drop_messages":{"role":"judge"}}`, `drop_messages has the role "judge"; write system, user, assistant or tool`},
}

func TestInvalidEffectsAreErrors(t *testing.T) {
	for _, c := range illegalEffects {
		t.Run(c.is, func(t *testing.T) {
			if _, err := schema.ParseEffect(raw(c.effect)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

func TestAnEffectOfAProgramIsChecked(t *testing.T) {
	if err := new(schema.Effect).Check(); err == nil || !strings.Contains(err.Error(), "this one has none") {
		t.Errorf("the zero effect: %v", err)
	}
	two := schema.Effect{SetFlag: map[string]jsontext.Value{"a": raw("1")}, AppendMessage: &schema.AppendMessage{Content: "x"}}
	if err := two.Check(); err == nil || !strings.Contains(err.Error(), "this one has 2") {
		t.Errorf("two in one: %v", err)
	}
}

// An effect of a program that passes its check is decoded without a difference.
func TestAValidEffectDecodesUnchanged(t *testing.T) {
	roles := rapid.SampledFrom([]string{"", "system", "user", "assistant", "tool", "judge"})
	texts := rapid.SampledFrom([]string{"", "a", "ä\n\"", strings.Repeat("x", 1000)})
	counts := rapid.IntRange(-1, 3)
	values := rapid.SampledFrom([]jsontext.Value{raw("null"), raw("1"), raw(`{"a":[]}`), raw(`"x"`)})
	rapid.Check(t, func(t *rapid.T) {
		var e schema.Effect
		switch rapid.SampledFrom([]string{"append_message", "set_flag", "drop_messages"}).Draw(t, "effect") {
		case "append_message":
			e.AppendMessage = &schema.AppendMessage{Role: roles.Draw(t, "role"), Content: texts.Draw(t, "content")}
		case "set_flag":
			e.SetFlag = rapid.MapOfN(texts, values, 1, 3).Draw(t, "flags")
		default:
			e.DropMessages = &schema.DropMessages{
				First: counts.Draw(t, "first"), Last: counts.Draw(t, "last"), Role: roles.Draw(t, "role"), Containing: texts.Draw(t, "containing"),
			}
		}
		data, err := schema.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := schema.ParseEffect(data)
		if checked := e.Check(); (checked == nil) != (err == nil) {
			t.Fatalf("%s: its check says %v, its reader %v", data, checked, err)
		}
		if diff := cmp.Diff(e, got); err == nil && diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// An accepted effect can be encoded, and decodes to the same effect.
func FuzzParseEffect(f *testing.F) {
	for _, c := range legalEffects {
		f.Add([]byte(c.effect))
	}
	for _, c := range illegalEffects {
		f.Add([]byte(c.effect))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := schema.ParseEffect(data)
		if err != nil {
			if s := err.Error(); s == "" || len(s) > 4096 {
				t.Fatalf("the sentence has %d bytes", len(s))
			}
			return
		}
		again, err := schema.ParseEffect(stable(t, &e, new(schema.Effect)))
		if err != nil {
			t.Fatalf("what was accepted is refused when it is written: %v", err)
		}
		if got, want := members(&again), members(&e); got != want {
			t.Fatalf("%s became %s", want, got)
		}
	})
}

// members names the set members of e.
func members(e *schema.Effect) string {
	return fmt.Sprint(e.AppendMessage != nil, e.SetFlag != nil, e.DropMessages != nil, len(e.SetFlag))
}
