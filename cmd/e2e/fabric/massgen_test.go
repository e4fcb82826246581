package fabric_test

import "testing"

func TestScenariosOfRegistration(t *testing.T) {
	needPython(t)
	inRealTime(t, registered)
}

var registered = []scenario{
	{"Register global Python callable hook", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - handler: "policies.refuses"
      type: "python"
`, policies)
		for _, id := range []string{"agent1", "agent2"} {
			a := f.agent(id)
			a.call("Bash", bash)
			a.want("error Bash is not for " + id)
		}
	}},
	{"Register global external command hook", func(t *testing.T) {
		f := start(t, `
hooks:
  PostToolUse:
    - handler: "path/to/script.py"
      type: "command"
      timeout: 60
`, program{"path/to/script.py", `#!/usr/bin/env python3
import json, os, sys
event = json.load(sys.stdin)
print(json.dumps({"inject": {"content": "%s heard %s" % (os.environ["MASSGEN_AGENT_ID"], event["tool_output"]), "strategy": "tool_result"}}))
`})
		for _, id := range []string{"agent1", "agent2"} {
			a := f.agent(id)
			a.call("Bash", bash)
			a.want("Bash ran with "+bash, `result "done" + `+id+" heard done")
		}
	}},
	{"Per-agent hook extends global hooks", func(t *testing.T) {
		f := start(t, globalAndOwn+`          - {handler: "policies.lists_all", type: "python"}`, policies)
		one, two := f.agent("agent1"), f.agent("agent2")
		one.call("Bash", bash)
		two.call("Bash", bash)
		one.want(`Bash ran with {"command":"ls python","all":true}`, `result "done" + [UPDATE] Bash said done`)
		two.want(`Bash ran with {"command":"ls python"}`, `result "done" + [UPDATE] Bash said done`)
	}},
	{"Per-agent hook overrides global hooks", func(t *testing.T) {
		f := start(t, globalAndOwn+`
          override: true
          hooks:
            - {handler: "policies.lists_all", type: "python"}`, policies)
		one, two := f.agent("agent1"), f.agent("agent2")
		one.call("Bash", bash)
		two.call("Bash", bash)
		one.want(`Bash ran with {"command":"ls","all":true}`, `result "done" + [UPDATE] Bash said done`)
		two.want(`Bash ran with {"command":"ls python"}`, `result "done" + [UPDATE] Bash said done`)
	}},
	{"MassGen's flat list registers hooks, too", func(t *testing.T) {
		f := start(t, `
hooks:
  - type: PostToolUse
    matcher: "Write|Edit"
    callable: "policies.reminds"
    fail_closed: false
`, policies)
		a := f.agent("agent1")
		a.call("Write", `{}`)
		a.call("Bash", bash)
		a.want("Write ran with {}", `result "done"`, "user SYSTEM REMINDER: document it", "Bash ran with "+bash, `result "done"`)
	}},
	{"a whole file of MassGen's keeps its hooks, and the rest is warned about", func(t *testing.T) {
		f := start(t, massgenFile, policies, program{"custom_edit_hook.py", `print('{"decision": "deny", "reason": "agent_b only writes new files"}')`})
		a, b := f.agent("agent_a"), f.agent("agent_b")
		a.call("Bash", bash)
		a.call("Write", `{}`)
		b.call("Write", `{}`)
		b.call("Edit", `{}`)
		a.want("Bash ran with "+bash, `result "done"`, "user SYSTEM REMINDER: document it", "error Write is not for agent_a")
		b.want("Write ran with {}", `result "done" + [UPDATE] Write said done`, "error agent_b only writes new files")
		a.wantTrail(0, "policies.audits:ok")
		f.log.want(t, "WARN", "orchestrator", "timeout_settings", "ui")
	}},
}

// globalAndOwn is a hook for everybody, one for another event, and one of
// agent1, which may override.
const globalAndOwn = `
hooks:
  PreToolUse:
    - {handler: "policies.python_too", type: "python"}
  PostToolUse:
    - {handler: "policies.updates", type: "python"}
agents:
  - id: "agent1"
    backend:
      hooks:
        PreToolUse:
`

const massgenFile = `
hooks:
  PreToolUse:
    - matcher: "*"
      handler: "policies.audits"
      type: "python"
  PostToolUse:
    - {handler: "policies.updates"}

agents:
  - id: "agent_a"
    system_message: "You are careful."
    backend:
      type: "gemini"
      model: "gemini-3-flash-preview"
      cwd: "workspace1"
      enable_mcp_command_line: true
      hooks:
        PreToolUse:
          - matcher: "Write"
            handler: "policies.refuses"
            type: "python"
            fail_closed: true
        PostToolUse:
          override: true
          hooks:
            - handler: "policies.reminds"
              type: "python"
  - id: "agent_b"
    backend:
      type: "gemini"
      debug_delay_seconds: 30
      debug_delay_after_n_tools: 2
      hooks:
        PreToolUse:
          - matcher: "Edit"
            handler: "custom_edit_hook.py"
            type: "command"

orchestrator:
  snapshot_storage: "snapshots"
  coordination:
    enable_agent_task_planning: true
timeout_settings:
  orchestrator_timeout_seconds: 1800
ui:
  display_type: "rich_terminal"
`
