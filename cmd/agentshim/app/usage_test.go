package app

import (
	"bytes"
	"strings"
	"testing"
)

// A hook whose command line is wrong denies what its runtime lets it deny, and lets a turn end.
func TestAHookWithAWrongCommandLineAnswersItsRuntime(t *testing.T) {
	for name, c := range map[string]struct {
		runtime, event, stdout string
		exit                   int
	}{
		"Claude Code":          {"claude", "PreToolUse", "", 2},
		"its end of a turn":    {"claude", "Stop", "", 1},
		"an unknown event":     {"claude", "NoSuchEvent", "", 2},
		"Codex":                {"codex", "PreToolUse", "", 2},
		"Gemini CLI":           {"gemini", "BeforeTool", "", 2},
		"its end of a turn, 2": {"gemini", "AfterAgent", `"continue":false`, 0},
		"Copilot CLI":          {"copilot", "preToolUse", `"permissionDecision":"deny"`, 0},
		"agy":                  {"agy", "PreToolUse", `"decision":"deny"`, 0},
		"a script":             {"generic", "PreToolUse", "", 2},
		"an unknown runtime":   {"emacs", "PreToolUse", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wrong := range []string{"--no-such-flag", "--timeout=soon", "argument"} {
				var stdout, stderr bytes.Buffer
				args := []string{"hook", "--start", wrong, "--runtime", c.runtime, "--event=" + c.event}
				code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
				if code != c.exit || !strings.Contains(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 {
					t.Errorf("%s: exit code %d, want %d; stdout %q, want %q", wrong, code, c.exit, &stdout, c.stdout)
				}
				if !strings.Contains(stderr.String(), strings.TrimLeft(wrong, "-")[:7]) {
					t.Errorf("%s: the error on stderr does not name it: %q", wrong, &stderr)
				}
			}
		})
	}
}
