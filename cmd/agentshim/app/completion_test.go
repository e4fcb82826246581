package app

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// TestShellsAcceptTheCompletions runs each script through its shell's own parser.
func TestShellsAcceptTheCompletions(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		t.Run(shell, func(t *testing.T) {
			var script, stderr bytes.Buffer
			if code := Main(t.Context(), []string{"completion", shell}, strings.NewReader(""), &script, &stderr); code != 0 || script.Len() == 0 {
				t.Fatalf("exit code %d, %d bytes: %s", code, script.Len(), &stderr)
			}
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("%s is not installed", shell)
			}
			c := exec.CommandContext(t.Context(), program, check...)
			c.Stdin = &script
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s rejects the script: %v: %s", shell, err, out)
			}
		})
	}
}

// TestCompletionOffersCommandsAndWords asks for completions as the scripts do.
func TestCompletionOffersCommandsAndWords(t *testing.T) {
	for line, want := range map[string]string{
		"ser":                   "serve\t",
		"install cl":            "claude",
		"hook --runtime ge":     "agy\nclaude\ncodex\ncopilot\ncursor\ngemini\ngeneric\n",
		"serve --unreachable d": "deny\nallow\n",
		"mcp --unreachable a":   "deny\nallow\n",
	} {
		var stdout, stderr bytes.Buffer
		code := Main(t.Context(), append([]string{"__complete"}, strings.Fields(line)...), strings.NewReader(""), &stdout, &stderr)
		if code != 0 || !strings.HasPrefix(stdout.String(), want) {
			t.Errorf("agentshim %s: exit code %d, completions %q, want %q first: %s", line, code, &stdout, want, &stderr)
		}
	}
}
