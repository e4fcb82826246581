package control

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// of returns the configuration that a few words describe. Hooks are "name" and "name@agent", with a
// "+" in front if they are registered. Overrides are "!event@agent".
func of(words string) *schema.Config {
	cfg := &schema.Config{}
	for w := range strings.FieldsSeq(words) {
		w, registered := strings.CutPrefix(w, "+")
		name, agent, _ := strings.Cut(w, "@")
		if event, ok := strings.CutPrefix(name, "!"); ok {
			cfg.Overrides = append(cfg.Overrides, schema.Override{Agent: agent, Event: schema.EventType(event), Registered: registered})
			continue
		}
		cfg.Hooks = append(cfg.Hooks, schema.Hook{Name: name, Agent: agent, Registered: registered})
	}
	return cfg
}

// words is the reverse of of.
func words(cfg *schema.Config) string {
	var all []string
	mark := map[bool]string{true: "+"}
	for _, h := range cfg.Hooks {
		all = append(all, strings.TrimSuffix(mark[h.Registered]+h.Name+"@"+h.Agent, "@"))
	}
	for _, o := range cfg.Overrides {
		all = append(all, mark[o.Registered]+"!"+string(o.Event)+"@"+o.Agent)
	}
	return strings.Join(all, " ")
}

func TestWhatIsRegisteredStaysWhenAFileIsApplied(t *testing.T) {
	for is, c := range map[string]struct{ file, before, want string }{
		"global hooks before those of agents":        {"a b@x", "old +g +o@x", "a +g b@x +o@x"},
		"the order of registration is kept":          {"a", "+one +two +three@x +four@x", "a +one +two +three@x +four@x"},
		"an override stays":                          {"a b@x", "a +!PreToolUse@x", "a b@x +!PreToolUse@x"},
		"an override that the file says, too, stays": {"a !PreToolUse@x", "+!PreToolUse@x", "a !PreToolUse@x +!PreToolUse@x"},
		"nothing was registered":                     {"a", "b c@x", "a"},
	} {
		t.Run(is, func(t *testing.T) {
			next := withRegistered(of(c.file), of(c.before))
			if got := words(&next); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestRegister(t *testing.T) {
	for is, c := range map[string]struct{ before, add, want string }{
		"a global hook comes behind the global ones":         {"a b@x", "n", "a +n b@x"},
		"an agent's hook comes last":                         {"a b@x", "n@y", "a b@x +n@y"},
		"one of the same name is replaced where it is":       {"+n a@x", "n", "+n a@x"},
		"an override is registered once":                     {"a +!PreToolUse@x", "n@x !PreToolUse@x !PostToolUse@x", "a +n@x +!PreToolUse@x +!PostToolUse@x"},
		"an override that the file has is registered, too":   {"a !PreToolUse@x", "!PreToolUse@x", "a !PreToolUse@x +!PreToolUse@x"},
		"the first hook of a configuration that has none":    {"", "n", "+n"},
		"several hooks keep their order, also before agents": {"a b@x", "n m", "a +n +m b@x"},
	} {
		t.Run(is, func(t *testing.T) {
			before := of(c.before)
			next, names := register(before, of(c.add))
			if got := words(&next); got != c.want {
				t.Errorf("%q", got)
			}
			if want := len(of(c.add).Hooks); len(names) != want {
				t.Errorf("names %q", names)
			}
			if diff := cmp.Diff(of(c.before), before); diff != "" {
				t.Errorf("the version before changed:\n%s", diff)
			}
		})
	}
}

func TestWhoMayRegisterAName(t *testing.T) {
	cfg := of("file +global own@x +theirs@x")
	for name, agents := range map[string]string{"file": "", "global": "_", "own": "", "theirs": "x", "new": "_ x y"} {
		for _, agent := range []string{"", "x", "y"} {
			token := agent
			if agent == "" {
				token = "_"
			}
			want := strings.Contains(" "+agents+" ", " "+token+" ")
			if got := replaceable(cfg, agent, name); got != want {
				t.Errorf("%q for %q: %v", name, agent, got)
			}
		}
	}
}

func TestUnregister(t *testing.T) {
	const before = "file +a +b own@x +c@x +!PreToolUse@x !PostToolUse@x"
	for is, c := range map[string]struct {
		agent, names, events, want, code string
	}{
		"global hooks":                          {"", "a b", "", "file own@x +c@x +!PreToolUse@x !PostToolUse@x", ""},
		"an agent's hook and its override":      {"x", "c", "PreToolUse", "file +a +b own@x !PostToolUse@x", ""},
		"a hook of the file":                    {"", "file", "", "", schema.CodeConflict},
		"an agent's hook of the file":           {"x", "own", "", "", schema.CodeConflict},
		"a hook of somebody else":               {"y", "c", "", "", schema.CodeNotFound},
		"an agent's hook as everybody's":        {"", "c", "", "", schema.CodeNotFound},
		"a hook that is not there":              {"", "a z", "", "", schema.CodeNotFound},
		"an override that the file says":        {"x", "", "PostToolUse", "", schema.CodeNotFound},
		"an override that does not exist":       {"x", "", "QueryEnd", "", schema.CodeNotFound},
		"the same name twice is taken for once": {"", "a a", "", "file +b own@x +c@x +!PreToolUse@x !PostToolUse@x", ""},
	} {
		t.Run(is, func(t *testing.T) {
			var events []schema.EventType
			for e := range strings.FieldsSeq(c.events) {
				events = append(events, schema.EventType(e))
			}
			cfg := of(before)
			next, err := unregister(cfg, c.agent, strings.Fields(c.names), events)
			code := ""
			if err != nil {
				code = err.(*schema.ControlError).Code
			}
			if code != c.code || err == nil && words(&next) != c.want {
				t.Errorf("%q, %v", words(&next), err)
			}
			if words(cfg) != before {
				t.Errorf("the version before is %q", words(cfg))
			}
		})
	}
}
