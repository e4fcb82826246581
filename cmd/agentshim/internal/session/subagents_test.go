package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// The rules for an agent also apply to its subagents, and to theirs. A freeze, a round and the hooks
// for its id would not reach them under ids of their own. Items that wait for the agent are not for
// them.
func TestASubagentBelongsToItsAgent(t *testing.T) {
	copilot := func(_, session, agent, parent string) string {
		more := ""
		if agent != "" {
			more = fmt.Sprintf(`,"agentId":%q,"agentType":"general-purpose","parentAgentId":%q`, agent, parent)
		}
		return fmt.Sprintf(`{"sessionId":%q,"cwd":"/p","toolName":"bash","toolArgs":{"command":"ls"},"toolResult":{}%s}`, session, more)
	}
	opencode := func(event, session, parent string) string {
		return fmt.Sprintf(`{"hook":%q,"sessionID":%q,"parentID":%q,"tool":"bash","callID":"c","args":{},"output":{}}`, event, session, parent)
	}
	claude := func(agent string) string {
		return `{"hook_event_name":"PreToolUse","session_id":"user","agent_id":"` + agent + `","tool_name":"Bash","tool_input":{},"tool_use_id":"t"}`
	}
	for name, c := range map[string]struct {
		runtime  string
		event    string
		payloads []string
		subagent string
	}{
		"copilot, the agent itself":      {"copilot", "postToolUse", []string{copilot("", "user", "", "")}, ""},
		"copilot":                        {"copilot", "postToolUse", []string{copilot("", "child", "child", "user")}, "child"},
		"copilot, asking the user":       {"copilot", "permissionRequest", []string{`{"hookName":"permissionRequest","sessionId":"user","toolName":"bash","toolInput":{},"agentId":"child","parentAgentId":"user"}`}, "child"},
		"copilot, a subagent's subagent": {"copilot", "postToolUse", []string{copilot("", "child", "child", "user"), copilot("", "grandchild", "grandchild", "child")}, "grandchild"},
		"copilot, three deep": {"copilot", "postToolUse", []string{copilot("", "child", "child", "user"), copilot("", "grandchild", "grandchild", "child"),
			copilot("", "last", "last", "grandchild")}, "last"},
		"copilot, cut off": {"copilot", "preToolUse", []string{strings.TrimSuffix(copilot("", "child", "child", "user"), "}")}, "child"},
		"opencode":         {"opencode", "tool.execute.after", []string{opencode("tool.execute.after", "child", "user")}, "child"},
		"claude":           {"claude", "PreToolUse", []string{claude("child")}, "child"},
		"codex":            {"codex", "PreToolUse", []string{strings.Replace(claude("child"), "{", `{"turn_id":"t",`, 1)}, "child"},
		"qwen":             {"qwen", "PreToolUse", []string{strings.Replace(claude("child"), "{", `{"timestamp":"t",`, 1)}, "child"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dialect.For(c.runtime)
			if err != nil {
				t.Fatal(err)
			}
			moment, err := dialect.Find(d, c.event)
			if err != nil {
				t.Fatal(err)
			}
			a, store := &asked{v: schema.Verdict{Decision: schema.Continue}}, shimstate.Folder(t.TempDir())
			var r Reply
			for _, payload := range c.payloads {
				x := &Exchange{Settings: Settings{Runtime: c.runtime, Dialect: d, Moment: moment}, Asker: a, Store: store, Stderr: new(bytes.Buffer)}
				r = x.Run(t.Context(), []byte(payload), nil)
			}
			e := a.all[len(a.all)-1].Event
			if e.AgentID != c.runtime+"-user" || e.SessionID != "user" || r.Call.Subagent != c.subagent || e.Mute != (c.subagent != "" || c.event == "permissionRequest") {
				t.Errorf("%s in %s is of the subagent %q, mute %t", e.AgentID, e.SessionID, r.Call.Subagent, e.Mute)
			}
		})
	}
}

// The session of a subagent begins and ends within that of its agent. Its end does not trigger what
// the end of the agent's session does: no item is due, and no file is deleted.
func TestTheSessionOfASubagentIsNotItsAgents(t *testing.T) {
	opencode := func(event string) string { return `{"hook":"` + event + `","sessionID":"child","parentID":"user"}` }
	camel := `{"sessionId":"child","cwd":"/p","agentId":"child","parentAgentId":"user"}`
	pascal := func(event string) string {
		return `{"hook_event_name":"` + event + `","session_id":"child","cwd":"/p","timestamp":"2026-11-25T00:00:00Z","agent_id":"child","parent_agent_id":"user"}`
	}
	for name, c := range map[string]struct{ runtime, event, payload string }{
		"OpenCode, the start":                  {"opencode", "session.created", opencode("session.created")},
		"OpenCode, the end of a turn":          {"opencode", "session.idle", opencode("session.idle")},
		"OpenCode, the end":                    {"opencode", "session.deleted", opencode("session.deleted")},
		"Copilot, the start":                   {"copilot", "sessionStart", camel},
		"Copilot, the end":                     {"copilot", "sessionEnd", camel},
		"Copilot, the end, cut off":            {"copilot", "sessionEnd", strings.TrimSuffix(camel, "}")},
		"Copilot, the start in the other form": {"copilot", "SessionStart", pascal("SessionStart")},
		"Copilot, the end in the other form":   {"copilot", "SessionEnd", pascal("SessionEnd")},
		"Claude's hooks in Copilot, the start": {"claude", "SessionStart", pascal("SessionStart")},
		"Claude's hooks in Copilot, the end":   {"claude", "SessionEnd", pascal("SessionEnd")},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dialect.For(c.runtime)
			if err != nil {
				t.Fatal(err)
			}
			moment, err := dialect.Find(d, c.event)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			text := filepath.Join(dir, snapshot.Others, textName("user", "long"))
			if err := errors.Join(os.Mkdir(filepath.Dir(text), 0o700), os.WriteFile(text, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			env := func(name string) string { return map[string]string{"COPILOT_CLI": "1"}[name] }
			a := &asked{}
			x := &Exchange{Settings: Settings{Runtime: c.runtime, Dialect: d, Moment: moment, Workspaces: dir, Env: env}, Asker: a, Stderr: new(bytes.Buffer)}
			r := x.Run(t.Context(), []byte(c.payload), nil)
			if len(a.all) > 0 || r.Exit != 0 || r.Verdict.Decision != schema.None {
				t.Errorf("asked about %+v, and answered %s", a.all, r.Stdout)
			}
			if _, err := os.Stat(text); err != nil {
				t.Error(err)
			}
		})
	}
}
