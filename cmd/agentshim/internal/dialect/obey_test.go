package dialect_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// An outcome is the effect of an answer in a runtime.
type outcome struct {
	// refused: the tool call does not run, or the prompt does not reach the model.
	refused bool
	// asked: a person decides. approved: the call runs without a prompt.
	asked, approved bool
	// input is the changed input of the tool; empty: it is unchanged.
	input string
	// output is what the model sees instead of the tool's output.
	output string
	// context is what the model sees beside it.
	context string
	// goesOn is the text with which the agent continues instead of ending its turn.
	goesOn string
	// ends: the run ends.
	ends bool
}

// A reader models the effect of an answer in one runtime, at the moment of a call, as observed in the released
// client.
type reader func(c *dialect.Call, a dialect.Answer) outcome

// readers returns the models; add yours here.
func readers() map[string]reader {
	return map[string]reader{
		"agy":      agyReads,
		"claude":   claudeReads,
		"codex":    codexReads,
		"copilot":  copilotReads,
		"cursor":   cursorReads,
		"gemini":   geminiReads,
		"generic":  genericReads,
		"opencode": opencodeReads,
		"qwen":     qwenReads,
	}
}

// obeys returns the effect of an answer in a runtime.
func obeys(runtime string, c *dialect.Call, a dialect.Answer) outcome {
	return readers()[runtime](c, a)
}

func TestEveryRuntimeHasAModel(t *testing.T) {
	for _, name := range dialect.Names() {
		if readers()[name] == nil {
			t.Errorf("there is no model of what %s does with an answer; write one and add it to readers", name)
		}
	}
}

// members returns the members of a JSON object, read as loosely as runtimes do; nil: data is no object.
func members(data []byte) map[string]any {
	var all map[string]any
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	return all
}

// at returns the member of nested objects at a path such as "a.b"; nil: it does not exist.
func at(all map[string]any, path string) any {
	var v any = all
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

// textAt returns the string at a path, or "".
func textAt(all map[string]any, path string) string {
	s, _ := at(all, path).(string)
	return s
}

// jsonAt returns the value at a path as JSON, or "".
func jsonAt(all map[string]any, path string) string {
	v := at(all, path)
	if v == nil {
		return ""
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

func genericReads(_ *dialect.Call, a dialect.Answer) outcome {
	all := members(a.Stdout)
	var o outcome
	switch schema.Decision(textAt(all, "decision")) {
	case schema.Continue, schema.Allow:
	case schema.Ask:
		o.asked = true
	case schema.Retry:
		o.goesOn = textAt(all, "reason") + jsonAt(all, "injections")
	default:
		o.refused = true // an invalid verdict, too
	}
	auto, _ := at(all, "auto_approve").(bool)
	o.approved = auto && textAt(all, "decision") == string(schema.Allow)
	o.input, o.output, o.context = jsonAt(all, "updated_input"), jsonAt(all, "updated_output"), jsonAt(all, "injections")+jsonAt(all, "restart")
	o.refused = o.refused || at(all, "terminate") != nil // a loop that has ended makes no more calls
	o.ends = at(all, "terminate") != nil || slices.Contains([]string{"stop", "fail"}, textAt(all, "decision"))
	if !o.refused {
		o.context += textAt(all, "reason")
	}
	if textAt(all, "decision") == string(schema.Deny) {
		o.context += textAt(all, "reason")
	}
	return o
}

// Each verdict about each recorded call has the intended effect.
func TestEveryVerdictIsObeyed(t *testing.T) {
	for _, x := range exchanges(t) {
		if readers()[x.runtime] == nil {
			continue // the test above reports it
		}
		d := runtimeOf(t, x.runtime)
		c, err := d.Decode(x.input(t))
		c.Faulty = err != nil
		for _, n := range verdicts(c.Moment.Event) {
			t.Run(x.name()+"/"+n.name, func(t *testing.T) {
				said, later, lost := dialect.Express(c.Moment, &n.verdict)
				a, err := d.Encode(c, said)
				if err != nil {
					t.Fatal(err)
				}
				o := obeys(x.runtime, c, a)
				meant{t: t, c: c, v: &n.verdict, o: o, later: later, lost: strings.Join(lost, "; ")}.check()
				if t.Failed() {
					t.Logf("the answer is\n%sand comes to %+v", bytesOf(a), o)
				}
			})
		}
	}
}

// meant compares the intended effect of a verdict with the outcome.
type meant struct {
	t     *testing.T
	c     *dialect.Call
	v     *schema.Verdict
	o     outcome
	later []schema.Injection
	lost  string
}

func (m meant) can(a dialect.Ability) dialect.How { return m.c.Moment.Can[a] }

func (m meant) check() {
	switch m.c.Moment.Event {
	case schema.PreToolUse:
		m.tool()
	case schema.PostToolUse, schema.ToolError:
		m.result()
	case schema.UserPromptSubmit:
		m.refusal(m.v.Decision == schema.Deny || m.v.Terminate != nil)
	case schema.BeforeFinalResponse:
		m.end()
	}
	if m.v.Decision != schema.Retry { // the reason to continue contains its texts
		m.told()
	}
	m.over()
}

func (m meant) ends() bool {
	return m.v.Terminate != nil || m.v.Decision == schema.Stop || m.v.Decision == schema.Fail
}

// refusal checks that the runtime refuses what it must refuse, and nothing else.
func (m meant) refusal(must bool) {
	if m.can(dialect.Deny) == dialect.Impossible {
		if must && m.lost == "" {
			m.t.Error("a refusal that cannot be said is lost without a word")
		}
		return
	}
	if m.o.refused != must {
		m.t.Errorf("refused: %t, and must be: %t", m.o.refused, must)
	}
}

func (m meant) tool() {
	v := m.v
	asks := v.Decision == schema.Ask && m.can(dialect.Ask) == dialect.Native
	must := v.Decision == schema.Deny || m.ends() || v.Decision == schema.Ask && !asks ||
		v.UpdatedInput != nil && m.can(dialect.Rewrite) == dialect.Impossible
	if v.UpdatedInput != nil && m.can(dialect.Rewrite) == dialect.Emulated {
		// Refused or rewritten: a call that a policy rewrites never runs unchanged.
		if !m.o.refused && m.o.input == "" {
			m.t.Error("a rewritten call runs unchanged")
		}
		return
	}
	m.refusal(must)
	if must {
		return
	}
	byItself := strings.EqualFold(m.c.Moment.Name, "PermissionRequest") && m.o == outcome{} // the runtime asks a person anyway
	if m.o.asked != asks && (!asks || !byItself) {
		m.t.Errorf("a person is asked: %t, and must be: %t", m.o.asked, asks)
	}
	if v.UpdatedInput != nil && m.o.input != string(v.UpdatedInput) {
		m.t.Errorf("the tool is called with %q", m.o.input)
	}
	if v.UpdatedInput == nil && m.o.input != "" {
		m.t.Errorf("nobody rewrote it, and the tool is called with %q", m.o.input)
	}
	if approves := v.Decision == schema.Allow && v.AutoApprove && m.can(dialect.Approve) == dialect.Native; approves != m.o.approved {
		m.t.Errorf("approved: %t, and must be: %t", m.o.approved, approves)
	}
}

func (m meant) result() {
	seen := m.o.output + m.o.context
	if m.v.UpdatedOutput != nil && !strings.Contains(seen, "NEW OUTPUT") && m.lost == "" {
		m.t.Error("the model does not see the output that replaces the tool's")
	}
	if m.v.UpdatedOutput == nil && m.o.output != "" && m.v.Decision != schema.Deny && !m.ends() {
		m.t.Errorf("nobody replaced the output, and the model sees %q", m.o.output)
	}
	if m.v.Decision == schema.Deny && m.v.Reason != "" && !strings.Contains(seen, m.v.Reason) && !m.o.ends && m.lost == "" {
		m.t.Error("the model does not see what was wrong")
	}
}

func (m meant) end() {
	switch {
	case m.ends():
		if m.o.goesOn != "" {
			m.t.Errorf("the agent goes on with %q", m.o.goesOn)
		}
	case m.v.Decision == schema.Retry:
		for _, text := range append(contents(m.v.Injections), m.v.Reason) {
			if m.can(dialect.Retry) != dialect.Impossible && !strings.Contains(m.o.goesOn, text) {
				m.t.Errorf("the agent goes on with %q", m.o.goesOn)
			}
		}
	case len(m.v.Injections) == 0 && m.v.Restart == nil && m.o.goesOn != "":
		m.t.Errorf("nobody asked for it, and the agent goes on with %q", m.o.goesOn)
	}
}

// told checks that the runtime gets each injection, now or later, or that Express reports it as lost.
func (m meant) told() {
	texts := contents(m.v.Injections)
	if m.v.Restart != nil {
		texts = append(texts, m.v.Restart.Content)
	}
	told := m.o.context + m.o.goesOn + m.o.output
	last := 0
	for _, text := range texts {
		i := strings.Index(told, text)
		switch {
		case m.c.Event.Labels["stop_hook_active"] != "" && m.v.Restart == nil: // the agent got it before
		case i < 0 && !slices.Contains(contents(m.later), text) && m.lost == "":
			m.t.Errorf("%q is lost without a word", text)
		case i >= 0 && i < last:
			m.t.Errorf("%q is told before what comes before it", text)
		}
		last = max(last, i)
	}
}

// over checks that the run ends if it must, and only then.
func (m meant) over() {
	if m.c.Faulty && m.o.refused || m.v.Value != nil && m.o.output != "" {
		return // a denial is enough for an unreadable payload; with a message of its own the turn is over anyway
	}
	must := m.ends() && m.can(dialect.Stop) == dialect.Native
	if m.o.ends != must {
		m.t.Errorf("the run ends: %t, and must: %t", m.o.ends, must)
	}
	if m.v.Terminate != nil && !must && !m.o.refused && m.lost == "" {
		m.t.Error("that the run is to end is lost without a word")
	}
}

func contents(all []schema.Injection) (texts []string) {
	for _, in := range all {
		texts = append(texts, in.Content)
	}
	return texts
}

// A runtime never reads a denial as an allow, in any state of the call.
func TestADenyIsNeverReadAsAnAllow(t *testing.T) {
	for _, name := range dialect.Names() {
		d := runtimeOf(t, name)
		for _, m := range d.Moments() {
			if m.Can[dialect.Deny] == dialect.Impossible || readers()[name] == nil {
				continue
			}
			for _, faulty := range []bool{false, true} {
				for _, reason := range []string{"", " \n", because, "é\xff\x00", "{}"} {
					c := &dialect.Call{Moment: m, Event: schema.Event{HookType: m.Event}, Faulty: faulty}
					v := schema.Verdict{Decision: m.Event.Blocking(), Reason: reason, UpdatedInput: []byte(`{"command":"ls"}`)}
					said, _, _ := dialect.Express(m, &v)
					a, err := d.Encode(c, said)
					if err != nil {
						t.Fatal(err)
					}
					if o := obeys(name, c, a); !o.refused && v.Decision == schema.Deny {
						t.Errorf("%s, %s, faulty %t, reason %q: %s comes to %+v", name, m.Name, faulty, reason, bytesOf(a), o)
					}
					if a := d.Refuse(m, reason); !obeys(name, c, a).refused && v.Decision == schema.Deny {
						t.Errorf("%s, %s, reason %q: the last resort is no refusal: %s", name, m.Name, reason, bytesOf(a))
					}
				}
			}
		}
	}
}

// The last resort of a shim that does not know the event is a denial of a tool call in each runtime.
func TestTheLastResortIsARefusalWithoutAnEvent(t *testing.T) {
	for _, name := range dialect.Names() {
		d := runtimeOf(t, name)
		m, _ := dialect.At(d, schema.PreToolUse)
		a := d.Refuse(dialect.Moment{}, "")
		if o := obeys(name, &dialect.Call{Moment: m, Event: schema.Event{HookType: m.Event}}, a); !o.refused || a.Exit == 2 && a.Stderr == "" {
			t.Errorf("%s: %s comes to %+v", name, bytesOf(a), o)
		}
	}
}

// Invalid JSON in a verdict does not become an allow either.
func TestARewriteThatIsNoJSONIsRefused(t *testing.T) {
	for _, name := range []string{"claude", "codex"} {
		d := runtimeOf(t, name)
		m, _ := dialect.At(d, schema.PreToolUse)
		c := &dialect.Call{Moment: m, Event: schema.Event{HookType: m.Event}}
		a, err := d.Encode(c, &schema.Verdict{UpdatedInput: []byte(`{"command":`)})
		if err != nil || !obeys(name, c, a).refused {
			t.Errorf("%s: %v, %s", name, err, bytesOf(a))
		}
	}
}
