package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

// The matrix is the contract's table of events, written out cell by cell: what
// an answer with that decision, alone and together with a value, counts for.
//
//   - no opinion            !  an error of the hook
//     name   that decision         x  the value is dropped with a sentence
//     =      the value is kept     ~  the value is a rewrite: kept, unless the hook
//     is readonly (an error) or has ended the chain
//     ?  the same of an object; another is dropped with a sentence, and an error
//     of a hook that is fail-closed
var matrix = struct {
	columns string
	rows    []matrixRow
}{
	columns: "none continue allow ask deny retry stop fail reject DENY",
	rows: []matrixRow{
		{schema.SessionStart, "", "- - - ! ! ! ! ! ! !", "-x -x -x !x !x !x !x !x !x !x"},
		{schema.SessionEnd, "", "- - - ! ! ! ! ! ! !", "-x -x -x !x !x !x !x !x !x !x"},
		{schema.UserPromptSubmit, "deny", "- - - ! deny ! ! ! ! !", "-x -x -x !x denyx !x !x !x !x !x"},
		{schema.BeforeLLMCall, "fail", "- - - ! ! ! ! fail fail !", "-x -x -x !x !x !x stop= failx failx !x"},
		{schema.AfterLLMCall, "fail", "- - - ! ! retry ! fail fail !", "-~ -~ -~ !~ !~ retry~ stop= fail~ fail~ !~"},
		{schema.PreToolUse, "deny", "- - allow ask deny ! ! fail fail !", "-? -? allow? ask? deny? !? stop= fail? fail? !?"},
		{schema.PostToolUse, "", "- - - ! deny ! ! fail fail !", "-~ -~ -~ !~ deny~ !~ stop= fail~ fail~ !~"},
		{schema.ToolError, "", "- - - ! deny ! ! fail fail !", "-~ -~ -~ !~ deny~ !~ stop= fail~ fail~ !~"},
		{schema.BeforeFinalResponse, "fail", "- - - ! ! retry ! fail fail !", "-~ -~ -~ !~ !~ retry~ stop= fail~ fail~ !~"},
		{schema.QueryEnd, "", "- - - ! ! ! ! fail fail !", "-~ -~ -~ !~ !~ !~ stop= fail~ fail~ !~"},
	},
}

type matrixRow struct {
	event schema.EventType
	// policy is what "deny" means when a failure policy says it.
	policy           schema.Decision
	alone, withValue string
}

func TestMatrix(t *testing.T) {
	cells := 0
	columns := strings.Fields(matrix.columns)
	for _, row := range matrix.rows {
		for _, value := range []string{"", `"text"`, `{"n":1}`} {
			marks := strings.Fields(row.alone)
			if value != "" {
				marks = strings.Fields(row.withValue)
			}
			for i, column := range columns {
				for flags := range 4 {
					c := cell{row, column, value, marks[i], flags&1 == 1, flags&2 == 2}
					t.Run(c.name(), c.test)
					cells++
				}
			}
		}
	}
	if want := 10 * 10 * 3 * 4; cells != want || len(matrix.rows) != len(schema.EventTypes()) {
		t.Errorf("the matrix has %d cells and %d events, want %d and %d", cells, len(matrix.rows), want, len(schema.EventTypes()))
	}
}

// The matrix judges the table of package schema too.
func TestSchemaKnowsTheMatrix(t *testing.T) {
	columns := strings.Fields(matrix.columns)
	for _, row := range matrix.rows {
		if got := row.event.Blocking(); got != row.policy {
			t.Errorf("%s: a failure policy decides %q, want %q", row.event, got, row.policy)
		}
		if chain := slices.Contains(chains, row.event); row.event.Chains() != chain {
			t.Errorf("%s is a chain: %t, want %t", row.event, !chain, chain)
		}
		for i, mark := range strings.Fields(row.withValue) {
			d := schema.Decision(columns[i])
			// An allow that nobody needs is no opinion, though not a decision; a reject
			// is a fail.
			if i == 0 || d == schema.Allow || d == schema.Reject {
				continue
			}
			if legal := !strings.HasPrefix(mark, "!"); row.event.Permits(d) != legal {
				t.Errorf("%s permits %q: %t, want %t", row.event, d, !legal, legal)
			}
		}
	}
}

type cell struct {
	row                  matrixRow
	column, value, mark  string
	failClosed, readonly bool
}

func (c cell) name() string {
	return fmt.Sprintf("%s/%s/value=%s/fail_closed=%t/readonly=%t", c.row.event, c.column, c.value, c.failClosed, c.readonly)
}

func (c cell) test(t *testing.T) {
	h := schema.Hook{Name: "h", FailClosed: c.failClosed, Readonly: c.readonly}
	r := schema.Result{Decision: schema.Decision(c.column), Reason: "because", Value: jsontext.Value(c.value)}
	if c.column == "none" {
		r.Decision = schema.None
	}
	got := model.Normalise(h, c.row.event, model.Answer{Result: r})

	decision, faults, failed := c.read()
	if failed && decision == schema.Allow {
		decision = schema.None // who failed allows nothing
	}
	if failed && c.failClosed && !decisive(decision) && c.row.policy != schema.None {
		decision = c.row.policy
	}
	if got.Decision != decision {
		t.Errorf("decision %q, want %q", got.Decision, decision)
	}
	if len(got.HookErrors) != faults {
		t.Errorf("errors %q, want %d", got.HookErrors, faults)
	}
	if kind := got.ExecutedHooks[0].Outcome; (kind == schema.Errored) != failed {
		t.Errorf("outcome %q, want an error: %t", kind, failed)
	}
	value := map[schema.EventType]jsontext.Value{schema.PreToolUse: got.UpdatedInput, schema.PostToolUse: got.UpdatedOutput, schema.ToolError: got.UpdatedOutput}
	at, elsewhere := value[c.row.event], got.Value
	if strings.HasSuffix(c.mark, "=") || c.row.event.Rewrites() != schema.RewriteInput && c.row.event.Rewrites() != schema.RewriteOutput {
		at, elsewhere = got.Value, value[c.row.event]
	}
	if kept := c.kept(decision); (at != nil) != kept || elsewhere != nil {
		t.Errorf("value %s, and %s; want it kept: %t", at, elsewhere, kept)
	}
	if decision == schema.None && got.Reason != "" {
		t.Errorf("no opinion has the reason %q", got.Reason)
	}
	if says := decision != schema.None && !got.OwnWords; says && got.Reason != "because" {
		t.Errorf("the hook's own reason is gone: %q", got.Reason)
	}
}

// read is the cell's mark in plain terms.
func (c cell) read() (d schema.Decision, faults int, failed bool) {
	word := strings.TrimRight(c.mark, "x=~?")
	switch word {
	case "-":
	case "!":
		faults, failed = 1, true
	default:
		d = schema.Decision(word)
	}
	switch {
	case c.rewrite() && c.readonly:
		faults, failed = faults+1, true
	case strings.HasSuffix(c.mark, "x"):
		faults++
	case strings.HasSuffix(c.mark, "?") && c.value[0] != '{':
		faults, failed = faults+1, failed || c.failClosed
	}
	return d, faults, failed
}

// rewrite: the value is meant as one.
func (c cell) rewrite() bool { return strings.HasSuffix(c.mark, "~") || strings.HasSuffix(c.mark, "?") }

func (c cell) kept(d schema.Decision) bool {
	switch {
	case strings.HasSuffix(c.mark, "="):
		return true
	case !c.rewrite() || c.readonly || strings.HasSuffix(c.mark, "?") && c.value[0] != '{':
		return false
	}
	return !decisive(d) || !slices.Contains(chains, c.row.event)
}

func decisive(d schema.Decision) bool {
	return d == schema.Deny || d == schema.Retry || d == schema.Stop || d == schema.Fail
}

// The failure table: what happened × event × policy. The blocking decision is
// deny on the tool and the prompt, fail on the model's events, and a mere
// record elsewhere; a hook that cannot be loaded blocks whatever its policy.
func TestFailureTable(t *testing.T) {
	kinds := map[schema.OutcomeKind]string{
		schema.Deadline: "policy", schema.Errored: "policy", schema.NoWorker: "policy", schema.Lost: "policy",
		schema.Busy: "policy", schema.Late: "policy", schema.LoadError: "always",
	}
	for _, row := range matrix.rows {
		for kind, says := range kinds {
			for _, failClosed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/fail_closed=%t", row.event, kind, failClosed), func(t *testing.T) {
					h := schema.Hook{Name: "h", FailClosed: failClosed}
					got := model.Normalise(h, row.event, model.Answer{Kind: kind, Error: "it broke"})
					want := schema.None
					if failClosed || says == "always" {
						want = row.policy
					}
					if got.Decision != want {
						t.Errorf("decision %q, want %q", got.Decision, want)
					}
					if len(got.HookErrors) != 1 || !strings.HasPrefix(got.HookErrors[0], `hook "h": `) {
						t.Errorf("errors %q, want one of this hook", got.HookErrors)
					}
					if got.OwnWords != (want != schema.None) || (got.Reason != "") != got.OwnWords {
						t.Errorf("reason %q, own words %t", got.Reason, got.OwnWords)
					}
				})
			}
		}
	}
}
