package e2e_test

import (
	"bytes"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	shim "github.com/hookfabric/hookfabric/cmd/agentshim/app"
	broker "github.com/hookfabric/hookfabric/cmd/broker/app"
	hookworker "github.com/hookfabric/hookfabric/cmd/hookworker/app"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// programs are the fabric's own commands.
func programs() map[string]mainFunc {
	return map[string]mainFunc{"broker": broker.Main, "hookworker": hookworker.Main, "agentshim": shim.Main}
}

// understands reports a command line that one of the fabric's programs does not
// understand: its flags are read, and then only its help is shown. Other programs' are
// not looked at.
func understands(t testing.TB, where string, words []string) {
	t.Helper()
	if len(words) == 0 {
		return
	}
	run := programs()[filepath.Base(words[0])]
	if run == nil {
		return
	}
	var out, stderr bytes.Buffer
	args := append(slices.Clone(words[1:]), "--help")
	if code := run(t.Context(), args, strings.NewReader(""), &out, &stderr); code != 0 {
		t.Errorf("%s: %s: %s", where, strings.Join(words, " "), stderr.String())
		return
	}
	checkWords(t, where, words, out.String())
}

// groupLine is how the help of a command says that it is a group of others.
var groupLine = regexp.MustCompile(`(?m)^  (\S.*) \[command\]$`)

// checkWords reports a command that is not there: the help that was shown is then that of
// the group which has it not.
func checkWords(t testing.TB, where string, words []string, help string) {
	t.Helper()
	group := groupLine.FindStringSubmatch(help)
	if group == nil {
		return
	}
	if next := len(strings.Fields(group[1])); next < len(words) && words[next][0] != '-' {
		t.Errorf("%s: %s has no command %q", where, group[1], words[next])
	}
}

// namesCommands reports what a text names in its sentences that is no command or flag of
// the fabric's programs, of which all is known. Blocks of commands are not looked at.
func namesCommands(t testing.TB, where, text string, all map[string]string) {
	t.Helper()
	for _, span := range codeSpan.FindAllStringSubmatch(bookBlock.ReplaceAllString(text, ""), -1) {
		words := strings.Fields(span[1])
		if len(words) > 2 && words[0] == "go" && words[1] == "run" {
			words = words[2:] // the program stands behind it as a folder
		}
		switch first := filepath.Base(words[0]); {
		case strings.HasPrefix(words[0], "--"):
			if !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(help string) bool { return hasFlag(help, words[0]) }) {
				t.Errorf("%s: no command has the flag %s", where, words[0])
			}
		case programs()[first] != nil:
			checkNamed(t, where, append([]string{first}, words[1:]...), all)
		}
	}
}

// checkNamed reports words that are no command, or have a flag that it does not have.
// What stands for a value may be anything.
func checkNamed(t testing.TB, where string, words []string, all map[string]string) {
	t.Helper()
	n := 1
	for n < len(words) && all[strings.Join(words[:n+1], " ")] != "" {
		n++
	}
	help := all[strings.Join(words[:n], " ")]
	checkWords(t, where, words, help)
	if n == 1 { // a broker's own flags are those of serve
		help += all[words[0]+" serve"]
	}
	for _, w := range words[n:] {
		if strings.HasPrefix(w, "--") && !hasFlag(help, w) {
			t.Errorf("%s: %s has no flag %s", where, strings.Join(words[:n], " "), w)
		}
	}
}

// hasFlag reports whether a command's help tells of a flag, which may have its value with it.
func hasFlag(help, flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	return regexp.MustCompile(`(?m)^ +(-\w, )?` + regexp.QuoteMeta(name) + `( |$)`).MatchString(help)
}

var (
	codeSpan = regexp.MustCompile("`([^`\\s][^`]*)`")
	subLine  = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*)  +\S`)
)

// helpOfAll is what all commands say of themselves, by their words.
func helpOfAll(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	var visit func(words ...string)
	visit = func(words ...string) {
		help := helpOf(t, words...)
		all[strings.Join(words, " ")] = help
		_, list, _ := strings.Cut(help, "Available Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range subLine.FindAllStringSubmatch(list, -1) {
			visit(append(slices.Clone(words), m[1])...)
		}
	}
	for name := range programs() {
		visit(name)
	}
	if len(all) < 40 {
		t.Errorf("%d commands have told of themselves", len(all))
	}
	return all
}

// helpOf is what a command says of its flags; the words are its name and its
// subcommand's, if it has one.
func helpOf(t testing.TB, words ...string) string {
	t.Helper()
	var out bytes.Buffer
	args := append(slices.Clone(words[1:]), "--help")
	if code := programs()[words[0]](t.Context(), args, strings.NewReader(""), &out, &out); code != program.Done {
		t.Fatalf("%s --help: %s", strings.Join(words, " "), &out)
	}
	return out.String()
}

// takesVariable reports a variable of the environment that is no flag of the command.
func takesVariable(t testing.TB, where, name string, command ...string) {
	t.Helper()
	flag, ours := strings.CutPrefix(name, program.EnvPrefix)
	if !ours || flag == "LOG" {
		return
	}
	flag = "--" + strings.ToLower(strings.ReplaceAll(flag, "_", "-")) + " "
	if !strings.Contains(helpOf(t, command...), flag) {
		t.Errorf("%s sets %s, and %s has no flag %s", where, name, strings.Join(command, " "), flag)
	}
}
