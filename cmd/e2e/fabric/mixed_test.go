package fabric_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

func TestScenariosOfHooksOfAllKinds(t *testing.T) {
	needPython(t)
	t.Parallel()
	url := site(t)
	all := []asked{
		{"Any deny results in denial, also of a function", `PreToolUse: [{handler: ./allows.sh}, {type: http, handler: $/allows}, {handler: policies.refuses_later}]`, "Bash", []string{"error later"}},
		{"Any deny results in denial, also of a program", `PreToolUse: [{type: http, handler: $/allows}, {handler: policies.audits}, {handler: ./denies.sh}]`, "Bash", []string{"error not with a program"}},
		{"Any deny results in denial, also of a server", `PreToolUse: [{handler: policies.audits}, {handler: ./allows.sh}, {type: http, handler: $/denies}]`, "Bash", []string{"error not over http"}},
		{"Any deny results in denial, also the first", `PreToolUse: [{type: http, handler: $/denies}, {handler: policies.audits}, {handler: ./allows.sh}]`, "Bash", []string{"error not over http"}},
		{"Modified inputs chain", `PreToolUse: [{handler: policies.python_too}, {handler: ./lengthens.py}, {type: http, handler: $/lengthens}, {handler: policies.python_too}]`, "Bash",
			[]string{`Bash ran with {"command":"ls python command http python"}`, `result "done"`}},
		{"Multiple injections combine", `PostToolUse: [{handler: policies.reminds}, {handler: ./tells.sh}, {type: http, handler: $/updates}, {handler: policies.updates}, {type: http, handler: $/reminds}]`, "Bash",
			[]string{"Bash ran with " + bash, `result "done" + told by a program + [UPDATE] from a server + [UPDATE] Bash said done`, "user SYSTEM REMINDER: document it", "user SYSTEM REMINDER: from a server"}},
		{"hooks that fail take nothing from the others", `PreToolUse: [{handler: policies.raises}, {handler: policies.lists_all}, {type: http, handler: $/500}, {handler: ./fails.sh}, {handler: policies.dies}]`, "Bash", listedAll},
	}
	for i := range all {
		all[i].hooks = strings.ReplaceAll(all[i].hooks, "$", url)
	}
	askAll(t, all, policies,
		script("allows.sh", `echo '{"decision": "allow"}'`),
		script("denies.sh", `echo '{"decision": "deny", "reason": "not with a program"}'`),
		script("tells.sh", `echo '{"inject": {"content": "told by a program", "strategy": "tool_result"}}'`),
		script("fails.sh", `exit 3`),
		program{"lengthens.py", `#!/usr/bin/env python3
import json, sys
event = json.load(sys.stdin)
print(json.dumps({"updated_input": {"command": event["tool_input"]["command"] + " command"}}))
`})
}

// claudeScript is a script as people have them in .claude/hooks.
var claudeScript = program{".claude/hooks/guard.py", `#!/usr/bin/env python3
"""PreToolUse hook for Claude Code: no rm -rf, and pushes only as dry runs."""
import json
import sys

data = json.load(sys.stdin)
command = data["tool_input"].get("command", "")
if "rm -rf" in command:
    print("Blocked: dangerous rm command", file=sys.stderr)
    sys.exit(2)
if command.startswith("git push"):
    print(json.dumps({
        "hookSpecificOutput": {
            "hookEventName": data["hook_event_name"],
            "permissionDecision": "allow",
            "permissionDecisionReason": "dry runs are fine",
            "updatedInput": {**data["tool_input"], "command": command + " --dry-run"},
            "additionalContext": "The push is a dry run.",
        }
    }))
`}

// massgenModule is a module as people write them for MassGen.
var massgenModule = program{"team_hooks.py", `
from massgen.mcp_tools.hooks import HookEvent, HookResult


def guard(event: HookEvent) -> HookResult:
    command = event.tool_input["command"]
    if "--force" in command:
        return HookResult.deny("Pushing by force takes the work of others away")
    return HookResult(
        updated_input={"command": command + " --quiet"},
        inject={"content": "Pushes are quiet here.", "strategy": "user_message"},
    )


def listens(event: HookEvent) -> HookResult:
    """Says that it runs, and waits for what the audit script says."""
    with open(event.labels["life"], "w") as life:
        life.write("x")
    with open(event.cwd + "/audit.log") as log:
        return HookResult(inject={"content": "Heard: " + log.read().strip(), "strategy": "tool_result"})


def frozen(event: HookEvent) -> HookResult:
    return HookResult.deny("Nothing moves today")
`}

// goGuard is a hook as people write them in Go.
func goGuard(_ context.Context, e *schema.Event) (schema.Result, error) {
	if strings.Contains(string(e.ToolInput), "production") {
		return schema.Denied("production is frozen"), nil
	}
	res, err := lengthened(e, " --no-tags")
	res.Injections = []schema.Injection{{Content: "Tags stay here.", Strategy: schema.ToolResult}}
	return res, err
}

// TestAClaudeCodeScriptAModuleOfMassGensAndAGoHandlerInOneChain is what a team
// has whose hooks come from three worlds: an agent for each order of them.
func TestAClaudeCodeScriptAModuleOfMassGensAndAGoHandlerInOneChain(t *testing.T) {
	needPython(t)
	t.Parallel()
	const (
		claude  = `{handler: .claude/hooks/guard.py, matcher: Bash, timeout: 60}`
		massgen = `{handler: team_hooks.guard, type: python, timeout: 60}`
		golang  = `{handler: guard, type: builtin, pool: go, timeout: 60}`
	)
	f := start(t, `
agents:
  - {id: a, hooks: {PreToolUse: [`+claude+`, `+massgen+`, `+golang+`]}}
  - {id: b, hooks: {PreToolUse: [`+massgen+`, `+golang+`, `+claude+`]}}
  - {id: c, hooks: {PreToolUse: [`+golang+`, `+claude+`, `+massgen+`]}}
`, claudeScript, massgenModule)
	f.offer("w", handlers{"guard": goGuard})
	f.awaitWorker("go", "w")
	for _, c := range []struct {
		is, agent, command string
		want               []string
	}{
		{"each sees what the one before wrote, and all injections arrive in order", "a", "git push",
			pushed("--dry-run --quiet --no-tags", "The push is a dry run. + Tags stay here.")},
		{"the same, with the module first", "b", "git push", pushed("--quiet --no-tags --dry-run", "Tags stay here. + The push is a dry run.")},
		{"the same, with the Go handler first", "c", "git push", pushed("--no-tags --dry-run --quiet", "Tags stay here. + The push is a dry run.")},
		{"a deny of the script stops the tool", "a", "rm -rf /", []string{"error Blocked: dangerous rm command"}},
		{"a deny of the script as the last one stops the tool", "b", "rm -rf /",
			[]string{"error Blocked: dangerous rm command + Tags stay here.", "user Pushes are quiet here."}},
		{"a deny of the module stops the tool", "a", "git push --force",
			[]string{"error Pushing by force takes the work of others away + The push is a dry run."}},
		{"a deny of the Go handler stops the tool", "a", "git push production",
			[]string{"error production is frozen + The push is a dry run.", "user Pushes are quiet here."}},
	} {
		t.Run(c.is, func(t *testing.T) {
			t.Parallel()
			a := f.agent(c.agent)
			a.t = t
			a.call("Bash", `{"command":"`+c.command+`"}`)
			a.want(c.want...)
		})
	}
}

// pushed is the transcript of a push that came through.
func pushed(flags, injected string) []string {
	return []string{`Bash ran with {"command":"git push ` + flags + `"}`, `result "done" + ` + injected, "user Pushes are quiet here."}
}

// TestAClaudeCodeScriptAModuleOfMassGensAndAGoHandlerSideBySide: each of the
// hooks waits for the one behind it, so that one after the other they would
// never end.
func TestAClaudeCodeScriptAModuleOfMassGensAndAGoHandlerSideBySide(t *testing.T) {
	needPython(t)
	t.Parallel()
	l := runnertest.NewLifeline(t)
	f := start(t, `
agents:
  - id: listens
    hooks:
      PreToolUse:
        - {name: go, handler: waits, type: builtin, pool: go, readonly: true, timeout: 60}
        - {name: massgen, handler: team_hooks.listens, readonly: true, timeout: 60}
        - {name: claude, handler: .claude/hooks/audit.sh, readonly: true, timeout: 60}
  - id: denies
    hooks:
      PreToolUse:
        - {name: go-too, handler: tells, type: builtin, pool: go, readonly: true, timeout: 60}
        - {name: frozen, handler: team_hooks.frozen, readonly: true, timeout: 60}
        - {name: claude-too, handler: .claude/hooks/tells.sh, readonly: true, timeout: 60}
`, massgenModule, script(".claude/hooks/audit.sh", `cat >/dev/null
echo "a call is on record" >> "$CLAUDE_PROJECT_DIR/audit.log"
echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "This call is on record."}}'`),
		script(".claude/hooks/tells.sh", `echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "Never told."}}'`))
	if err := syscall.Mkfifo(filepath.Join(f.dir, "audit.log"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.offer("w", handlers{
		"tells": does(schema.Injected("from Go", schema.UserMessage)),
		"waits": func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
			select {
			case <-l.Held():
				return schema.Injected("from Go", schema.UserMessage), nil
			case <-ctx.Done():
				return schema.Result{}, context.Cause(ctx)
			}
		},
	})
	f.awaitWorker("go", "w")
	t.Run("all of them run at once, and their injections arrive in order", func(t *testing.T) {
		t.Parallel()
		a := f.agent("listens")
		a.t = t
		a.change = func(e *schema.Event) { e.Cwd, e.Labels = f.dir, map[string]string{"life": l.Path} }
		a.call("Bash", bash)
		a.want("Bash ran with "+bash, `result "done" + Heard: a call is on record + This call is on record.`, "user from Go")
		a.wantTrail(0, "go:ok massgen:ok claude:ok")
	})
	t.Run("a deny of one stops the tool, and what came beside it behind it is dropped", func(t *testing.T) {
		t.Parallel()
		a := f.agent("denies")
		a.t = t
		a.call("Bash", bash)
		a.want("error Nothing moves today", "user from Go")
		a.wantTrail(0, "go-too:ok frozen:ok")
	})
}

// lengthened is the answer of a hook that adds a word to the tool's command.
func lengthened(e *schema.Event, word string) (schema.Result, error) {
	var in struct {
		Command string `json:"command"`
	}
	if err := schema.Unmarshal(e.ToolInput, &in); err != nil {
		return schema.Result{}, err
	}
	in.Command += word
	input, err := schema.Marshal(in)
	return schema.Rewritten(input), err
}

// awaitWorker waits until the fabric knows a worker: one that serves in real
// time may still be on its way.
func (f *fabric) awaitWorker(pool, worker string) {
	f.t.Helper()
	bustest.Eventually(f.t, fmt.Sprintf("the worker %s of the pool %s is known", worker, pool), func() bool {
		st, failed := control[schema.FabricStatus](f, "status", "", schema.StatusRequest{})
		if failed != nil {
			f.t.Fatal(failed)
		}
		return slices.ContainsFunc(st.Pools, func(p schema.PoolStatus) bool {
			return p.Pool == pool && slices.ContainsFunc(p.Workers, func(w schema.WorkerStatus) bool { return w.Worker == worker })
		})
	})
}
