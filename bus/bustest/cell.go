package bustest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// cellReason is the reason in every answer of the table.
const cellReason = "because"

// A Cell is one answer of one hook, with the outcome that the contract's table of decisions expects: for each event,
// each word that a hook may decide and each kind of value. The table is written by hand. Tests of the dispatcher and of
// a whole fabric use the same [Cells]. This package imports neither the code under test nor the model.
type Cell struct {
	// Event is the event; Closed: the hook is fail-closed.
	Event  schema.EventType
	Closed bool
	// Answer is the hook's JSON.
	Answer string

	row       decisionRow
	word, to  string
	value     string
	valueMay  []string
	wantError []string // a part of each error
	want      expected
}

// expected is a cell's verdict.
type expected struct {
	decision                     schema.Decision
	reason                       string // part of it
	value, input, output, effect string
}

// Cells returns all cells of the table, ordered by event.
func Cells() []Cell {
	var all []Cell
	for _, r := range decisionTable {
		to := strings.Fields(r.comesTo)
		for i, word := range strings.Fields(decisionWords) {
			for _, v := range cellValues {
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

// cellEffect is in every answer, with any decision.
const cellEffect = `{"set_flag":{"asked":true}}`

// String returns a name of the cell for tests.
func (c Cell) String() string {
	return fmt.Sprintf("%s/%s/%s/fail_closed=%t", c.Event, c.word, c.value, c.Closed)
}

// expect computes the expected outcome.
func (c *Cell) expect() {
	c.Answer = fmt.Sprintf(`{"reason":%q,"effects":[%s]`, cellReason, cellEffect)
	if c.word != "-" {
		c.Answer += fmt.Sprintf(`,"decision":%q`, c.word)
	}
	if c.value != "" {
		c.Answer += `,"value":` + c.value
	}
	c.Answer += "}"
	c.want.effect = cellEffect
	failed := c.decide()
	if c.unfit() {
		c.wantError = append(c.wantError, "value dropped: ")
		// An invalid change of a guard is a failure.
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

// decide applies the word, and reports whether the hook fails.
func (c *Cell) decide() (failed bool) {
	switch {
	case c.to == "-":
	case c.to == "!":
		word := c.word
		if word == "block" {
			word = "deny" // its meaning
		}
		c.wantError = append(c.wantError, fmt.Sprintf("decided %q; at %s write one of %s", word, c.Event, c.row.legal))
		return true
	case c.to == "stop" && !slices.Contains(c.valueMay, c.row.stop):
		c.wantError = append(c.wantError, fmt.Sprintf("decided stop without its value; at %s a stop needs a", c.Event))
		return true
	default:
		c.want.decision, c.want.reason = schema.Decision(c.to), cellReason
	}
	return false
}

// there reports whether the answer has a value; null counts as no value.
func (c *Cell) there() bool { return c.value != "" && c.value != "null" }

// unfit reports whether the value is neither that of a stop nor a replacement.
func (c *Cell) unfit() bool {
	return c.there() && c.to != "stop" && !slices.Contains(c.valueMay, c.row.change)
}

// ends reports whether the decision ends the chain.
func (c *Cell) ends() bool {
	return slices.Contains([]schema.Decision{schema.Deny, schema.Fail, schema.Retry}, c.want.decision) &&
		!slices.Contains([]schema.EventType{schema.PostToolUse, schema.ToolError, schema.QueryEnd}, c.Event)
}

// carry applies the value.
func (c *Cell) carry() {
	switch {
	case !c.there(), c.unfit():
	case c.want.decision == schema.Stop:
		c.want.value = c.value
	case c.to == "stop": // the error is already expected
	case c.ends(): // it replaces nothing
	case c.row.change == "input":
		c.want.input = c.value
	case c.row.change == "output":
		c.want.output = c.value
	default:
		c.want.value = c.value
	}
}

// Diff returns the differences between a verdict about the cell's answer and the table; empty: none.
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

// decisionWords are the columns of the table: no decision, the decisions of all events, words of other systems, and an unknown
// one.
const decisionWords = `-         continue  allow     approve   ask       deny      block     retry     stop      fail      reject    DENY`

// A decisionRow is an event: the outcome of each word (- is no opinion, ! an error of the hook), the words that an error must
// name, the decision of a failed guard, the type of a stop's value, and what another value replaces.
type decisionRow struct {
	event                       schema.EventType
	comesTo                     string
	legal, policy, stop, change string
}

// decisionTable is the contract's.
var decisionTable = []decisionRow{
	{schema.SessionStart,
		`-         -         -         -         !         !         !         !         !         !         !         !`,
		"continue", "", "", ""},
	{schema.UserPromptSubmit,
		`-         -         -         -         !         deny      deny      !         !         !         !         !`,
		"continue, deny", "deny", "", ""},
	{schema.BeforeLLMCall,
		`-         -         -         -         !         !         !         !         stop      fail      fail      !`,
		"continue, fail, stop", "fail", "message", ""},
	{schema.AfterLLMCall,
		`-         -         -         -         !         !         !         retry     stop      fail      fail      !`,
		"continue, retry, fail, stop", "fail", "message", "message"},
	{schema.PreToolUse,
		`-         -         allow     allow     ask       deny      deny      !         stop      fail      fail      !`,
		"continue, allow, ask, deny, fail, stop", "deny", "any", "input"},
	{schema.PostToolUse,
		`-         -         -         -         !         deny      deny      !         stop      fail      fail      !`,
		"continue, deny, fail, stop", "", "any", "output"},
	{schema.ToolError,
		`-         -         -         -         !         deny      deny      !         stop      fail      fail      !`,
		"continue, deny, fail, stop", "", "any", "output"},
	{schema.BeforeFinalResponse,
		`-         -         -         -         !         !         retry     retry     stop      fail      fail      !`,
		"continue, retry, fail, stop", "fail", "message", "message"},
	{schema.QueryEnd,
		`-         -         -         -         !         !         !         !         stop      fail      fail      !`,
		"continue, fail, stop", "", "response", "response"},
	{schema.SessionEnd,
		`-         -         -         -         !         !         !         !         !         !         !         !`,
		"continue", "", "", ""},
}

// cellValues are the values of answers, with their possible meanings.
var cellValues = []struct{ json, may string }{
	{``, ""},
	{`null`, ""},
	{`"enough"`, "message any output response"},
	{`{"content":"enough"}`, "message any input output response"},
	{`{"role":"user","content":"enough"}`, "any input output response"},
	{`7`, "any output response"},
	{`["enough"]`, "any output response"},
}
