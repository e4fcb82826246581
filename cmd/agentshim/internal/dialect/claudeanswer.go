package dialect

import (
	"bytes"
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// claudeAnswer is a hook's stdout as Claude Code and its children read it.
type claudeAnswer struct {
	Continue   *bool           `json:"continue,omitzero"`
	StopReason string          `json:"stopReason,omitzero"`
	Decision   string          `json:"decision,omitzero"`
	Reason     string          `json:"reason,omitzero"`
	Behavior   string          `json:"behavior,omitzero"` // Copilot's, with the four below
	Message    string          `json:"message,omitzero"`
	Interrupt  bool            `json:"interrupt,omitzero"`
	Modified   *claudeModified `json:"modifiedResult,omitzero"`
	Context    string          `json:"additionalContext,omitzero"`
	Specific   *claudeSpecific `json:"hookSpecificOutput,omitzero"`
}

// claudeSpecific is the part that depends on the event. Runtimes ignore it without the event's own name.
type claudeSpecific struct {
	Event      string            `json:"hookEventName"`
	Permission string            `json:"permissionDecision,omitzero"`
	Reason     string            `json:"permissionDecisionReason,omitzero"`
	Input      jsontext.Value    `json:"updatedInput,omitzero"`
	Decision   *claudePermission `json:"decision,omitzero"`
	Output     jsontext.Value    `json:"updatedToolOutput,omitzero"`
	Context    string            `json:"additionalContext,omitzero"`
}

// claudeModified is the tool result that Copilot shows to the model.
type claudeModified struct {
	Type string `json:"resultType"`
	Text string `json:"textResultForLlm"`
}

// claudePermission is the answer in place of a person.
type claudePermission struct {
	Behavior  string         `json:"behavior"`
	Message   string         `json:"message,omitzero"`
	Interrupt bool           `json:"interrupt,omitzero"`
	Input     jsontext.Value `json:"updatedInput,omitzero"`
}

// Encode returns an answer that the runtime obeys. If it cannot encode the answer, it refuses if it can.
func (d claudelike) Encode(c *Call, v *schema.Verdict) (Answer, error) {
	if c.Faulty && refusable(c.Moment) && refuses(v) {
		// The runtime's event is uncertain; this answer is a deny at all events.
		return d.Refuse(c.Moment, v.Reason), nil
	}
	w := &claudeWriter{claudelike: d, call: c, v: v}
	w.specific.Event = c.Moment.Name
	switch c.Moment.Event {
	case "":
		return Answer{}, nil
	case schema.PreToolUse:
		if c.Moment.Name == permissionRequest {
			w.permission()
			break
		}
		w.before()
	case schema.PostToolUse, schema.ToolError:
		w.after()
	case schema.UserPromptSubmit:
		if refuses(v) {
			w.block(spoken(v.Reason))
		}
	case schema.BeforeFinalResponse:
		w.block(GoesOn(c, v)) // it keeps the agent going
	}
	w.context()
	w.end()
	a, err := w.bytes()
	if err != nil && refusable(c.Moment) {
		return d.Refuse(c.Moment, "agentshim could not encode the answer: "+err.Error()), nil
	}
	return a, err
}

// Refuse returns exit code 2 where that is a denial, and else code 1, a failure. At the end of a turn, code 2
// would keep the agent going, and after a tool it would replace the output.
func (d claudelike) Refuse(m Moment, reason string) Answer {
	a := Answer{Stderr: spoken(reason) + "\n", Exit: 1}
	if refusable(m) {
		a.Exit = 2
	}
	return a
}

type claudeWriter struct {
	claudelike
	call     *Call
	v        *schema.Verdict
	answer   claudeAnswer
	specific claudeSpecific
}

func (w *claudeWriter) can(a Ability) bool { return w.call.Moment.Can[a] == Native }

func (w *claudeWriter) before() {
	s, v := &w.specific, w.v
	switch {
	case refuses(v) || v.Decision == schema.Ask && !w.can(Ask):
		s.Permission, s.Reason = "deny", spoken(v.Reason+"\n"+Text(v.Value))
		return
	case v.Terminate != nil:
		// Without the deny the tool would run before the run ends.
		s.Permission, s.Reason = "deny", cmp.Or(v.Terminate.Reason, stopReason)
		return
	case v.Decision == schema.Ask:
		s.Permission, s.Reason = "ask", cmp.Or(v.Reason, askReason)
	case v.Decision == schema.Allow && v.AutoApprove && w.can(Approve):
		s.Permission, s.Reason = "allow", v.Reason
	}
	if s.Input = v.UpdatedInput; s.Input != nil && w.strict {
		s.Permission = "allow" // without an allow, the runtime drops the rewrite and runs the original call
	}
}

// permission writes the answer in place of a person. Without an opinion, the person decides.
func (w *claudeWriter) permission() {
	v := w.v
	p := claudePermission{}
	rewritten := v.UpdatedInput != nil && !sameJSON(v.UpdatedInput, w.call.Event.ToolInput)
	rewrites := !w.strict && w.call.Form != inCopilot
	switch {
	case refuses(v) || v.Terminate != nil || v.Decision == schema.Ask && !w.can(Ask):
		p.Behavior, p.Message, p.Interrupt = "deny", why(v), ends(v) && w.can(Stop)
	case v.Decision == schema.Allow && v.AutoApprove && (!rewritten || rewrites):
		p.Behavior = "allow"
		if rewritten {
			p.Input = v.UpdatedInput
		}
	case rewritten:
		p.Behavior, p.Message = "deny", fixedInput
	default:
		return
	}
	if w.call.Form == inCopilot {
		w.answer.Behavior, w.answer.Message, w.answer.Interrupt = p.Behavior, p.Message, p.Interrupt
	}
	w.specific.Decision = &p
}

func (w *claudeWriter) after() {
	v := w.v
	var reason string
	if v.Decision == schema.Deny || v.Decision == schema.Fail && w.call.Moment.Can[Stop] == Impossible {
		reason = spoken(v.Reason)
	}
	switch {
	case v.UpdatedOutput != nil:
		w.replace(reason)
	case reason != "" && !w.can(Feedback):
		w.tell(reason)
	default:
		w.block(reason)
	}
}

// replace writes another output in place of the tool's, after the reason for it.
func (w *claudeWriter) replace(reason string) {
	text := together(reason, replacement(w.v))
	switch {
	case w.call.Form == inCopilot && reason == "":
		w.answer.Modified = &claudeModified{Type: "success", Text: text}
	case w.strict || w.call.Form == inCopilot:
		w.block(text) // the model sees the reason in place of the output
	case !w.can(Replace):
		// After a tool, a stop does not end the run, and its reason is all that the model sees.
		w.answer.Continue, w.answer.StopReason = new(bool), together(text, texts(w.v.Injections))
	default:
		var known bool
		if w.specific.Output, known = shaped(&w.call.Event, w.v.UpdatedOutput); !known {
			w.specific.Context = insteadOf(w.v.UpdatedOutput)
		}
		w.block(reason)
	}
}

// block writes the older form of a denial, if there is a reason.
func (w *claudeWriter) block(reason string) {
	if reason != "" {
		w.answer.Decision, w.answer.Reason = "block", reason
	}
}

// context adds injections to the one place that the runtimes have for all strategies.
func (w *claudeWriter) context() {
	if w.call.Moment.Event == schema.BeforeFinalResponse || !w.can(Inject) {
		return
	}
	told := texts(w.v.Injections)
	switch {
	case w.answer.Continue != nil: // replace has added them to the reason
	case w.call.Form != inCopilot || w.call.Moment.Event == schema.PreToolUse:
		w.tell(told)
	case w.answer.Decision == "block":
		w.answer.Reason = together(w.answer.Reason, told)
	default:
		w.answer.Context = told // Copilot reads it at another place than Claude Code
	}
}

func (w *claudeWriter) tell(text string) { w.specific.Context = together(w.specific.Context, text) }

func (w *claudeWriter) end() {
	if !ends(w.v) || w.call.Moment.Can[Stop] == Impossible || w.call.Moment.Name == permissionRequest {
		return
	}
	reason := w.v.Reason
	if w.v.Terminate != nil {
		reason = cmp.Or(w.v.Terminate.Reason, reason)
	}
	w.answer.Continue, w.answer.StopReason = new(bool), cmp.Or(reason, stopReason)
}

// bytes returns the answer for stdout. Every runtime takes an empty one for no opinion.
func (w *claudeWriter) bytes() (Answer, error) {
	if s := w.specific; s.Permission != "" || s.Input != nil || s.Decision != nil || s.Output != nil || s.Context != "" {
		w.answer.Specific = &s
	}
	data, err := schema.Marshal(&w.answer)
	if err != nil || bytes.Equal(data, []byte("{}")) {
		return Answer{}, err
	}
	return Answer{Stdout: append(data, '\n')}, nil
}
