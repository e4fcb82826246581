package gen

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

// EventTypes draws one of the ten events.
func EventTypes() *rapid.Generator[schema.EventType] { return oneOf(schema.EventTypes()...) }

// Decisions draws any decision, known or not, whether the event takes it or not.
func Decisions() *rapid.Generator[schema.Decision] {
	return oneOf(
		schema.None, schema.Continue, schema.Allow, schema.Ask, schema.Deny, schema.Retry, schema.Stop, schema.Fail,
		schema.Reject, "DENY", "perhaps", `""`,
	)
}

// Values draws JSON of every kind, few enough to collide, `{}` and null among
// them. Absent is the most likely.
func Values() *rapid.Generator[jsontext.Value] {
	texts := []string{"", "", "", "", "", "", "", "", `{}`, `{"n":1}`, `{"n":2,"s":"x"}`, `{"role":"user"}`, `{"role":"model"}`, `"text"`, `"other"`, `7`, `[1]`, `true`, `null`}
	return rapid.Map(oneOf(texts...), func(s string) jsontext.Value {
		if s == "" {
			return nil
		}
		return jsontext.Value(s)
	})
}

// Objects draws a JSON object.
func Objects() *rapid.Generator[jsontext.Value] {
	return rapid.Map(rapid.SampledFrom([]string{`{}`, `{"n":0}`, `{"n":3}`, `{"command":"ls"}`}), func(s string) jsontext.Value {
		return jsontext.Value(s)
	})
}

// Effects draws an effect, legal or in a form that no runtime can apply.
func Effects() *rapid.Generator[jsontext.Value] {
	return rapid.Map(oneOf(
		`{"append_message":{"content":"a"}}`, `{"append_message":{"role":"user","content":"b"}}`, `{"set_flag":{"f":1}}`,
		`{"set_flag":{"f":null,"g":[]}}`, `{"drop_messages":{"last":2}}`, `{"drop_messages":{"role":"tool","containing":"x","first":1}}`,
		`{"append_message":{"role":"tool","content":"c"}}`, `{"append_message":{}}`, `{"append_message":{"content":7}}`, `{"append_message":"d"}`,
		`{"set_flag":{}}`, `{"set_flag":{"":1}}`, `{"set_flag":[]}`, `{"set_flag":{"`+strings.Repeat("f", schema.MaxFlag+1)+`":1}}`,
		`{"drop_messages":{}}`, `{"drop_messages":{"first":1,"last":1}}`, `{"drop_messages":{"first":-1}}`, `{"drop_messages":{"last":1.5}}`,
		`{"drop_messages":{"role":"judge"}}`, `{"drop_messages":{"first":1,"contains":"x"}}`, `{"set_flag":{"f":1},"append_message":{"content":"e"}}`, `{"reboot":{}}`, `{}`, `{"set_flag":null}`,
		`"set_flag"`, `7`, `null`, `[{}]`,
	), func(s string) jsontext.Value { return jsontext.Value(s) })
}

func some(v jsontext.Value) bool { return v != nil }

// Injections draws content for the agent, empty content and unknown strategies among it.
func Injections() *rapid.Generator[schema.Injection] {
	return rapid.Custom(func(t *rapid.T) schema.Injection {
		return schema.Injection{
			Content:  rapid.SampledFrom([]string{"note", "warning\nof two lines", ""}).Draw(t, "content"),
			Strategy: rapid.SampledFrom([]schema.Strategy{"", schema.ToolResult, schema.UserMessage, "shout"}).Draw(t, "strategy"),
		}
	})
}

// decisionsAt draws a decision from all decisions, from those that the event permits or, half of
// the time, from those that continue the chain: otherwise most chains would end at once.
func decisionsAt(event schema.EventType) *rapid.Generator[schema.Decision] {
	mild := []schema.Decision{schema.None}
	for _, d := range event.Decisions() {
		if d == schema.Continue || d == schema.Allow || d == schema.Ask {
			mild = append(mild, d)
		}
	}
	return rapid.OneOf(Decisions(), oneOf(event.Decisions()...), oneOf(mild...), oneOf(mild...))
}

// Results draws an answer to an event. Every part may be there or absent,
// where it belongs and where it does not.
func Results(event schema.EventType) *rapid.Generator[schema.Result] {
	return rapid.Custom(func(t *rapid.T) schema.Result {
		r := schema.Result{
			Decision:   decisionsAt(event).Draw(t, "decision"),
			Reason:     rapid.SampledFrom([]string{"", "because", "no"}).Draw(t, "reason"),
			HookErrors: rapid.SliceOfN(rapid.Just("something was off"), 0, 1).Draw(t, "errors"),
			Injections: rapid.SliceOfN(Injections(), 0, 2).Draw(t, "injections"),
		}
		r.UpdatedInput = Values().Draw(t, "updated_input")
		r.UpdatedOutput = Values().Draw(t, "updated_output")
		r.Value = Values().Draw(t, "value")
		if rapid.Bool().Draw(t, "with effects") {
			r.Effects = rapid.SliceOfN(Effects(), 1, 2).Draw(t, "effects")
			if upTo(63).Draw(t, "effects' number") == 63 {
				r.Effects = slices.Repeat(r.Effects[:1], schema.MaxEffects+1)
			}
		}
		if upTo(63).Draw(t, "size") == 63 {
			r.Reason = strings.Repeat("x", schema.MaxResult+1)
		}
		return r
	})
}

// Answers draws a hook's answer: mostly a result, otherwise a failure. An error comes without a
// result, as a handler's error does.
func Answers(event schema.EventType) *rapid.Generator[model.Answer] {
	failures := []schema.OutcomeKind{
		schema.Deadline, schema.Errored, schema.NoWorker, schema.Lost, schema.Busy, schema.LoadError,
	}
	return rapid.Custom(func(t *rapid.T) model.Answer {
		if upTo(4).Draw(t, "failure") == 4 {
			return model.Answer{Kind: oneOf(failures...).Draw(t, "kind"), Error: "it broke"}
		}
		return model.Answer{Kind: schema.OK, Result: Results(event).Draw(t, "result")}
	})
}
