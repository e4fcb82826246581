package app

import (
	"bytes"
	"strings"
	"testing"
)

// A hook whose command line is faulty refuses what can be refused, in its
// runtime's words, and keeps no agent from ending its turn.
func TestAFaultyCommandLineIsSaidToTheRuntime(t *testing.T) {
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
			var stdout, stderr bytes.Buffer
			args := []string{"hook", "--runtime", c.runtime, "--event=" + c.event, "--no-such-flag"}
			code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
			if code != c.exit || !strings.Contains(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 {
				t.Errorf("exit code %d, want %d; stdout %q, want %q", code, c.exit, &stdout, c.stdout)
			}
			if !strings.Contains(stderr.String(), "no-such-flag") {
				t.Errorf("it is not said what is wrong: %q", &stderr)
			}
		})
	}
}
