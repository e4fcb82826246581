package schema

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Retried is the answer of a hook that sends the model back to work: the reason
// is what it is told, the effects are what makes the next attempt better. Only
// events that know a retry take it.
func Retried(reason string, effects ...Effect) Result {
	return Result{Decision: Retry, Reason: reason}.With(effects...)
}

// Failed is the answer of a hook that ends the query as a failure, with the reason.
func Failed(reason string) Result { return Result{Decision: Fail, Reason: reason} }

// Stopped is the answer of a hook that ends what is under way with a value of its
// own: a message, or before a tool call the tool's result.
func Stopped(value jsontext.Value) Result { return Result{Decision: Stop, Value: value} }

// Answered is the answer of a hook that ends what is under way with a model's
// message that is this text.
func Answered(text string) Result {
	// A text is always JSON; what is not UTF-8 in it is replaced.
	v, _ := jsontext.AppendQuote(nil, text)
	return Stopped(v)
}

// With is r with effects behind those that it has. One that can not be written
// as JSON is an error of the hook, as is one that is refused.
func (r Result) With(effects ...Effect) Result {
	// The backing array may be another result's.
	r.Effects = slices.Clip(r.Effects)
	for i := range effects {
		v, err := Marshal(&effects[i])
		if err != nil {
			r.HookErrors = append(slices.Clip(r.HookErrors), "an effect is no JSON: "+err.Error())
			continue
		}
		r.Effects = append(r.Effects, v)
	}
	return r
}

// Append is the effect that adds a message to the agent's conversation; an empty
// role is system.
func Append(role, content string) Effect {
	return Effect{AppendMessage: &AppendMessage{Role: role, Content: content}}
}
