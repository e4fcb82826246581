package action_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema/action"
)

// prelude has bash write each command that it would start to the file $LOG, and runs inner shells.
const prelude = `command_not_found_handle() {
  local IFS=$'\x1f'
  printf '%s\x1e' "$*" >> "$LOG"
  case $1 in bash|sh) shift; /bin/bash "$@";; esac
}
export -f command_not_found_handle
export LOG
PATH=/none
`

// ran returns the commands that bash starts for a script.
func ran(t *rapid.T, dir, script string) []string {
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/bash", "--norc", "-c", prelude+script)
	cmd.Env, cmd.Dir = []string{"LOG=" + log}, dir
	_ = cmd.Run() // scripts may fail
	if ctx.Err() != nil {
		t.Fatalf("bash does not end:\n%s", script)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\x1e' })
}

// top is the depth of the statements at the top of a script.
const top = 3

// scripts draws scripts. The variables x, y and z have values at their begin.
type scripts struct{ t *rapid.T }

func (s scripts) pick(what string, all ...func() string) string {
	return all[rapid.IntRange(0, len(all)-1).Draw(s.t, what)]()
}

func (s scripts) one(what string, texts ...string) string {
	return rapid.SampledFrom(texts).Draw(s.t, what)
}

func (s scripts) variable() string { return s.one("variable", "x", "y", "z") }

func (s scripts) word(depth int) string {
	text := func() string {
		return s.one("text", "a", "b", "-f", "c1", "c2", "/p", `a\ b`, `'a b'`, `"a b"`, `$'a\tb'`, "{a,b}", "a{1..3}", "''")
	}
	if depth == 0 {
		return text()
	}
	return s.pick("word", text, text,
		func() string { return "$" + s.variable() },
		func() string { return `"$` + s.variable() + `"` },
		func() string { return `"${` + s.variable() + `:-d}e"` },
		func() string {
			return "${" + s.variable() + s.one("operator", "%1", "#c", "/c/d", "^^", ":0:1", ":+e") + "}"
		},
		func() string { return "$(echo " + s.word(depth-1) + ")" },
		func() string { return `"$( ` + s.script(depth-1) + ` )"` },
		func() string { return s.word(0) + s.word(0) })
}

func (s scripts) words(depth int) string {
	all := make([]string, rapid.IntRange(0, 3).Draw(s.t, "words"))
	for i := range all {
		all[i] = s.word(depth)
	}
	return strings.Join(all, " ")
}

func (s scripts) command(depth int) string {
	name := s.one("name", "c1", "c2", "c3", `c''1`, `"c2"`, `\c3`)
	if depth > 0 && rapid.IntRange(0, 3).Draw(s.t, "expanded") == 0 {
		name = "c$(echo 1)" + s.one("suffix", "", "$x")
	}
	return name + " " + s.words(depth)
}

func quote(script string) string { return "'" + strings.ReplaceAll(script, "'", `'\''`) + "'" }

func (s scripts) statement(depth int) string {
	command := func() string { return s.command(depth) }
	if depth == 0 {
		return command()
	}
	inner := func() string { return s.script(depth - 1) }
	condition := func() string { return s.one("condition", "true", "false", "! true", "c1") }
	return s.pick("statement", command, command,
		func() string { return s.variable() + "=" + s.word(depth-1) },
		func() string { return s.variable() + "+=" + s.word(depth-1) },
		func() string { return s.variable() + "=v " + command() },
		func() string { return "local_x=1; " + s.variable() + "=$" + s.variable() },
		func() string { return "if " + condition() + "; then " + inner() + "; else " + inner() + "; fi" },
		func() string { return "for " + s.variable() + " in " + s.words(depth-1) + "; do " + inner() + "; done" },
		func() string { return "case $" + s.variable() + " in c*) " + inner() + ";; *) " + inner() + ";; esac" },
		func() string { return "( " + inner() + " )" },
		func() string { return "{ " + inner() + "; }" },
		func() string { return condition() + s.one("list", " && ", " || ") + command() },
		func() string { return command() + " | " + command() },
		func() string {
			return "f() { " + s.command(depth-1) + ` "$@"; ` + inner() + "; }; f " + s.words(depth-1)
		},
		func() string { return "eval " + quote(inner()) },
		func() string { return "eval " + s.command(depth-1) },
		func() string {
			return s.one("shell", "bash", "sh") + " -c " + quote(`c3 "$1"; `+inner()) + " n " + s.words(depth-1)
		},
		func() string { return "echo " + quote(inner()) + " | bash" },
		func() string {
			if depth < top { // bash 5.2 misreads an array after a here-document in a substitution
				return command()
			}
			return "bash <<'EOF'\n" + inner() + "\nEOF\n"
		},
		func() string { return "i=0; while test $i -lt 2; do i=$((i+1)); " + inner() + "; done" },
		func() string { return "set -- " + s.words(depth-1) + "; c1 $1" },
		func() string { return "a=(" + s.words(depth-1) + `); c2 "${a[@]}"` })
}

func (s scripts) script(depth int) string {
	all := make([]string, rapid.IntRange(1, 2).Draw(s.t, "statements"))
	for i := range all {
		all[i] = s.statement(depth)
	}
	return strings.Join(all, "\n")
}

// TestNoCommandIsMissing runs scripts in bash, and checks that the facts have each command that it starts.
func TestNoCommandIsMissing(t *testing.T) {
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	checked, left := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		script := "x=c1; y='c2 c3'; z=d\n" + scripts{t}.script(top)
		a := action.Script(script, "")
		if a.Unparsed != "" || slices.ContainsFunc(a.Commands, func(c action.Command) bool { return c.Dynamic }) {
			left++
			return
		}
		checked++
		var has []string
		for _, c := range a.Commands {
			has = append(has, strings.Join(append([]string{c.Name}, c.Args...), "\x1f"))
		}
		for _, command := range ran(t, dir, script) {
			if name, _, _ := strings.Cut(command, "\x1f"); name == "bash" || name == "sh" {
				continue // its script is in the facts
			}
			if !slices.Contains(has, command) && !opened(a, command) {
				t.Fatalf("bash runs %q, which is not in the facts of\n%s\n%q", strings.Split(command, "\x1f"), script, lines(a))
			}
		}
	})
	if checked < left {
		t.Errorf("%d scripts were checked, %d were dynamic", checked, left)
	}
}

// opened reports whether the facts have the command with arguments that are known only at run time.
func opened(a *action.Action, command string) bool {
	name, _, _ := strings.Cut(command, "\x1f")
	return slices.ContainsFunc(a.Commands, func(c action.Command) bool {
		return c.Name == name && strings.Contains(strings.Join(c.Args, ""), "$")
	})
}
