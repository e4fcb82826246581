package e2e_test

import (
	"bytes"
	"path/filepath"
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
	if sub := words[min(1, len(words)-1)]; filepath.Base(words[0]) == "broker" && len(words) > 1 && sub[0] != '-' && !strings.Contains(out.String(), "broker "+sub) {
		t.Errorf("%s: broker has no command %q", where, sub)
	}
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
