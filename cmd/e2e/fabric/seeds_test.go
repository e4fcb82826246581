package fabric_test

import "testing"

// The configurations of the guides that people come with, as they stand there, with the
// modules and programs that they name.
func TestTheSeedsConfigurationsRunAsTheyStand(t *testing.T) {
	needPython(t)
	inRealTime(t, []scenario{
		{"MassGen's global and per-agent hooks", func(t *testing.T) {
			f := start(t, `
# Global hooks - apply to ALL agents
hooks:
  PreToolUse:
    - matcher: "*"
      handler: "massgen.hooks.audit_all_tools"
      type: "python"

agents:
  - id: "agent1"
    backend:
      # Per-agent hooks - extend global by default
      hooks:
        PreToolUse:
          - matcher: "Write"
            handler: "massgen.hooks.validate_writes"
            type: "python"
            fail_closed: true  # Deny on hook errors
        PostToolUse:
          override: true  # Only use per-agent hooks
          hooks:
            - handler: "massgen.hooks.log_outputs"
              type: "python"
`, massgenHooks)
			one, two := f.agent("agent1"), f.agent("agent2")
			one.call("Bash", bash)
			one.call("Write", `{"path":"/etc/passwd"}`)
			two.call("Write", `{"path":"/etc/passwd"}`)
			one.want("Bash ran with "+bash, `result "done" + logged done`, "error no writes to /etc/passwd")
			two.want(`Write ran with {"path":"/etc/passwd"}`, `result "done"`)
			one.wantTrail(2, "massgen.hooks.audit_all_tools:ok massgen.hooks.validate_writes:ok")
			two.wantTrail(0, "massgen.hooks.audit_all_tools:ok")
		}},
		{"MassGen's hook that fails closed", func(t *testing.T) {
			f := start(t, `
hooks:
  PreToolUse:
    - matcher: "Write|Delete"
      handler: "massgen.hooks.security_check"
      fail_closed: true  # Deny tool execution if hook fails
`, massgenHooks)
			a := f.agent("agent1")
			a.call("Write", `{"path":"a"}`)
			a.call("Bash", bash)
			a.want(`error hook "massgen.hooks.security_check" is fail-closed and gave no answer: "massgen.hooks.security_check" raised RuntimeError: the scanner is away`,
				"Bash ran with "+bash, `result "done"`)
		}},
		{"MassGen's flat list", func(t *testing.T) {
			f := start(t, `
hooks:
  - type: PostToolUse
    matcher: "Write|Edit"
    callable: "my_module.my_hook_function"
    fail_closed: false
`, program{"my_module.py", "def my_hook_function(event):\n    return {'inject': {'content': 'seen', 'strategy': 'tool_result'}}\n"})
			a := f.agent("agent1")
			a.call("Write", `{}`)
			a.call("Bash", bash)
			a.want("Write ran with {}", `result "done" + seen`, "Bash ran with "+bash, `result "done"`)
		}},
		{"the design's global hooks and programs of one agent", func(t *testing.T) {
			f := start(t, `
# Global hooks - apply to ALL agents
hooks:
  PreToolUse:
    - matcher: "*"
      handler: "massgen.hooks.audit_all_tools"
      type: "python"

agents:
  - id: "agent1"
    backend:
      # Per-agent hooks - extend global by default
      hooks:
        PreToolUse:
          - matcher: "Write"
            handler: "custom_write_hook.py"
            type: "command"
        PostToolUse:
          override: true  # Only use per-agent hooks, disable global
          hooks:
            - handler: "agent1_logging.py"
              type: "command"
`, massgenHooks,
				program{"custom_write_hook.py", `import json, sys
event = json.load(sys.stdin)
reason = "%(agent_id)s of %(orchestrator_id)s in %(session_id)s may not write" % event
print(json.dumps({"allowed": False, "decision": "deny", "reason": reason}))
`},
				program{"agent1_logging.py", `import json, os, sys
event = json.load(sys.stdin)
told = " ".join([os.environ["MASSGEN_HOOK_TYPE"], os.environ["MASSGEN_TOOL_NAME"], json.dumps(event["tool_input"]), event["tool_output"]])
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": told}}))
`})
			a := f.agent("agent1")
			a.call("Write", `{}`)
			a.call("Bash", `{}`)
			a.want("error agent1 of orchestrator 1 in session 1 may not write", "Bash ran with {}", `result "done" + PostToolUse Bash {} done`)
		}},
	})
}

// massgenHooks is a module massgen.hooks of a user's own, beside which the stand-in for
// massgen.mcp_tools.hooks is still found.
var massgenHooks = program{"massgen/hooks.py", `from massgen.mcp_tools.hooks import HookEvent, HookResult


def audit_all_tools(event: HookEvent) -> HookResult:
    print("audit:", event.agent_id, event.tool_name)
    return HookResult.allow()


def validate_writes(event: HookEvent) -> HookResult:
    path = event.tool_input.get("path", "")
    return HookResult.deny("no writes to " + path) if path.startswith("/etc/") else HookResult.allow()


async def log_outputs(event: HookEvent) -> HookResult:
    return HookResult(inject={"content": "logged %s" % event.tool_output, "strategy": "tool_result"})


def security_check(event: HookEvent) -> HookResult:
    raise RuntimeError("the scanner is away")
`}
