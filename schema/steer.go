package schema

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Retried returns the answer of a hook that sends the model back to work. The model reads the
// reason. The effects prepare the next attempt. Only events that permit a retry accept it.
func Retried(reason string, effects ...Effect) Result {
	return Result{Decision: Retry, Reason: reason}.With(effects...)
}

// Failed returns the answer of a hook that ends the query as a failure.
func Failed(reason string) Result { return Result{Decision: Fail, Reason: reason} }

// Stopped returns the answer of a hook that ends the current step with a value: a message, or
// before a tool call the tool's result.
func Stopped(value jsontext.Value) Result { return Result{Decision: Stop, Value: value} }

// Answered returns the answer of a hook that ends the current step with this text as the
// model's message.
func Answered(text string) Result {
	// Encoding a text cannot fail; invalid UTF-8 in it is replaced.
	v, _ := jsontext.AppendQuote(nil, text)
	return Stopped(v)
}

// With returns r with further effects. An effect that cannot be encoded, or that [Effect.Check]
// rejects, becomes an error of the hook.
func (r Result) With(effects ...Effect) Result {
	// The backing array may belong to another result.
	r.Effects = slices.Clip(r.Effects)
	for i := range effects {
		v, err := Marshal(&effects[i])
		if err != nil {
			r.HookErrors = append(slices.Clip(r.HookErrors), "an effect is not JSON: "+err.Error())
			continue
		}
		r.Effects = append(r.Effects, v)
	}
	return r
}

// Append returns the effect that adds a message to the agent's conversation; role "" is system.
func Append(role, content string) Effect {
	return Effect{AppendMessage: &AppendMessage{Role: role, Content: content}}
}
