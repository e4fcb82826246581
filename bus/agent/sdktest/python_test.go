package sdktest_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/agent/sdktest"
)

// pythonDir has the Python package.
const pythonDir = "../python"

// TestPython runs the Python tests of the client: with the Claude Agent SDK, whose objects
// the hooks then are, and without it, where the hooks are dicts.
func TestPython(t *testing.T) {
	t.Parallel()
	python := interpreter(t)
	for name, path := range map[string]string{"with the SDK": ".:testdata:testdata/sdk", "without the SDK": ".:testdata"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			daemon := sdktest.NewDaemon(t)
			out := sdktest.Script{Dir: pythonDir, Daemon: daemon, Argv: []string{python, "-B", "-W", "error", "-m", "unittest", "-v", "ask_test", "hooks_test"},
				Env: []string{"PYTHONPATH=" + path}}.Run(t)
			if ran := regexp.MustCompile(`Ran (\d+) tests`).FindStringSubmatch(out); ran == nil || len(ran[1]) < 2 || strings.Contains(out, "skipped") {
				t.Errorf("some tests did not run:\n%s", out)
			}
			for _, want := range []string{
				`POST /v1/events/PreToolUse?unreachable=deny&render=anthropic {"hook_type": "PreToolUse", "tool_name": "Bash", "agent_id": "agent1"}`,
				`POST /v1/ack {"agent_id": "agent1", "event_ids": ["e1", "e2"]}`,
				`POST /v1/mode {"agent_id": "agent1"}`,
				`POST /v1/mode {"agent_id": "agent1", "vote_only": true}`,
				`POST /v1/checkpoint {"agent_id": "agent1"}`,
				`POST /hook/claude/PreToolUse?unreachable=deny&agent=agent%2F1 `,
			} {
				if !strings.Contains(daemon.Got(), want) {
					t.Errorf("the daemon got no request %s, but\n%s", want, daemon.Got())
				}
			}
		})
	}
}
