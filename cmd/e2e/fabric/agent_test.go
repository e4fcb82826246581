package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// agent is a minimal tool loop: it asks before each tool and after it, and
// does what the verdict says. Its transcript is what a model would see, and
// which tools really ran.
type agent struct {
	t          *testing.T
	fabric     *fabric
	id         string
	tools      map[string]tool
	transcript []string
	verdicts   []*schema.Verdict
	// change is what an attacker does to an event before it is asked.
	change func(*schema.Event)
}

// tool really does something: it says what came of it, or that it failed.
type tool func(input string) (string, error)

// agent makes an agent with three tools that work and one that fails.
func (f *fabric) agent(id string) *agent {
	works := func(string) (string, error) { return `"done"`, nil }
	return &agent{t: f.t, fabric: f, id: id, tools: map[string]tool{
		"Bash": works, "Write": works, "Edit": works, "mcp__notes__add": works,
		"Breaks": func(string) (string, error) { return "", errors.New("the disk is full") },
	}}
}

func (a *agent) say(format string, args ...any) {
	a.transcript = append(a.transcript, fmt.Sprintf(format, args...))
}

// call is the model's call of a tool: the whole loop around it.
func (a *agent) call(name, input string) {
	a.t.Helper()
	before := a.ask(&schema.Event{HookType: schema.PreToolUse, ToolName: name, ToolInput: jsontext.Value(input)})
	switch before.Decision {
	case schema.Continue, schema.Allow:
	case schema.Stop:
		a.tell("value "+string(before.Value), before.Injections)
		return
	default: // deny, fail, ask (without a person), and unknown words
		a.tell("error "+before.Reason, before.Injections)
		return
	}
	if before.UpdatedInput != nil {
		input = string(before.UpdatedInput)
	}
	output, err := a.tools[name](input)
	a.say("%s ran with %s", name, input)
	after := &schema.Event{HookType: schema.PostToolUse, ToolName: name, ToolInput: jsontext.Value(input), ToolOutput: jsontext.Value(output)}
	if err != nil {
		after.HookType, after.ToolOutput, after.Error = schema.ToolError, nil, err.Error()
		output = "error " + err.Error()
	}
	a.after(after, output, before.Injections)
}

// after asks about a tool that has run, and hands on what came of it.
func (a *agent) after(e *schema.Event, output string, injections []schema.Injection) {
	a.t.Helper()
	v := a.ask(e)
	if v.UpdatedOutput != nil {
		output = string(v.UpdatedOutput)
	}
	a.tell("result "+output, append(injections, v.Injections...))
	switch v.Decision {
	case schema.Continue:
	case schema.Deny:
		a.say("feedback %s", v.Reason)
	default:
		a.say("ended %s", v.Reason)
	}
}

// tell tells the model what came of its call, with the injections at the place
// that each names.
func (a *agent) tell(result string, injections []schema.Injection) {
	var users []string
	for _, in := range injections {
		if in.Strategy == schema.ToolResult {
			result += " + " + in.Content
		} else {
			users = append(users, "user "+in.Content)
		}
	}
	a.say("%s", result)
	a.transcript = append(a.transcript, users...)
}

// ask sends an event to the fabric. Without a verdict it returns a deny.
func (a *agent) ask(e *schema.Event) *schema.Verdict {
	a.t.Helper()
	e.AgentID, e.SessionID, e.OrchestratorID = a.id, "session 1", "orchestrator 1"
	if a.change != nil {
		a.change(e)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	v, err := a.fabric.client.Ask(ctx, e)
	if err != nil {
		a.t.Errorf("%s: %v", e.HookType, err)
		v = &schema.Verdict{Decision: schema.Deny, Reason: err.Error()}
	}
	a.verdicts = append(a.verdicts, v)
	return v
}

// want compares the transcript.
func (a *agent) want(lines ...string) {
	a.t.Helper()
	if diff := gocmp.Diff(lines, a.transcript); diff != "" {
		a.t.Errorf("the transcript differs (-want +got):\n%s\n%s", diff, a.fabric.log)
	}
}

// trail is the trail of the agent's nth verdict, in short.
func (a *agent) trail(n int) string {
	if n >= len(a.verdicts) {
		return ""
	}
	var all []string
	for _, x := range a.verdicts[n].ExecutedHooks {
		all = append(all, x.Hook+":"+string(x.Outcome))
	}
	return strings.Join(all, " ")
}

func (a *agent) wantTrail(n int, want string) {
	a.t.Helper()
	if got := a.trail(n); got != want {
		a.t.Errorf("verdict %d has the trail %q, not %q", n, got, want)
	}
}

// wantErrors compares how many things went wrong, and what the first was.
func (a *agent) wantErrors(n, count int, says string) {
	a.t.Helper()
	errs := a.verdicts[n].HookErrors
	if len(errs) != count || !strings.Contains(strings.Join(errs, "\n"), says) {
		a.t.Errorf("verdict %d has the errors %q, not %d with %q", n, errs, count, says)
	}
}

func TestAnAgentObeysItsVerdict(t *testing.T) {
	inBubbles(t, []scenario{
		{"a stop's value stands for the tool", func(t *testing.T) {
			f := start(t, "hooks:\n  PreToolUse: [{type: builtin, handler: cached, pool: go}]")
			f.serve("w", handlers{"cached": does(schema.Result{Decision: schema.Stop, Value: jsontext.Value(`"from the cache"`)})})
			a := f.agent("agent1")
			a.call("Bash", `{"command":"ls"}`)
			a.want(`value "from the cache"`)
		}},
		{"a call with the decision ask does not run without a person", func(t *testing.T) {
			f := start(t, "hooks:\n  PreToolUse: [{type: builtin, handler: asks, pool: go}]")
			f.serve("w", handlers{"asks": does(schema.Asked("may it?"))})
			a := f.agent("agent1")
			a.call("Bash", `{"command":"ls"}`)
			a.want("error may it?")
		}},
		{"a rewritten output is what the agent reads", func(t *testing.T) {
			f := start(t, "hooks:\n  PostToolUse: [{type: builtin, handler: masks, pool: go, readonly: false}]")
			f.serve("w", handlers{"masks": does(schema.Result{UpdatedOutput: jsontext.Value(`"***"`)})})
			a := f.agent("agent1")
			a.call("Bash", `{"command":"ls"}`)
			a.want(`Bash ran with {"command":"ls"}`, `result "***"`)
		}},
		{"a tool that fails is asked about as such", func(t *testing.T) {
			f := start(t, "hooks:\n  PostToolUse: [{type: builtin, handler: deny}]\n  ToolError: [{type: builtin, handler: deny, options: {reason: try another disk}}]")
			a := f.agent("agent1")
			a.call("Breaks", `{}`)
			a.want("Breaks ran with {}", "result error the disk is full", "feedback try another disk")
		}},
	})
}
