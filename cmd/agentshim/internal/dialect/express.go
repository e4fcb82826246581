package dialect

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Express turns a verdict into one that the moment supports. It emulates or reports each part that the
// protocol lacks, and drops nothing silently. Lost are sentences about the impossible parts. Later are
// injections for the moment after the tool call.
func Express(m Moment, v *schema.Verdict) (said *schema.Verdict, later []schema.Injection, lost []string) {
	out := *v
	x := expressing{moment: m, v: &out}
	x.stopped()
	x.decision()
	x.message()
	x.rewrites()
	x.restart()
	x.injections()
	x.effects() // before the injections of hooks
	return x.v, x.later, x.lost
}

type expressing struct {
	moment Moment
	v      *schema.Verdict
	later  []schema.Injection
	lost   []string
}

func (x *expressing) can(a Ability) bool { return x.moment.Can[a] == Native }

func (x *expressing) lose(what string) {
	x.lost = append(x.lost, what+" is not possible in this runtime at "+x.moment.Name)
}

// stopped converts a stop after a tool call or a query, which ends only the chain of hooks, to another output.
func (x *expressing) stopped() {
	v, r := x.v, x.moment.Event.Rewrites()
	if v.Value == nil || x.can(Effects) || r != schema.RewriteOutput && r != schema.RewriteResponse {
		return
	}
	if r == schema.RewriteOutput {
		v.UpdatedOutput, v.Value = v.Value, nil
	}
	if v.Decision == schema.Stop {
		v.Decision, v.Reason = schema.Continue, ""
	}
}

// refusing returns the decision that refuses at the moment; None: the moment cannot refuse.
func (x *expressing) refusing() schema.Decision {
	if x.moment.Can[Deny] == Impossible {
		return schema.None
	}
	return x.moment.Event.Blocking()
}

func (x *expressing) decision() {
	v := x.v
	if t := v.Terminate; t != nil && !x.can(Stop) {
		// The moment cannot end the run. It refuses the call if it can, and so does each later one.
		if b := x.refusing(); b != schema.None && !x.moment.Event.Terminal(v.Decision) {
			v.Decision, v.Reason = b, cmp.Or(t.Reason, "this run must end now; make no more tool calls")
		} else if b == schema.None {
			x.lose("ending the run")
		}
	}
	switch v.Decision {
	case schema.Ask:
		if !x.can(Ask) {
			v.Decision = schema.Deny
			v.Reason = "a person must approve this call, and this runtime cannot ask one here; ask the operator to allow the call in the policy. Reason: " +
				cmp.Or(v.Reason, "a hook requires approval")
			if x.refusing() == schema.None {
				x.lose("a deny")
			}
		}
	case schema.Stop, schema.Fail:
		if x.moment.Event == schema.PreToolUse && !x.can(Stop) {
			v.Reason = strings.TrimSpace(cmp.Or(v.Reason, "a hook stopped the call") + "\n" + Text(v.Value))
			v.Decision, v.Value = schema.Deny, nil
		} else if !x.can(Stop) && !x.can(Feedback) {
			x.lose("the decision " + string(v.Decision))
		}
	case schema.Deny:
		if x.moment.Event.Blocking() == schema.Deny && x.refusing() == schema.None {
			x.lose("a deny")
		} else if x.moment.Event.Blocking() != schema.Deny && x.moment.Can[Feedback] == Impossible {
			x.lose("a deny's reason")
		}
	case schema.Retry:
		if x.moment.Can[Retry] == Impossible {
			x.lose("a retry")
		}
	}
}

// message reports that the moment cannot replace the agent's message, or make its tool calls.
func (x *expressing) message() {
	r := x.moment.Event.Rewrites()
	stopped := x.v.Decision == schema.Stop && x.moment.Event.StopValue() == schema.MessageValue
	if x.v.Value != nil && (stopped || r == schema.RewriteMessage || r == schema.RewriteResponse) && x.moment.Can[Replace] == Impossible {
		x.lose("replacing the agent's message")
	} else if m, err := schema.ReadMessage(x.v.Value); stopped || r == schema.RewriteMessage {
		if err == nil && len(m.ToolCalls) > 0 && !x.can(Effects) {
			x.lose("a tool call in a hook's message")
		}
	}
}

// insteadOf returns the text that informs the model of an output that the runtime cannot replace.
func insteadOf(output []byte) string {
	return "A hook replaces the output above with this one:\n" + Text(output)
}

func (x *expressing) rewrites() {
	v := x.v
	if v.UpdatedInput != nil && x.moment.Can[Rewrite] == Impossible {
		v.UpdatedInput = nil
		if b := x.refusing(); b != schema.None && !x.moment.Event.Terminal(v.Decision) {
			// A call that a policy rewrites must not run unchanged.
			v.Decision = schema.Deny
			v.Reason = "a hook rewrites this call, but this runtime cannot run a rewritten call; make the call in a form that the policy accepts unchanged"
		} else if b == schema.None {
			x.lose("a rewritten input")
		}
	}
	if v.UpdatedOutput != nil && x.moment.Can[Replace] == Impossible {
		v.Injections = append(slices.Clip(v.Injections),
			schema.Injection{Content: insteadOf(v.UpdatedOutput), Strategy: schema.ToolResult})
		v.UpdatedOutput = nil
		x.lose("hiding the tool's own output") // an injection holds the new output
	}
}

// restart converts a restart to an injection if the runtime cannot restart a turn.
func (x *expressing) restart() {
	if r := x.v.Restart; r != nil && !x.can(Restart) {
		text := cmp.Or(r.Content, r.Reason)
		x.v.Restart = nil
		x.v.Injections = append(slices.Clip(x.v.Injections), schema.Injection{Content: text, Strategy: schema.UserMessage})
	}
}

func (x *expressing) injections() {
	if len(x.v.Injections) == 0 || x.can(Inject) {
		return
	}
	if x.moment.Can[Inject] == Emulated {
		x.later = x.v.Injections
	} else {
		x.lose("injecting text")
	}
	x.v.Injections = nil
}

func messageText(v jsontext.Value) string {
	if m, err := schema.ReadMessage(v); err == nil && (m.Content != "" || len(m.ToolCalls) > 0) {
		return m.Content
	}
	return Text(v)
}

// effects converts effects, as far as the runtime allows. A message to append becomes an injection before the
// others. Flags stay in the verdict, and the shim stores them.
func (x *expressing) effects() {
	if x.can(Effects) || len(x.v.Effects) == 0 {
		return
	}
	var told []schema.Injection
	flags := Flags(x.v)
	drops, others := false, false
	for _, raw := range x.v.Effects {
		e, err := schema.ParseEffect(raw)
		switch {
		case err != nil:
			others = true
		case e.DropMessages != nil:
			drops = true
		case e.SetFlag != nil:
		case e.AppendMessage.Role == schema.RoleAssistant:
			x.lose("the effect append_message with the role assistant")
		default:
			in := schema.Injection{Content: e.AppendMessage.Content, Strategy: schema.ToolResult, Hook: "append_message"} // a verdict does not name the hook of an effect
			if e.AppendMessage.Role == schema.RoleUser {
				in.Strategy = schema.UserMessage
			}
			told = append(told, in)
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
	ends := x.moment.Event == schema.BeforeFinalResponse && x.v.Decision != schema.Retry
	if !ends && x.can(Inject) { // they do not put off the end of a turn
		x.v.Injections = append(told, x.v.Injections...)
	} else {
		x.later = append(told, x.later...)
	}
}

// Flags returns the flags that an expressed verdict sets, for the shim to store; null removes one.
func Flags(said *schema.Verdict) map[string]jsontext.Value {
	flags := map[string]jsontext.Value{}
	for _, raw := range said.Effects {
		if e, err := schema.ParseEffect(raw); err == nil {
			maps.Copy(flags, e.SetFlag)
		}
	}
	return flags
}
