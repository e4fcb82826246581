package hooksyaml_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// Each valid file is written again, with its hooks below their events and without
// defaults.
func TestWrittenFiles(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			doc := read(t, string(data))
			golden(t, strings.TrimSuffix(name, ".yaml")+".written", string(hooksyaml.Write(&doc.Config)))
			readsBack(t, &doc.Config)
		})
	}
}

// readsBack compares a configuration with the one that is read from its text.
func readsBack(t rapid.TB, c *schema.Config) {
	t.Helper()
	text := hooksyaml.Write(c)
	doc, err := hooksyaml.Read("written.yaml", text, hooksyaml.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	unmarked := plain(*c)
	if d := cmp.Diff(unmarked, doc.Config, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("(-written +read):\n%s\n%s", d, text)
	}
	if d := cmp.Diff(string(hooksyaml.Write(&unmarked)), string(hooksyaml.Write(&doc.Config))); d != "" {
		t.Fatalf("the same configuration is another text:\n%s", d)
	}
}

// plain returns a configuration without members that a file cannot have.
func plain(c schema.Config) schema.Config {
	out := schema.Config{Presets: c.Presets, PythonPath: c.PythonPath, Python: c.Python}
	for _, h := range c.Hooks {
		h.Registered = false
		out.Hooks = append(out.Hooks, h)
	}
	for _, o := range c.Overrides {
		o.Registered = false
		out.Overrides = append(out.Overrides, o)
	}
	return out
}

func TestWrittenConfigurationsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := configs(t)
		readsBack(t, &c)
	})
}

func TestRegisteredHooksAreMarked(t *testing.T) {
	c := schema.Config{
		Version: 3, Presets: []string{"delivery"},
		Hooks: []schema.Hook{
			{Name: "a", Event: schema.PreToolUse, Type: schema.Command, Handler: "./a.sh", Timeout: schema.DefaultTimeout, Pool: "default"},
			{Name: "b", Event: schema.PostToolUse, Type: schema.Builtin, Handler: "log", Timeout: schema.DefaultTimeout, Pool: "default", Readonly: true, Idempotent: true},
			{Name: "late", Event: schema.PreToolUse, Type: schema.Command, Handler: "./c.sh", Timeout: schema.DefaultTimeout, Pool: "default", Registered: true},
			{Name: "a-2", Event: schema.PreToolUse, Agent: "team-*", Type: schema.Command, Handler: "./a.sh", Timeout: schema.DefaultTimeout, Pool: "default", Registered: true},
		},
		Overrides: []schema.Override{{Agent: "team-*", Event: schema.QueryEnd, Registered: true}},
	}
	const want = `hooks:
  PreToolUse:
    - handler: ./a.sh
    # registered at run time
    - name: late
      handler: ./c.sh
  PostToolUse:
    - name: b
      type: builtin
      handler: log

agents:
  - id: team-*
    hooks:
      PreToolUse:
        # registered at run time
        - name: a-2
          handler: ./a.sh
      QueryEnd:
        # registered at run time
        override: true
        hooks: []
`
	if d := cmp.Diff(want, string(hooksyaml.Write(&c))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAnEmptyConfigurationIsWritten(t *testing.T) {
	if d := cmp.Diff("presets: []\n\nhooks: {}\n", string(hooksyaml.Write(&schema.Config{}))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Names are written only where leaving them out would change them.
func TestNamesThatAreWritten(t *testing.T) {
	for _, c := range []struct{ name, hooks, want string }{
		{"none if all are derived", "[{handler: ./a.sh}, {handler: ./a.py}, {handler: b/a}]", ""},
		{"one that could be derived, but of another hook", "[{handler: ./a.sh}, {handler: ./b.sh, name: a-2}, {handler: ./a.sh}]", "a-2"},
		{"one that is derived when its base is taken", "[{name: a, handler: ./b.sh}, {handler: ./a.sh}]", "a"},
		{"one whose number is too high", "[{handler: ./a.sh}, {name: a-7, handler: ./a.sh}, {handler: ./a.sh}]", "a-7"},
		{"one that is only like a derived one", "[{name: a-b, handler: ./a.sh}, {handler: ./a.sh}]", "a-b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := read(t, "hooks: {PreToolUse: "+c.hooks+"}")
			readsBack(t, &doc.Config)
			var names []string
			for line := range strings.Lines(string(hooksyaml.Write(&doc.Config))) {
				if _, name, ok := strings.Cut(line, "name: "); ok {
					names = append(names, strings.TrimSpace(name))
				}
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The text of a configuration has no characters that control a terminal, and still reads
// back as the same configuration.
func TestInvisibleCharactersAreWrittenAsEscapes(t *testing.T) {
	const hidden = "\x1b[2J\u009b31m\u202e\u2028\ufeff\U000e0041 \\x1b \"quoted\"\r\n\tend"
	c := schema.Config{Hooks: []schema.Hook{
		{Name: "a", Event: schema.PreToolUse, Type: schema.Command, Handler: "./a.sh", Args: []string{hidden, "plain"}, Timeout: schema.DefaultTimeout, Pool: "default"},
	}}
	readsBack(t, &c)
	if text := string(hooksyaml.Write(&c)); text != schema.VisibleText(text) {
		t.Errorf("%q", text)
	}
}
