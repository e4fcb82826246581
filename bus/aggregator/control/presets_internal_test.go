package control

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// usual returns the configuration of a file without presets of its own.
func usual(t *testing.T, text string) *schema.Config {
	t.Helper()
	doc, err := hooksyaml.Read("hooks.yaml", []byte(text), hooksyaml.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &doc.Config
}

// asked returns a configuration with a hook of the builtin human_input, as an agent registers it.
func asked(agent string) *schema.Config {
	return &schema.Config{Hooks: []schema.Hook{{
		Name: schema.HumanInput, Event: schema.PostToolUse, Agent: agent, Type: schema.Builtin, Handler: schema.HumanInput,
		Timeout: schema.DefaultTimeout, Readonly: true, Idempotent: true, Matcher: "Bash",
	}}}
}

// inPlace describes the hooks of human_input in a configuration.
func inPlace(cfg *schema.Config) string {
	only := *cfg
	only.Hooks = nil
	for _, h := range cfg.Hooks {
		if h.Handler == schema.HumanInput {
			if h.Preset != "" {
				h.Name = "preset:" + h.Name
			}
			only.Hooks = append(only.Hooks, h)
		}
	}
	return words(&only)
}

func TestWhatIsRegisteredTakesAPresetsPlaceWhileItIs(t *testing.T) {
	for is, c := range map[string]struct{ agent, want string }{
		"for all agents":                       {"", "preset:human_input-2 preset:human_input-3 +human_input"},
		"for an agent, where the plan decides": {"x", "preset:human_input-2 preset:human_input-3 preset:human_input-4 +human_input@x"},
	} {
		t.Run(is, func(t *testing.T) {
			before := usual(t, "hooks: {PreToolUse: [{handler: ./a.sh}]}")
			if !replaceable(before, c.agent, schema.HumanInput) {
				t.Error("the name of a preset's hook cannot be had")
			}
			next, names := register(before, asked(c.agent))
			if got := inPlace(&next); got != c.want || strings.Join(names, " ") != schema.HumanInput {
				t.Errorf("%q, registered %q", got, names)
			}
			again, _ := register(&next, asked(c.agent))
			if d := cmp.Diff(next, again); d != "" {
				t.Errorf("registered again it is another one (-want +got):\n%s", d)
			}
			file := usual(t, "hooks: {PreToolUse: [{handler: ./b.sh}]}")
			applied := withRegistered(file, &next)
			if got := inPlace(&applied); got != c.want {
				t.Errorf("with another file: %q", got)
			}
			back, err := unregister(&next, c.agent, names, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(*before, back); d != "" {
				t.Errorf("afterwards it is not what it was (-want +got):\n%s", d)
			}
		})
	}
}

func TestAFileWithoutPresetsHasNoneWhateverWasBefore(t *testing.T) {
	next, _ := register(usual(t, "hooks: {}"), asked("x"))
	applied := withRegistered(usual(t, "presets: []"), &next)
	if got := words(&applied); got != "+human_input@x" {
		t.Errorf("%q", got)
	}
}

func TestNobodyUnregistersAPresetsHook(t *testing.T) {
	_, err := unregister(usual(t, "hooks: {}"), "", []string{"human_input-2"}, nil)
	const want = `the hook "human_input-2" belongs to the preset delivery; write presets: [] into the file, or a hook with its handler human_input to replace it`
	if ce, ok := err.(*schema.ControlError); !ok || ce.Code != schema.CodeConflict || ce.Message != want {
		t.Errorf("%v", err)
	}
}
