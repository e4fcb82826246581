package hooksyaml_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

func read(t *testing.T, text string) *hooksyaml.Document {
	t.Helper()
	doc, err := hooksyaml.Read("hooks.yaml", []byte(text), hooksyaml.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sound(t, doc)
	return doc
}

// wrote returns the hooks in a file: all except those of presets.
func wrote(doc *hooksyaml.Document) []schema.Hook {
	return slices.DeleteFunc(slices.Clone(doc.Config.Hooks), func(h schema.Hook) bool { return h.Preset != "" })
}

func faults(t *testing.T, text string) hooksyaml.Faults {
	t.Helper()
	_, err := hooksyaml.Read("hooks.yaml", []byte(text), hooksyaml.Options{})
	fs, ok := errors.AsType[hooksyaml.Faults](err)
	if !ok {
		t.Fatalf("got %v, want faults", err)
	}
	return fs
}

func TestDefaults(t *testing.T) {
	for _, event := range schema.EventTypes() {
		h := wrote(read(t, fmt.Sprintf("hooks: {%s: [{handler: ./a.sh}]}", event)))[0]
		rewrites := event == schema.PreToolUse || event == schema.AfterLLMCall || event == schema.BeforeFinalResponse
		want := schema.Hook{Name: "a", Event: event, Type: schema.Command, Handler: "./a.sh", Timeout: schema.DefaultTimeout,
			Pool: schema.DefaultPool, Readonly: !rewrites, Idempotent: !rewrites}
		if d := cmp.Diff(want, h); d != "" {
			t.Errorf("%s (-want +got):\n%s", event, d)
		}
	}
}

func TestIdempotentFollowsReadonly(t *testing.T) {
	for _, c := range []struct {
		name, fields         string
		readonly, idempotent bool
	}{
		{"neither is given", "", false, false},
		{"readonly is given", "readonly: true", true, true},
		{"both are given", "readonly: true, idempotent: false", true, false},
		{"a rewriter may run again if it says so", "idempotent: true", false, true},
		{"what is denied stays denied", "readonly: false, idempotent: false", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := wrote(read(t, "hooks: {PreToolUse: [{handler: ./a.sh, "+c.fields+"}]}"))[0]
			if h.Readonly != c.readonly || h.Idempotent != c.idempotent {
				t.Errorf("readonly %v, idempotent %v", h.Readonly, h.Idempotent)
			}
		})
	}
}

func TestTypeIsInferredFromTheHandler(t *testing.T) {
	for handler, want := range map[string]schema.Kind{
		"./a": schema.Command, "a/b.c": schema.Command, "a.sh": schema.Command, "a.b.py": schema.Command, "/bin/true": schema.Command,
		"pkg.f": schema.Python, "pkg.sub.mod.f": schema.Python, "_p._f": schema.Python, "prüfung.los": schema.Python,
	} {
		if h := wrote(read(t, "hooks: {PreToolUse: [{handler: "+handler+"}]}"))[0]; h.Type != want {
			t.Errorf("%s is taken for %s", handler, h.Type)
		}
	}
}

func TestTimeouts(t *testing.T) {
	for given, want := range map[string]string{
		"5": "5s", "0.5": "500ms", "10.5": "10.5s", "1e1": "10s", "5s": "5s", "1m30s": "1m30s", `"250ms"`: "250ms", "0.001": "1ms", "86400": "24h0m0s",
	} {
		if h := wrote(read(t, "hooks: {PreToolUse: [{handler: ./a.sh, timeout: "+given+"}]}"))[0]; h.Timeout.String() != want {
			t.Errorf("%s is read as %s, want %s", given, h.Timeout, want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ name, hooks, want string }{
		{"the file's name without its ending", "[{handler: ./policies/shell.sh}]", "shell"},
		{"a function's dotted name", "[{handler: my_pkg.hooks.check}]", "my_pkg.hooks.check"},
		{"a builtin's name", "[{type: builtin, handler: log}]", "log"},
		{"a URL without its scheme and question", `[{type: http, handler: "https://p.example/v1/?k=1"}]`, "p.example/v1"},
		{"derived names are counted", "[{handler: ./a.sh}, {handler: ./a.py}, {handler: b/a}]", "a a-2 a-3"},
		{"a name that was given is not taken from its hook", "[{handler: ./a.sh}, {handler: ./b.sh, name: a}, {handler: ./a.sh}]", "a-2 a a-3"},
		{"a given name may look derived", "[{handler: ./a.sh}, {handler: ./a.sh}, {handler: ./b.sh, name: a-2}]", "a a-3 a-2"},
		{"what does not print is replaced", `[{handler: "./a\tb"}]`, "a_b"},
		{"a long handler makes a name that fits", "[{handler: ./" + strings.Repeat("ü", 200) + "}]", strings.Repeat("ü", 61)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			for _, h := range wrote(read(t, "hooks: {PreToolUse: "+c.hooks+"}")) {
				names = append(names, h.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRegistrationOrder(t *testing.T) {
	doc := read(t, `
agents:
  - id: b
    hooks:
      PreToolUse: {override: true, hooks: [{handler: ./b1.sh}]}
      QueryEnd: {override: true}
  - id: "a*"
    hooks: [{type: PreToolUse, callable: p.a1}]
hooks:
  PostToolUse: [{handler: ./g1.sh}]
  PreToolUse: [{handler: ./g2.sh}, {handler: ./g3.sh}]
`)
	var order []string
	for _, h := range wrote(doc) {
		order = append(order, h.Name+"@"+h.Agent)
	}
	if d := cmp.Diff([]string{"g1@", "g2@", "g3@", "b1@b", "p.a1@a*"}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	want := []schema.Override{{Agent: "b", Event: schema.PreToolUse}, {Agent: "b", Event: schema.QueryEnd}}
	if d := cmp.Diff(want, doc.Config.Overrides); d != "" {
		t.Errorf("overrides (-want +got):\n%s", d)
	}
}

func TestEmptyOverrideStillDropsTheGlobalHooks(t *testing.T) {
	doc := read(t, "agents: [{id: a, hooks: {PreToolUse: {override: true, hooks: []}}}]")
	if len(doc.Config.Overrides) != 1 || doc.Config.HookCount() != 0 {
		t.Errorf("got %+v", doc.Config)
	}
}

func TestBlanksInAHandlerAreWarnedAbout(t *testing.T) {
	doc := read(t, "hooks: {PreToolUse: [{handler: ./a.sh --strict}, {handler: ./a.sh --strict, shell: true}]}")
	want := `hooks.yaml:1:32: the handler "./a.sh --strict" is read as one path with spaces in it; arguments belong into args:`
	if len(doc.Warnings) != 1 || doc.Warnings[0].String() != want {
		t.Errorf("got %v", doc.Warnings)
	}
}

// TestATimeoutThatRuntimesEndEarlyIsWarnedAbout checks that a timeout above the runtimes'
// default is accepted only with a warning.
func TestATimeoutThatRuntimesEndEarlyIsWarnedAbout(t *testing.T) {
	for hook, says := range map[string]string{
		"{handler: ./a}":                              "",
		"{handler: ./a, timeout: 48}":                 "",
		"{handler: ./a, timeout: 48.1}":               "--timeout 1m1s",
		"{handler: ./a, timeout: 60}":                 "there the hook ends after 48s: install with --timeout 1m15s",
		"{handler: ./a, timeout: 60, mode: shadow}":   "",
		"{handler: ./a, timeout: 10m, matcher: Bash}": "--timeout 12m30s",
	} {
		doc := read(t, "hooks: {PreToolUse: ["+hook+"]}")
		if len(doc.Warnings) > 1 || (len(doc.Warnings) == 1) != (says != "") || says != "" && !strings.Contains(doc.Warnings[0].Message, says) {
			t.Errorf("%s: warnings %v; want %q", hook, doc.Warnings, says)
		}
	}
}

// TestAMatcherThatCanHardlyMatchIsWarnedAbout: such a matcher is still accepted, because
// applied configurations contain some.
func TestAMatcherThatCanHardlyMatchIsWarnedAbout(t *testing.T) {
	for matcher, says := range map[string]string{
		"Write|Edit": "", "mcp__*": "", "a[,]b": "",
		"Write,Edit": `write "Write|Edit"`, "!Bash": `when: 'tool_name != "Bash"'`, "{a,b": `write "a|b"`, "{Write,Edit}": `write "Write|Edit"`,
	} {
		doc := read(t, "hooks: {PreToolUse: [{handler: ./a, matcher: '"+matcher+"'}]}")
		if hooks := wrote(doc); len(hooks) != 1 || hooks[0].Matcher != matcher {
			t.Errorf("%s is read as %+v", matcher, hooks)
		}
		if len(doc.Warnings) > 1 || (len(doc.Warnings) == 1) != (says != "") || says != "" && !strings.HasSuffix(doc.Warnings[0].String(), says) {
			t.Errorf("%s: warnings %v; want %q", matcher, doc.Warnings, says)
		}
	}
}

func TestConditionsAreCheckedIfThereIsACompiler(t *testing.T) {
	text := []byte("hooks: {PreToolUse: [{handler: ./a.sh, when: tool_imput.x}]}")
	doc, err := hooksyaml.Read("f", text, hooksyaml.Options{})
	if err != nil || wrote(doc)[0].When != "tool_imput.x" {
		t.Errorf("got %v, %v", doc, err)
	}
	if _, err := hooksyaml.Read("f", text, compilers()); err == nil {
		t.Error("the condition was let in")
	}
}

func TestFaultsAreOrderedAndEncodeAsJSON(t *testing.T) {
	fs := faults(t, "agents:\n  - {id: a, hooks: {Nope: []}}\nhooks: {PreToolUse: [{handler: ./a.sh, colour: red}]}\n")
	raw, err := schema.Marshal(fs[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(raw), `{"file":"hooks.yaml","line":2,"column":21,"message":"unknown event \"Nope\"","hint":"write one of `) {
		t.Errorf("got %s", raw)
	}
	if len(fs) != 2 || fs[1].Line != 3 {
		t.Errorf("got %v", fs)
	}
}

func TestAFaultInAnAliasIsReportedOnce(t *testing.T) {
	fs := faults(t, "hooks:\n  PreToolUse: &a [{handler: ./a.sh, colour: red}]\n  PostToolUse: *a\n")
	if len(fs) != 1 {
		t.Errorf("got %v", fs)
	}
}

func TestSecretsAreNotRepeatedInFaults(t *testing.T) {
	data, err := os.ReadFile("testdata/faulty/secrets.yaml")
	if err != nil || !strings.Contains(string(data), "hunter2") {
		t.Fatal(err)
	}
	if text := faults(t, string(data)).Error(); strings.Contains(text, "hunter2") {
		t.Errorf("the secret is shown:\n%s", text)
	}
}

func TestASecretInAHeaderIsWarnedAbout(t *testing.T) {
	for header, warned := range map[string]bool{
		`Authorization: "Bearer hunter2"`: true, `authorization: "Bearer ${TOKEN}"`: false, `X-Api-Key: hunter2`: true,
		`Cookie: "id=${ID}"`: false, `X-Team: platform`: false, `X-Cost: "$$5"`: false, `X-Access-Token: "$$TOKEN"`: true,
	} {
		doc := read(t, "hooks: {PreToolUse: [{type: http, handler: 'https://p.example/', headers: {"+header+"}}]}")
		if (len(doc.Warnings) > 0) != warned {
			t.Errorf("%s: got the warnings %v", header, doc.Warnings)
		}
		for _, w := range doc.Warnings {
			if strings.Contains(w.Message, "hunter2") {
				t.Errorf("the warning repeats the secret: %s", w)
			}
		}
	}
}

func TestNamesUsedOutsideTheFile(t *testing.T) {
	taken := func(name string) bool { return name == "shell" || name == "shell-2" || name == "guard" }
	text := []byte("hooks: {PreToolUse: [{handler: ./shell.sh}, {handler: ./x/shell.sh}, {name: shell-3, handler: ./b.sh}]}")
	doc, err := hooksyaml.Read("f", text, hooksyaml.Options{Taken: taken})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range wrote(doc) {
		names = append(names, h.Name)
	}
	if d := cmp.Diff([]string{"shell-4", "shell-5", "shell-3"}, names); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	_, err = hooksyaml.Read("f", []byte("hooks: {PreToolUse: [{name: guard, handler: ./a.sh}]}"), hooksyaml.Options{Taken: taken})
	fs, _ := errors.AsType[hooksyaml.Faults](err)
	const want = `f:1:29: the name "guard" is taken by a hook of the running configuration; write another one, or remove it`
	if len(fs) != 1 || fs[0].Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestMemoryOfPython(t *testing.T) {
	for given, want := range map[string]int64{
		"512MiB": 512 << 20, "1GiB": 1 << 30, "256MB": 256_000_000, "1.5 GiB": 3 << 29, "16777216": 1 << 24, "1TiB": 1 << 40, "20000KiB": 20000 << 10,
	} {
		if got := read(t, "python: {memory: "+given+"}").Config.Python.Memory; got != want {
			t.Errorf("%s is read as %d, want %d", given, got, want)
		}
	}
	for _, given := range []string{"512", "0", "-1GiB", "1G", "1gib", "1.5", "true", "[1GiB]", "1GiB 2", "9999999999999999999999"} {
		if fs := faults(t, "python: {memory: "+given+"}"); len(fs) != 1 || fs[0].Column != 18 {
			t.Errorf("%s: got %v", given, fs)
		}
	}
}

// The delay of an agent is a hook of the agent, at each of its places, and its timeout is
// longer than the delay.
func TestAnAgentsDelayIsAHook(t *testing.T) {
	for text, want := range map[string]string{
		"agents:\n  - id: b\n    backend:\n      debug_delay_seconds: 30\n      debug_delay_after_n_tools: 2\n":                  "b PostToolUse 1m0s map[debug_delay_after_n_tools:2 debug_delay_seconds:30]",
		"agents:\n  - id: b\n    backend: {debug_delay_seconds: 0.5}\n":                                                          "b PostToolUse 30.5s map[debug_delay_seconds:0.5]",
		"agents:\n  - id: b\n    backend: {debug_delay_after_n_tools: 2, debug_delay_seconds: null}\n":                           "",
		"hooks:\n  PostToolUse:\n    - {type: builtin, handler: debug_delay, options: {debug_delay_seconds: 45}}\n":              " PostToolUse 1m15s map[debug_delay_seconds:45]",
		"hooks:\n  PostToolUse:\n    - {type: builtin, handler: debug_delay, timeout: 50, options: {debug_delay_seconds: 45}}\n": " PostToolUse 50s map[debug_delay_seconds:45]",
		"hooks:\n  PostToolUse:\n    - {type: builtin, handler: debug_delay, options: {debug_delay_seconds: -5}}\n":              " PostToolUse 30s map[debug_delay_seconds:-5]",
	} {
		var got []string
		for _, h := range wrote(read(t, text)) {
			got = append(got, fmt.Sprintf("%s %s %v %v", h.Agent, h.Event, h.Timeout.Std(), h.Options))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if fs := faults(t, "agents:\n  - id: b\n    backend: {debug_delay_second: 30}\n"); !strings.Contains(fs.Error(), `did you mean "debug_delay_seconds"`) {
		t.Error(fs)
	}
}
