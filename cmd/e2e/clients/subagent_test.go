package clients_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/schema"
)

// errand is the prompt of a subagent, and the file that it is to make.
const errand = "run-the-errand"

// TestASubagentBelongsToTheAgentThatStartedIt: a hook is asked about the subagent's call under the id of
// the agent, and its deny holds. Gemini CLI does not say that a call is a subagent's.
func TestASubagentBelongsToTheAgentThatStartedIt(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		log := filepath.Join(h.dir, "events")
		script := h.write("hooks/log.sh", "#!/bin/sh\ne=$(cat)\necho \"$e\" >>'"+log+"'\n"+
			`case "$e" in *'touch `+errand+`'*) echo '{"decision":"deny","reason":"not on an errand"}';; esac`+"\n")
		f := startFabric(t, `hooks:
  PreToolUse:
    - {type: command, handler: `+script+`, matcher: "`+shells+`"}
`)
		h.install(route{lay: func(testing.TB, *home, *fabric) []string { return []string{"--nats", f.url} }}, f)
		m := model.StartFunc(func(r model.Request) model.Turn {
			calls := append([]model.Call{h.shell("touch marker")}, h.spawn(errand)...)
			if isErrand(&r) {
				calls = []model.Call{h.shell("touch " + errand)}
			}
			n := results(&r)
			if len(r.Tools) == 0 || n >= len(calls) { // it wants a title, or all is done
				return model.Turn{}
			}
			return model.Turn{Calls: calls[n : n+1]}
		})
		defer m.Close()
		h.args = slices.Insert(slices.Clone(h.args), 1, h.spawning...)
		p, err := h.with(m)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ran("marker") || h.ran(errand) {
			t.Errorf("the agent's command ran: %v; the subagent's: %v", h.ran("marker"), h.ran(errand))
		}
		said := false
		for _, r := range p.requests {
			said = said || isErrand(&r) && r.Saw("not on an errand")
		}
		if !said {
			t.Error("the subagent does not see why")
		}
		agents, subagents := askedAbout(t, log)
		if len(agents) != 2 || agents[0] != agents[1] || subagents[0] != "" || subagents[1] == "" {
			t.Errorf("the hook was asked about calls of the agents %q with the labels %q", agents, subagents)
		}
	}, "claude", "codex", "copilot", "qwen", "opencode")
}

// askedAbout returns the agent of each event that a hook wrote down, and its label subagent.
func askedAbout(t *testing.T, log string) (agents, subagents []string) {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e schema.Event
		if err := schema.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		agents, subagents = append(agents, e.AgentID), append(subagents, e.Labels["subagent"])
	}
	return agents, subagents
}

// isErrand reports whether a request is of the subagent's conversation. The prompt is a user's message there, or
// that of another agent.
func isErrand(r *model.Request) bool {
	return slices.ContainsFunc(r.Messages, func(m model.Message) bool {
		return (m.Role == "user" || strings.Contains(m.Text, "NEW_TASK")) && strings.Contains(string(m.Raw), errand)
	})
}

// results counts the results of tools in a request, of which each call here has one.
func results(r *model.Request) (n int) {
	for _, m := range r.Messages {
		if raw := string(m.Raw); strings.Contains(raw, `"tool_result"`) || strings.Contains(raw, `"function_call_output"`) {
			n++
		}
	}
	return n
}
