package dialect

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// claudeAnswer is what Claude Code and its children read of a hook's stdout.
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

// claudeSpecific is the part of an answer that depends on the event. Without
// the event's own name it counts nowhere.
type claudeSpecific struct {
	Event      string            `json:"hookEventName"`
	Permission string            `json:"permissionDecision,omitzero"`
	Reason     string            `json:"permissionDecisionReason,omitzero"`
	Input      jsontext.Value    `json:"updatedInput,omitzero"`
	Decision   *claudePermission `json:"decision,omitzero"`
	Output     jsontext.Value    `json:"updatedToolOutput,omitzero"`
	Context    string            `json:"additionalContext,omitzero"`
}

// claudeModified is what Copilot shows the model as a tool's result.
type claudeModified struct {
	Type string `json:"resultType"`
	Text string `json:"textResultForLlm"`
}

// claudePermission is the answer in a person's place.
type claudePermission struct {
	Behavior  string         `json:"behavior"`
	Message   string         `json:"message,omitzero"`
	Interrupt bool           `json:"interrupt,omitzero"`
	Input     jsontext.Value `json:"updatedInput,omitzero"`
}

// Reasons for what somebody refused, or asked for, without giving one: an empty
// reason is a yes to some runtimes.
const (
	noReason    = "a hook denies this, without a reason"
	askReason   = "a hook wants a person to approve this"
	retryReason = "a hook wants you to continue"
	stopReason  = "a hook ends this run"
)

// Encode writes the answer that the runtime obeys. At a moment that can refuse,
// what cannot be encoded is refused.
func (d claudelike) Encode(c *Call, v *schema.Verdict) (Answer, error) {
	if c.Faulty && refusable(c.Moment) && refuses(v) {
		// Nobody knows for sure at which event the runtime is; this is a no at all of them.
		return d.Refuse(c.Moment, first(v.Reason, noReason)), nil
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
			w.block(noReason)
		}
	case schema.BeforeFinalResponse:
		w.final()
	}
	w.context()
	w.end()
	a, err := w.bytes()
	if err != nil && refusable(c.Moment) {
		return d.Refuse(c.Moment, "agentshim could not encode the answer: "+err.Error()), nil
	}
	return a, err
}

// refusable reports whether a call, or a prompt, can be refused at a moment.
// Nobody knows what an unknown one is.
func refusable(m Moment) bool { return m.Name == "" || m.Can[Deny] != Impossible }

// refuses reports whether a verdict about what is to come is a no. Words that
// nobody knows are one, too.
func refuses(v *schema.Verdict) bool {
	switch v.Decision {
	case schema.None, schema.Continue, schema.Allow, schema.Ask, schema.Retry:
		return false
	}
	return true
}

// Refuse is exit code 2 with the reason on stderr, wherever that is a no. At the
// end of a turn it would keep the agent going, and after a tool it would replace what the
// agent sees, so that there, a failure is all that is told.
func (d claudelike) Refuse(m Moment, reason string) Answer {
	a := Answer{Stderr: first(strings.TrimSpace(reason), noReason) + "\n", Exit: 1}
	if refusable(m) {
		a.Exit = 2
	}
	return a
}

// A claudeWriter writes one answer.
type claudeWriter struct {
	claudelike
	call     *Call
	v        *schema.Verdict
	answer   claudeAnswer
	specific claudeSpecific
}

// can reports whether the moment has an ability in the runtime's own way.
func (w *claudeWriter) can(a Ability) bool { return w.call.Moment.Can[a] == Native }

// before is the answer about a tool call.
func (w *claudeWriter) before() {
	s, v := &w.specific, w.v
	switch {
	case refuses(v) || v.Decision == schema.Ask && !w.can(Ask):
		s.Permission, s.Reason = "deny", first(strings.TrimSpace(v.Reason+"\n"+Text(v.Value)), noReason)
		return
	case v.Terminate != nil:
		// Without the deny the tool would still run, and the run end only then.
		s.Permission, s.Reason = "deny", first(v.Terminate.Reason, stopReason)
		return
	case v.Decision == schema.Ask:
		s.Permission, s.Reason = "ask", first(v.Reason, askReason)
	case v.Decision == schema.Allow && v.AutoApprove && w.can(Approve):
		s.Permission, s.Reason = "allow", v.Reason
	}
	if s.Input = v.UpdatedInput; s.Input != nil && w.strict {
		s.Permission = "allow" // alone, the rewrite is dropped and the call runs as it was
	}
}

// permission is the answer in a person's place. No opinion lets the person decide.
func (w *claudeWriter) permission() {
	v := w.v
	p := claudePermission{}
	rewritten := v.UpdatedInput != nil && !sameJSON(v.UpdatedInput, w.call.Event.ToolInput)
	rewrites := !w.strict && w.call.Form != inCopilot
	switch {
	case refuses(v) || v.Terminate != nil || v.Decision == schema.Ask && !w.can(Ask):
		p.Behavior, p.Message = "deny", strings.TrimSpace(v.Reason+"\n"+Text(v.Value))
		if p.Interrupt = w.ends() && w.can(Stop); p.Message == "" && v.Terminate != nil {
			p.Message = v.Terminate.Reason
		}
		p.Message = first(p.Message, noReason)
	case v.Decision == schema.Allow && v.AutoApprove && (!rewritten || rewrites):
		p.Behavior = "allow"
		if rewritten {
			p.Input = v.UpdatedInput
		}
	case rewritten:
		p.Behavior, p.Message = "deny", "a hook rewrites this call, but this runtime cannot rewrite a call that waits for approval; make the call in a form that the policy accepts unchanged"
	default:
		return
	}
	if w.call.Form == inCopilot {
		w.answer.Behavior, w.answer.Message, w.answer.Interrupt = p.Behavior, p.Message, p.Interrupt
	}
	w.specific.Decision = &p
}

// after is the answer about a tool call that was made.
func (w *claudeWriter) after() {
	v := w.v
	var reason string
	if v.Decision == schema.Deny || v.Decision == schema.Fail && w.call.Moment.Can[Stop] == Impossible {
		reason = first(strings.TrimSpace(v.Reason), noReason)
	}
	switch {
	case v.UpdatedOutput != nil:
		w.replace(reason)
	case reason != "" && !w.can(Feedback):
		w.tell(reason)
	case reason != "":
		w.block(reason)
	}
}

// replace has the model see another output than the tool's, after what was wrong.
func (w *claudeWriter) replace(reason string) {
	output := w.v.UpdatedOutput
	text := together(reason, first(Text(output), "(no output)"))
	switch {
	case w.call.Form == inCopilot && reason == "":
		w.answer.Modified = &claudeModified{Type: "success", Text: text}
	case w.strict || w.call.Form == inCopilot:
		w.answer.Decision, w.answer.Reason = "block", text // which is what the model sees instead
	case !w.can(Replace):
		// A stop ends nothing after a tool, and its reason is all that the model sees.
		w.answer.Continue, w.answer.StopReason = new(bool), together(text, texts(w.v.Injections))
	default:
		var known bool
		if w.specific.Output, known = shaped(&w.call.Event, output); !known {
			w.specific.Context = insteadOf(output)
		}
		if reason != "" {
			w.block(reason)
		}
	}
}

// block is the older way to say no, and at the end of a turn to go on.
func (w *claudeWriter) block(otherwise string) {
	w.answer.Decision, w.answer.Reason = "block", first(strings.TrimSpace(w.v.Reason), otherwise)
}

// final is the answer at the end of a turn, which an end of the run needs none for.
func (w *claudeWriter) final() {
	if next := GoesOn(w.call, w.v); next != "" {
		w.answer.Decision, w.answer.Reason = "block", next
	}
}

// context tells the model what hooks inject, whatever their strategy: there is
// one place for it.
func (w *claudeWriter) context() {
	if w.call.Moment.Event == schema.BeforeFinalResponse || !w.can(Inject) {
		return
	}
	told := texts(w.v.Injections)
	switch {
	case w.answer.Continue != nil: // it is in what takes the output's place
	case w.call.Form != inCopilot || w.call.Moment.Event == schema.PreToolUse:
		w.tell(told)
	case w.answer.Decision == "block":
		w.answer.Reason = together(w.answer.Reason, told)
	default:
		w.answer.Context = told // Copilot does not look for it where Claude Code does
	}
}

// tell adds to what the model is told.
func (w *claudeWriter) tell(text string) {
	if text != "" {
		w.specific.Context = strings.TrimPrefix(w.specific.Context+"\n\n"+text, "\n\n")
	}
}

// ends reports whether the run is to end.
func (w *claudeWriter) ends() bool {
	return w.v.Terminate != nil || w.v.Decision == schema.Stop || w.v.Decision == schema.Fail
}

// end ends the run.
func (w *claudeWriter) end() {
	if !w.ends() || w.call.Moment.Can[Stop] == Impossible || w.call.Moment.Name == permissionRequest {
		return
	}
	reason := w.v.Reason
	if w.v.Terminate != nil {
		reason = first(w.v.Terminate.Reason, reason)
	}
	w.answer.Continue, w.answer.StopReason = new(bool), first(reason, stopReason)
}

// bytes is the answer as it goes to stdout; nothing at all where there is
// nothing to say, which is what every runtime takes for no opinion.
func (w *claudeWriter) bytes() (Answer, error) {
	if w.specific.says() {
		w.answer.Specific = &w.specific
	}
	data, err := schema.Marshal(&w.answer)
	if err != nil || bytes.Equal(data, []byte("{}")) {
		return Answer{}, err
	}
	return Answer{Stdout: append(data, '\n')}, nil
}

// says reports whether there is more in it than the event's name.
func (s *claudeSpecific) says() bool {
	return s.Permission != "" || s.Input != nil || s.Decision != nil || s.Output != nil || s.Context != ""
}

// texts are what hooks inject, in order, as one text.
func texts(all []schema.Injection) string {
	var told []string
	for i := range all {
		if all[i].Content != "" {
			told = append(told, all[i].Content)
		}
	}
	return strings.Join(told, "\n\n")
}

// sameJSON reports whether two values are the same but for how they are written.
func sameJSON(a, b jsontext.Value) bool {
	x, y := a.Clone(), b.Clone()
	exact := []jsontext.Options{jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)}
	return x.Canonicalize(exact...) == nil && y.Canonicalize(exact...) == nil && bytes.Equal(x, y)
}
