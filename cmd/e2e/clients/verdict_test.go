package clients_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
)

// touch has the model call the shell once.
func (h *home) touch(marker string) model.Turn {
	return model.Turn{Calls: []model.Call{h.shell("touch " + marker)}}
}

func TestDenyStopsTheTool(t *testing.T) {
	eachRoute(t, func(t *testing.T, h *home, r route) {
		h.install(r, startFabric(t, `hooks:
  PreToolUse:
    - {type: builtin, handler: deny, matcher: "`+shells+`", options: {reason: not while the tide is rising}}
`))
		p := h.play(h.touch("marker"))
		if h.ran("marker") {
			t.Error("the denied command ran")
		}
		p.mustSee(1, "not while the tide is rising")
	})
}

// Of a session that is older than its process, the plugin asks OpenCode whose subagent it is.
func TestOpenCodeReportsASessionThatContinues(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		h.install(byItself(), startFabric(t, "hooks: {}\n"))
		h.play(h.touch("first"))
		h.args = []string{"run", "--continue", "do it again"}
		p := h.play(model.Turn{}, model.Turn{}, h.touch("second")) // the first two turns were those of before
		if !h.ran("first") || !h.ran("second") {
			t.Error("a command did not run")
		}
		if strings.Contains(p.output, "is not known") {
			t.Error(p.output)
		}
	}, "opencode")
}

func TestTheRewrittenCallRuns(t *testing.T) {
	eachRoute(t, func(t *testing.T, h *home, r route) {
		script := h.write("hooks/rewrite.sh", "#!/bin/sh\ncat >/dev/null\n"+`echo '{"updated_input":{"command":"touch rewritten; echo by the side door"}}'`+"\n")
		h.install(r, startFabric(t, `hooks:
  PreToolUse:
    - {type: command, handler: `+script+`, matcher: "`+shells+`"}
`))
		p := h.play(h.touch("marker"))
		if h.ran("marker") {
			t.Error("the command ran as the model wrote it")
		}
		if h.ran("rewritten") == h.rigid {
			t.Errorf("that the rewritten command ran is %v", !h.rigid)
		}
		if h.rigid {
			p.mustSee(1, "a hook rewrites this call")
		} else {
			p.mustSee(1, "by the side door")
		}
	})
}

func TestTheModelSeesWhatAnOperatorInjects(t *testing.T) {
	eachRoute(t, func(t *testing.T, h *home, r route) {
		f := startFabric(t, "hooks: {}\n")
		f.inject(t, r, "the tide is rising")
		h.install(r, f)
		p := h.play(h.touch("marker"))
		if !h.ran("marker") {
			t.Error("the command did not run")
		}
		p.mustSee(1, "the tide is rising")
	})
}

// TestTheModelSeesWhatAHookInjectsBeforeATool holds for Gemini, too, which passes
// nothing on before a tool: there it comes after the tool.
func TestTheModelSeesWhatAHookInjectsBeforeATool(t *testing.T) {
	eachRoute(t, func(t *testing.T, h *home, r route) {
		h.install(r, startFabric(t, `hooks:
  PreToolUse:
    - {type: builtin, handler: inject_text, matcher: "`+shells+`", options: {text: mind the gap}}
`))
		p := h.play(h.touch("marker"))
		if !h.ran("marker") {
			t.Error("the command did not run")
		}
		p.mustSee(1, "mind the gap")
	})
}

// TestInstalledHooksLeaveTheRestAlone holds what a client had before.
func TestInstalledHooksLeaveTheRestAlone(t *testing.T) {
	eachRoute(t, func(t *testing.T, h *home, r route) {
		h.install(r, startFabric(t, "hooks: {}\n"))
		p := h.play(h.touch("marker"))
		if !h.ran("marker") {
			t.Error("the command did not run, although no hook decides")
		}
		if len(p.requests) != 2 {
			t.Errorf("the model was asked %d times, not twice", len(p.requests))
		}
		if _, err := os.Stat(filepath.Join(h.project, "README")); err != nil {
			t.Error(err)
		}
	})
}
