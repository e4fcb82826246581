package fabric_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// asked is a scenario of an agent with hooks of its own.
type asked struct {
	is    string
	hooks string // the agent's, as a hooks.yaml has them
	tools string // which it calls, one after the other
	want  []string
}

// askAll plays scenarios beside each other on one fabric.
func askAll(t *testing.T, all []asked, programs ...program) {
	t.Helper()
	var yaml strings.Builder
	yaml.WriteString("agents:\n")
	for i, s := range all {
		fmt.Fprintf(&yaml, "  - {id: agent%d, backend: {hooks: {%s}}}\n", i, s.hooks)
	}
	f := start(t, yaml.String(), programs...)
	for i, s := range all {
		t.Run(s.is, func(t *testing.T) {
			t.Parallel()
			a := f.agent(fmt.Sprintf("agent%d", i))
			a.t = t
			for tool := range strings.FieldsSeq(s.tools) {
				a.call(tool, bash)
			}
			a.want(s.want...)
		})
	}
}

// failure is a way in which a hook gives no answer.
type failure struct {
	is      string
	hook    string // as a hooks.yaml has it, without its name and its policy
	outcome schema.OutcomeKind
	says    string
}

// failAll plays failures beside each other on one fabric, each once with a hook
// that is fail-closed and once with one that is not.
func failAll(t *testing.T, all []failure, programs ...program) {
	t.Helper()
	var yaml strings.Builder
	yaml.WriteString("agents:\n")
	for i, s := range all {
		fmt.Fprintf(&yaml, "  - {id: agent%d, hooks: {PreToolUse: [{name: closed%d, matcher: Bash, fail_closed: true, %s}, {name: open%d, matcher: Edit, %s}]}}\n",
			i, i, s.hook, i, s.hook)
	}
	f := start(t, yaml.String(), programs...)
	for i, s := range all {
		t.Run(s.is, func(t *testing.T) {
			t.Parallel()
			a := f.agent(fmt.Sprintf("agent%d", i))
			a.t = t
			a.fails(fmt.Sprintf("closed%d", i), fmt.Sprintf("open%d", i), s)
		})
	}
}

// fails checks that a failure of the hook closed denies Bash, and that one of
// the hook open lets Edit pass and is logged.
func (a *agent) fails(closed, open string, s failure) {
	a.t.Helper()
	a.call("Bash", bash)
	a.call("Edit", `{}`)
	a.wantTrail(0, closed+":"+string(s.outcome))
	a.wantTrail(1, open+":"+string(s.outcome))
	reason := fmt.Sprintf("error hook %q is fail-closed and gave no answer: ", closed)
	if said := a.transcript[0]; !strings.HasPrefix(said, reason) || !strings.Contains(said, s.says) {
		a.t.Errorf("Bash came to %q, not to %q and then %q", said, reason, s.says)
	}
	a.transcript = a.transcript[1:]
	a.want("Edit ran with {}", `result "done"`)
	a.wantErrors(1, 1, s.says)
	a.fabric.log.want(a.t, "WARN", "hook="+open, "outcome="+string(s.outcome), s.says)
}
