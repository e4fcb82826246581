package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// Reason is why every hook of the table decides what it does.
const Reason = "because"

// A Cell is one answer of one hook, and what it must come to.
type Cell struct {
	// Event is where it answers; Closed: it is fail-closed.
	Event  schema.EventType
	Closed bool
	// Answer is its JSON, as a hook writes it.
	Answer string

	row       row
	word, to  string
	value     string
	valueMay  []string
	wantError []string // what its errors must say, one each
	want      want
}

// want is what a verdict must hold.
type want struct {
	decision                     schema.Decision
	reason                       string // part of it
	value, input, output, effect string
}

// Cells are all cells of the table, those of an event together.
func Cells() []Cell {
	var all []Cell
	for _, r := range table {
		to := strings.Fields(r.comesTo)
		for i, word := range strings.Fields(words) {
			for _, v := range values {
				for _, closed := range []bool{false, true} {
					c := Cell{Event: r.event, Closed: closed, row: r, word: word, to: to[i], value: v.json, valueMay: strings.Fields(v.may)}
					c.expect()
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// effect is carried by every answer: it comes with whatever the hook decides.
const effect = `{"set_flag":{"asked":true}}`

// String is the cell as the name of a test.
func (c Cell) String() string {
	return fmt.Sprintf("%s/%s/%s/fail_closed=%t", c.Event, c.word, c.value, c.Closed)
}

// expect says what the cell's answer comes to.
func (c *Cell) expect() {
	c.Answer = fmt.Sprintf(`{"reason":%q,"effects":[%s]`, Reason, effect)
	if c.word != "-" {
		c.Answer += fmt.Sprintf(`,"decision":%q`, c.word)
	}
	if c.value != "" {
		c.Answer += `,"value":` + c.value
	}
	c.Answer += "}"
	c.want.effect = effect
	failed := c.decide()
	if c.unfit() {
		c.wantError = append(c.wantError, "value dropped: ")
		// What a guard wanted changed does not pass unchanged.
		failed = failed || c.row.change != ""
	}
	if failed && c.Closed && c.row.policy != "" && !c.ends() {
		c.want.decision, c.want.reason = schema.Decision(c.row.policy), "is fail-closed and gave no answer: "+c.wantError[0]
	}
	if c.want.decision == "" {
		c.want.decision = schema.Continue
	}
	c.carry()
}

// decide reads the word, and reports whether the hook has failed.
func (c *Cell) decide() (failed bool) {
	switch {
	case c.to == "-":
	case c.to == "!":
		said := c.word
		if said == "block" {
			said = "deny" // which is what it means
		}
		c.wantError = append(c.wantError, fmt.Sprintf("decided %q; at %s write one of %s", said, c.Event, c.row.legal))
		return true
	case c.to == "stop" && !slices.Contains(c.valueMay, c.row.stop):
		c.wantError = append(c.wantError, fmt.Sprintf("decided stop without its value; at %s a stop needs a", c.Event))
		return true
	default:
		c.want.decision, c.want.reason = schema.Decision(c.to), Reason
	}
	return false
}

// there: null is as good as no value.
func (c *Cell) there() bool { return c.value != "" && c.value != "null" }

// unfit: the value is no stop's, and replaces nothing either.
func (c *Cell) unfit() bool {
	return c.there() && c.to != "stop" && !slices.Contains(c.valueMay, c.row.change)
}

// ends: nothing after such a decision counts.
func (c *Cell) ends() bool {
	return slices.Contains([]schema.Decision{schema.Deny, schema.Fail, schema.Retry}, c.want.decision) &&
		!slices.Contains([]schema.EventType{schema.PostToolUse, schema.ToolError, schema.QueryEnd}, c.Event)
}

// carry says where the value goes.
func (c *Cell) carry() {
	switch {
	case !c.there(), c.unfit():
	case c.want.decision == schema.Stop:
		c.want.value = c.value
	case c.to == "stop": // that the value is no stop's has been said
	case c.ends(): // what ends the chain rewrites nothing
	case c.row.change == "input":
		c.want.input = c.value
	case c.row.change == "output":
		c.want.output = c.value
	default:
		c.want.value = c.value
	}
}

// Diff says in lines where a verdict about the cell's answer is not what the table
// wants; empty: it is.
func (c Cell) Diff(v *schema.Verdict) string {
	var d []string
	differs := func(what string, want, got any) {
		d = append(d, fmt.Sprintf("%s: %v; want %v", what, got, want))
	}
	decision := v.Decision
	if decision == schema.None {
		decision = schema.Continue
	}
	if decision != c.want.decision {
		differs("decision", c.want.decision, decision)
	}
	if c.want.reason == "" && v.Reason != "" || !strings.Contains(v.Reason, c.want.reason) {
		differs("reason", c.want.reason, v.Reason)
	}
	var effects strings.Builder
	for _, e := range v.Effects {
		effects.Write(e)
	}
	for what, pair := range map[string][2]string{
		"value": {c.want.value, string(v.Value)}, "updated_input": {c.want.input, string(v.UpdatedInput)},
		"updated_output": {c.want.output, string(v.UpdatedOutput)}, "effects": {c.want.effect, effects.String()},
	} {
		if pair[0] != pair[1] {
			differs(what, pair[0], pair[1])
		}
	}
	if len(v.HookErrors) != len(c.wantError) {
		differs("hook_errors", c.wantError, v.HookErrors)
	}
	for _, e := range c.wantError {
		if !slices.ContainsFunc(v.HookErrors, func(s string) bool { return strings.Contains(s, e) }) {
			differs("hook_errors", e, v.HookErrors)
		}
	}
	return strings.Join(d, "\n")
}
