package clients_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
)

// TestTheModelSeesTheReplacedOutputOnly holds what a policy takes out of an
// output: Claude Code drops a new one that has not its tool's own shape.
func TestTheModelSeesTheReplacedOutputOnly(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		script := h.write("hooks/veil.sh", "#!/bin/sh\n"+`sed -n 's/.*"tool_name":"\([A-Za-z]*\)".*/{"updated_output":"veiled \1"}/p'`+"\n")
		h.install(byItself(), startFabric(t, `hooks:
  PostToolUse:
    - {type: command, handler: `+script+`, readonly: false}
`))
		file := h.write("project/lines", "a secret line\n")
		h.args = slices.Clone(h.args)
		h.args[slices.Index(h.args, "--allowedTools")+1] = "Bash,Read,Write,Edit,NotebookEdit,Glob,Grep"
		calls := []model.Call{
			{Tool: "Bash", Input: map[string]string{"command": "cat lines", "description": "as told"}},
			{Tool: "Read", Input: map[string]string{"file_path": file}},
			{Tool: "Edit", Input: map[string]string{"file_path": file, "old_string": "a secret line", "new_string": "b"}},
			{Tool: "Write", Input: map[string]string{"file_path": file + "2", "content": "c"}},
			{Tool: "Glob", Input: map[string]string{"pattern": "READ*"}},
			{Tool: "Grep", Input: map[string]string{"pattern": "nothing to"}},
		}
		var turns []model.Turn
		for _, c := range calls {
			turns = append(turns, model.Turn{Calls: []model.Call{c}})
		}
		p := h.play(turns...)
		for i, c := range calls {
			p.mustSee(i+1, "veiled "+c.Tool)
			for _, line := range p.newTexts(i + 1) {
				if strings.Contains(line, "README") || strings.Contains(line, "secret line") && c.Tool != "Edit" {
					t.Errorf("%s: the model sees %q", c.Tool, line)
				}
			}
		}
	}, "claude")
}
