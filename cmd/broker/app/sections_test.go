package app_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/broker/app"
)

func help(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := app.Main(t.Context(), args, strings.NewReader(""), &out, &out); code != 0 {
		t.Fatalf("broker %s exits with %d: %s", strings.Join(args, " "), code, &out)
	}
	return out.String()
}

func TestHelpGroupsTheFlagsOfTheBroker(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}} {
		text := help(t, args...)
		at := 0
		for _, want := range []string{
			"\nServer:\n", " --config string ", "\nCluster:\n", " --replicas int ", "\nSecurity:\n", " --tls-cert string ",
			"\nRecord of verdicts:\n", " --record string ", "\nLimits for one agent:\n", " --agent-rate float ", "\nOther:\n", " --help ",
		} {
			next := strings.Index(text[at:], want)
			if next < 0 {
				t.Fatalf("broker %s: %q is missing or not in its place in:\n%s", strings.Join(args, " "), want, text)
			}
			at += next
		}
		if strings.Contains(text, "\nFlags:\n") {
			t.Errorf("broker %s: flags outside of a section", strings.Join(args, " "))
		}
	}
	if text := help(t, "status", "--help"); !strings.Contains(text, "\nFlags:\n") || strings.Contains(text, "\nServer:\n") {
		t.Errorf("broker status has sections:\n%s", text)
	}
}

func TestEachCommandHasAnExample(t *testing.T) {
	list := regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)
	for _, words := range [][]string{nil, {"config"}, {"hooks"}, {"round"}, {"creds"}, {"creds", "tenant"}} {
		text := help(t, append(words, "--help")...)
		_, text, _ = strings.Cut(text, "Available Commands:\n")
		text, _, _ = strings.Cut(text, "\n\n")
		for _, m := range list.FindAllStringSubmatch(text, -1) {
			if m[1] == "help" || m[1] == "completion" || m[1] == "version" {
				continue
			}
			command := append(append([]string(nil), words...), m[1])
			if text := help(t, append(command, "--help")...); !strings.Contains(text, "\n  broker "+strings.Join(command, " ")+" ") {
				t.Errorf("the help of broker %s has no example:\n%s", strings.Join(command, " "), text)
			}
		}
	}
}

func TestCompletionPrintsScripts(t *testing.T) {
	for shell, want := range map[string]string{"bash": "__start_broker", "zsh": "#compdef broker", "fish": "complete -c broker"} {
		if script := help(t, "completion", shell); !strings.Contains(script, want) {
			t.Errorf("broker completion %s prints no script of that shell:\n%.300s", shell, script)
		}
	}
}
