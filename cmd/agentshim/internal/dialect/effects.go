package dialect

import (
	"maps"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// appended is what injections that come of effects have for their hook: a verdict
// does not say whose an effect is.
const appended = "append_message"

// effects does what hooks ask of the agent's state as far as its runtime lets
// anybody: a message to append is told like an injection, before those, and flags
// stay in the verdict for the shim to keep. What a conversation has already nobody
// can take out of it.
func (x *expressing) effects() {
	if x.can(Effects) || len(x.v.Effects) == 0 {
		return
	}
	var told []schema.Injection
	flags := map[string]jsontext.Value{}
	drops, others := false, false
	for _, raw := range x.v.Effects {
		e, err := schema.ParseEffect(raw)
		switch {
		case err != nil:
			others = true
		case e.DropMessages != nil:
			drops = true
		case e.SetFlag != nil:
			maps.Copy(flags, e.SetFlag)
		case e.AppendMessage.Role == schema.RoleAssistant:
			x.lose("the effect append_message with the role assistant")
		default:
			told = append(told, asInjection(e.AppendMessage))
		}
	}
	if drops {
		x.lose("the effect drop_messages")
	}
	if others {
		x.lose("an effect of an unknown kind")
	}
	if x.v.Effects = nil; len(flags) > 0 {
		x.v.Effects = []jsontext.Value{object(values{"set_flag": object(flags)})}
	}
	x.append(told)
}

// append tells messages to append now, or else at a later moment. The end of a
// turn is not put off for them.
func (x *expressing) append(told []schema.Injection) {
	ends := x.moment.Event == schema.BeforeFinalResponse && x.v.Decision != schema.Retry
	if len(told) == 0 {
		return
	}
	if !ends && x.can(Inject) {
		x.v.Injections = append(told, x.v.Injections...)
		return
	}
	x.later = append(told, x.later...)
}

// asInjection is a message to append as what can be told to a runtime.
func asInjection(m *schema.AppendMessage) schema.Injection {
	in := schema.Injection{Content: m.Content, Strategy: schema.ToolResult, Hook: appended}
	if m.Role == schema.RoleUser {
		in.Strategy = schema.UserMessage
	}
	return in
}

// Flags are those that a verdict which was expressed still asks to be set; null
// takes one away. Who cannot keep them has to say so.
func Flags(said *schema.Verdict) map[string]jsontext.Value {
	flags := map[string]jsontext.Value{}
	for _, raw := range said.Effects {
		if e, err := schema.ParseEffect(raw); err == nil {
			maps.Copy(flags, e.SetFlag)
		}
	}
	return flags
}
