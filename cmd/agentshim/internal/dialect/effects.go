package dialect

import (
	"maps"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// appended is the hook name of injections that come from effects. A verdict does not name the hook of
// an effect.
const appended = "append_message"

// effects converts effects, as far as the runtime allows. A message to append becomes an injection
// before the others. Flags stay in the verdict, and the shim stores them. No runtime lets a hook
// remove messages.
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

// append injects messages now, or else at a later moment. They do not put off the end of a turn.
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

// asInjection returns a message to append as an injection.
func asInjection(m *schema.AppendMessage) schema.Injection {
	in := schema.Injection{Content: m.Content, Strategy: schema.ToolResult, Hook: appended}
	if m.Role == schema.RoleUser {
		in.Strategy = schema.UserMessage
	}
	return in
}

// Flags returns the flags that an expressed verdict sets; null removes one. A shim that cannot store
// them must report that.
func Flags(said *schema.Verdict) map[string]jsontext.Value {
	flags := map[string]jsontext.Value{}
	for _, raw := range said.Effects {
		if e, err := schema.ParseEffect(raw); err == nil {
			maps.Copy(flags, e.SetFlag)
		}
	}
	return flags
}
