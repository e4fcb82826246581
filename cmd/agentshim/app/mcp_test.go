package app

import (
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// The proxy searches a state folder after it has read the command line, and only if the
// command line names none.
func TestTheStateFolderIsLookedForOnlyIfNoneIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want func(home string) string
	}{
		"none is named":         {nil, func(home string) string { return filepath.Join(home, "hookfabric") }},
		"one is named":          {[]string{"--state", "/there"}, func(string) string { return "/there" }},
		"nothing is to be kept": {[]string{"--state="}, func(string) string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOOKFABRIC_STATE", "")
			var l link
			f := pflag.NewFlagSet("hook", pflag.ContinueOnError)
			l.flags(f, "none")
			home := t.TempDir()
			t.Setenv("XDG_STATE_HOME", home)
			if err := f.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			if l.resolve(f); l.state != c.want(home) {
				t.Errorf("the state is in %q", l.state)
			}
		})
	}
}

// A proxy whose environment names a fabric does not use a daemon of another fabric.
func TestAProxyAsksADaemonOfItsFabricOnly(t *testing.T) {
	const here = "nats://here:1"
	for name, c := range map[string]struct{ env, want string }{"unnamed": {"", ""}, "named by the environment": {here, here}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOOKFABRIC_NATS", c.env)
			var p proxy
			f := pflag.NewFlagSet("mcp", pflag.ContinueOnError)
			p.flags(f, "none")
			if err := program.FromEnvironment(f); err != nil {
				t.Fatal(err)
			}
			if p.resolve(f); p.daemon().NATS != c.want {
				t.Errorf("it asks a daemon of %q, not of %q", p.daemon().NATS, c.want)
			}
		})
	}
}
