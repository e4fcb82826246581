package fabric_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// needPython skips what cannot be tested without an interpreter.
func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("THERE IS NO python3 HERE: that hooks in Python do what the scenarios say was NOT tested")
	}
}

// policies is a module as people write them for MassGen.
var policies = program{"policies.py", `"""Hooks as people write them for MassGen."""
import asyncio
import json
import os
import threading

from massgen.mcp_tools.hooks import GeneralHookManager, HookEvent, HookResult, HookType, PythonCallableHook


def audits(event: HookEvent) -> HookResult:
    print("audit:", event.agent_id, event.tool_name, event.tool_input)
    return HookResult.allow()


audit_hook = PythonCallableHook("audit", audits)
manager = GeneralHookManager()
manager.register_global_hook(HookType.PRE_TOOL_USE, audit_hook)


def refuses(event: HookEvent) -> HookResult:
    return HookResult.deny(reason=f"{event.tool_name} is not for {event.agent_id}")


def refuses_as_dict(event):
    return {"decision": "deny", "reason": event["tool_name"] + " is not for dicts"}


def refuses_as_before(event):
    return HookResult(allowed=False, metadata={"reason": "not allowed"})


def refuses_as_dict_before(event):
    return {"allowed": False, "metadata": {"reason": "not allowed in a dict"}}


def asks(event):
    return HookResult.ask("may it?")


async def refuses_later(event):
    return HookResult.deny("later")


def lists_all(event):
    return HookResult(updated_input={**event.tool_input, "all": True})


def lists_all_as_dict(event):
    return {"updated_input": {**event["tool_input"], "all": True}}


def lists_all_as_before(event):
    return HookResult(allowed=True, modified_args=json.dumps({**event.tool_input, "all": True}))


def lists_all_as_dict_before(event):
    return {"allowed": True, "modified_args": json.dumps({**event["tool_input"], "all": True})}


def python_too(event):
    return HookResult(updated_input={"command": event.tool_input["command"] + " python"})


def allows_as_dict(event):
    return {"decision": "allow"}


def empty(event):
    return {}


def nothing(event):
    pass


def updates(event):
    return HookResult(
        inject={
            "content": f"[UPDATE] {event.tool_name} said {event.tool_output}",
            "strategy": "tool_result"
        }
    )


def reminds(event):
    return HookResult(
        inject={
            "content": "SYSTEM REMINDER: document it",
            "strategy": "user_message"
        }
    )


def raises(event):
    raise PermissionError(f"the policy server knows no {event.agent_id}")


def junk(event):
    return "allow, I think"


def undecided(event):
    return HookResult(decision="Allow")


def dies(event):
    os._exit(7)


def hangs(event):
    threading.Event().wait()


async def hangs_later(event):
    await asyncio.Event().wait()
`}

// functions are the scenarios of what hooks decide and inject, with functions.
var functions = []asked{
	{"Wildcard matching", `PreToolUse: [{matcher: "*", handler: "policies.refuses_as_dict", type: "python"}]`, "Write mcp__notes__add",
		[]string{"error Write is not for dicts", "error mcp__notes__add is not for dicts"}},
	{"Specific tool matching", `PreToolUse: [{matcher: "Write|Edit", handler: "policies.refuses_as_dict", type: "python"}]`, "Write Edit Bash",
		[]string{"error Write is not for dicts", "error Edit is not for dicts", "Bash ran with " + bash, `result "done"`}},
	{"No matcher defaults to all", `PreToolUse: [{handler: policies.refuses_as_dict}]`, "Bash mcp__notes__add",
		[]string{"error Bash is not for dicts", "error mcp__notes__add is not for dicts"}},

	{"Hook denies tool execution", `PreToolUse: [{handler: policies.refuses_later}]`, "Bash", []string{"error later"}},
	{"Hook denies tool execution, as MassGen's older form has it", `PreToolUse: [{handler: policies.refuses_as_before}]`, "Bash", []string{"error not allowed"}},
	{"Hook denies tool execution, with a dict in that form", `PreToolUse: [{handler: policies.refuses_as_dict_before}]`, "Bash", []string{"error not allowed in a dict"}},

	{"Hook asks a person, without a person", `PreToolUse: [{handler: policies.asks}]`, "Bash", []string{"error may it?"}},

	{"Hook modifies tool input", `PreToolUse: [{handler: policies.lists_all}]`, "Bash", listedAll},
	{"Hook modifies tool input, with a dict", `PreToolUse: [{handler: policies.lists_all_as_dict}]`, "Bash", listedAll},
	{"Hook modifies tool input, as MassGen's older form has it", `PreToolUse: [{handler: policies.lists_all_as_before}]`, "Bash", listedAll},
	{"Hook modifies tool input, with a dict in that form", `PreToolUse: [{handler: policies.lists_all_as_dict_before}]`, "Bash", listedAll},

	{"Hook allows execution", `PreToolUse: [{handler: policies.audits, fail_closed: true}]`, "Bash", passed},
	{"Hook allows execution, with a dict", `PreToolUse: [{handler: policies.allows_as_dict, fail_closed: true}]`, "Bash", passed},
	{"Hook allows execution, with an empty result", `PreToolUse: [{handler: policies.empty, fail_closed: true}, {handler: policies.nothing, fail_closed: true}]`, "Bash", passed},
	{"Hook allows execution, as an object of MassGen's", `PreToolUse: [{handler: policies.audit_hook, fail_closed: true}]`, "Bash", passed},

	{"Hook injects into tool result", `PostToolUse: [{handler: policies.updates}]`, "Bash",
		[]string{"Bash ran with " + bash, `result "done" + [UPDATE] Bash said done`}},
	{"Hook injects as user message", `PostToolUse: [{handler: policies.reminds}]`, "Bash",
		[]string{"Bash ran with " + bash, `result "done"`, "user SYSTEM REMINDER: document it"}},
}

var (
	passed    = []string{"Bash ran with " + bash, `result "done"`}
	listedAll = []string{`Bash ran with {"command":"ls","all":true}`, `result "done"`}
)

func TestScenariosOfFunctions(t *testing.T) {
	needPython(t)
	t.Parallel()
	askAll(t, functions, policies)
}

func TestScenariosOfFunctionsThatFail(t *testing.T) {
	needPython(t)
	t.Parallel()
	failAll(t, []failure{
		{"Python hook raises exception", `handler: policies.raises, timeout: 60`, schema.Errored, `"policies.raises" raised PermissionError: the policy server knows no agent0`},
		{"a function that answers with something else", `handler: policies.junk, timeout: 60`, schema.Errored, "answered with a value of the type str"},
		{"a function with an unknown decision", `handler: policies.undecided, timeout: 60`, schema.Errored, `decided "Allow"`},
		{"a function that ends its process", `handler: policies.dies, timeout: 60`, schema.Errored, "exited with code 7"},
		{"Timeout behavior", `handler: policies.hangs, timeout: 0.2`, schema.Deadline, "did not answer within its timeout of 200ms"},
		{"Timeout behavior, of coroutines that share a process", `handler: policies.hangs_later, timeout: 0.2, idempotent: true`, schema.Deadline, "did not answer within its timeout of 200ms"},
	}, policies)
}

func TestScenariosOfTimeAndImports(t *testing.T) {
	needPython(t)
	inRealTime(t, slices.Concat(functionsInTime, imports))
}

var functionsInTime = []scenario{
	{"Default timeout, Custom timeout", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - {handler: policies.nothing}
    - {handler: policies.nothing, timeout: 60}
    - {handler: policies.nothing, timeout: 1.5}
`, policies)
		got, failed := f.configure(schema.ConfigRequest{Action: schema.ActionShow})
		if failed != nil {
			t.Fatal(failed)
		}
		var timeouts []time.Duration
		for _, h := range got.Config.Hooks {
			if h.Type == schema.Python {
				timeouts = append(timeouts, time.Duration(h.Timeout))
			}
		}
		if diff := gocmp.Diff([]time.Duration{30 * time.Second, time.Minute, 1500 * time.Millisecond}, timeouts); diff != "" {
			t.Errorf("the timeouts in use differ (-want +got):\n%s", diff)
		}
	}},
	{"Timeout behavior", func(t *testing.T) {
		l := runnertest.NewLifeline(t)
		f := start(t, `{hooks: {PreToolUse: [{name: slow, handler: slow.hangs, timeout: 3}, {handler: slow.works, timeout: 60}]}}`, program{"slow.py", `
import subprocess, threading

def hangs(event):
    life = open(event.tool_input["life"], "w")
    subprocess.Popen(["tail", "-f", "/dev/null"], pass_fds=[life.fileno()])
    life.write("x")
    life.flush()
    threading.Event().wait()

def works(event):
    return {"updated_input": {"command": "ls"}}
`})
		life, err := schema.Marshal(map[string]string{"life": l.Path})
		if err != nil {
			t.Fatal(err)
		}
		a := f.agent("agent1")
		a.call("Bash", string(life))
		a.want(passed...)
		a.wantTrail(0, "slow:deadline slow.works:ok")
		await(t, l.Held(), "the function to have been called at all")
		await(t, l.Gone(), "its process, and what it had started, to be gone")
		f.log.want(t, "WARN", "hook=slow", "outcome=deadline", "did not answer within its timeout of 3s")
	}},
}

var imports = []scenario{
	{"Import error for Python hook", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - {name: missing, handler: no_such_module.check, matcher: Bash}
    - {name: renamed, handler: policies.check, matcher: Edit, fail_closed: false}
    - {name: broken, handler: broken.check, matcher: Write, fail_closed: true}
    - {name: unready, handler: unready.check, matcher: mcp__*}
`, policies, program{"broken.py", "def check(event)\n"}, program{"unready.py", "import a_package_that_nobody_installed\n"})
		a := f.agent("agent1")
		for i, c := range []struct{ tool, hook, says string }{
			{"Bash", "missing", "No module named 'no_such_module'"},
			{"Edit", "renamed", "has no attribute 'check'"},
			{"Write", "broken", "SyntaxError"},
			{"mcp__notes__add", "unready", "No module named 'a_package_that_nobody_installed'"},
		} {
			a.call(c.tool, `{}`)
			a.wantTrail(i, c.hook+":load_error")
			if said := a.transcript[len(a.transcript)-1]; len(a.transcript) != i+1 || !strings.HasPrefix(said, "error ") || !strings.Contains(said, c.says) {
				t.Errorf("after a call of %s: %q", c.tool, a.transcript)
			}
			f.log.want(t, "handler cannot be loaded", "hook="+c.hook, c.says)
		}
	}},
}
