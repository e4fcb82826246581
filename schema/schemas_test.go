package schema_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

func jsonSchema(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(read(t, name+".schema.json"), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func validate(t *testing.T, s *jsonschema.Resolved, data []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func TestGoldenFilesKeepTheirSchemas(t *testing.T) {
	for _, kind := range []string{"event", "result", "verdict"} {
		s := jsonSchema(t, kind)
		for _, dir := range []string{wireDir, filepath.Join(wireDir, "newer")} {
			for _, file := range list(t, dir, ".json") {
				if !strings.HasPrefix(file, kind) {
					continue
				}
				if err := validate(t, s, read(t, filepath.Join(dir, file))); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}

// Each control request about the queue satisfies the schema of its endpoint.
func TestControlRequestsKeepTheirSchemas(t *testing.T) {
	answers := []string{"receipt", "duplicate", "answer", "document"}
	for _, file := range list(t, "control", ".schema.json") {
		verb := strings.TrimSuffix(file, ".schema.json")
		s := jsonSchema(t, "control/"+verb)
		if text := schema.ControlSchema(verb); text != string(read(t, filepath.Join("control", file))) {
			t.Errorf("%s: its endpoint shows %q", verb, text)
		}
		for _, golden := range list(t, wireDir, ".json") {
			name, kind, _ := strings.Cut(strings.TrimSuffix(golden, ".json"), ".")
			if name != verb || slices.Contains(answers, kind) {
				continue
			}
			if err := validate(t, s, read(t, filepath.Join(wireDir, golden))); err != nil {
				t.Errorf("%s: %v", golden, err)
			}
		}
		if validate(t, s, []byte(`[]`)) == nil {
			t.Errorf("%s: its schema lets a list pass", verb)
		}
	}
	if schema.ControlSchema("status") != "" {
		t.Error("there is a schema of what has none")
	}
}

func TestSchemasAndReadersRejectTheSame(t *testing.T) {
	for kind, faulty := range map[string][]string{
		"event": {
			`[]`, `{}`, `{"hook_type":"PreCompact"}`, `{"hook_type":"PreToolUse","tool_input":[]}`, `{"hook_type":"PreToolUse","tool_name":1}`,
			`{"hook_type":"PreToolUse","labels":{"a":1}}`, `{"hook_type":"PreToolUse","iteration":1.5}`, `{"hook_type":"AfterLLMCall","message":[]}`,
		},
		"result": {`[]`, `"allow"`, `null`, `{"error":"no"}`, `{"desicion":"deny"}`,
			`{"desicion":"deny","reason":"no"}`, `{"desicion":"deny","metadata":{}}`, `{"permissionDecision":"deny","hookSpecificOutput":{"hookEventName":"PreToolUse"}}`, `{"hookSpecificOutput":{"permissionDesicion":"deny","permissionDecisionReason":"no"}}`},
		"verdict": {`{}`, `{"decision":""}`, `{"decision":"DENY"}`, `{"decision":"deny","executed_hooks":[{"hook":"a","outcome":"odd"}]}`, `{"decision":"deny","executed_hooks":[{"hook":"a","outcome":"ok","duration":5}]}`},
	} {
		s := jsonSchema(t, kind)
		for _, data := range faulty {
			if validate(t, s, []byte(data)) == nil {
				t.Errorf("the schema of a %s lets %s pass", kind, data)
			}
		}
	}
}

// The schema of results accepts exactly the answers without faults.
func TestTheSchemaOfResultsAgreesWithTheReader(t *testing.T) {
	s := jsonSchema(t, "result")
	for _, c := range goodAnswers {
		faulty := c.name == "an unknown strategy is kept for the fold to judge" || c.name == "garbage beside a deny does not undo it"
		if faulty || !json.Valid([]byte(c.answer)) {
			continue
		}
		if err := validate(t, s, []byte(c.answer)); err != nil {
			t.Errorf("%s: %s: %v", c.name, c.answer, err)
		}
	}
	for _, c := range unknownDecisions {
		if validate(t, s, []byte(c.answer)) == nil && json.Valid([]byte(c.answer)) {
			t.Errorf("the schema lets the unknown decision pass: %s", c.answer)
		}
	}
	for _, c := range faultyAnswers {
		beyond := strings.Contains(c.answer, `"modified_args":"`) || c.name == "another event's name" // a schema cannot check these
		if !beyond && validate(t, s, []byte(c.answer)) == nil {
			t.Errorf("the schema lets the faulty answer pass: %s", c.answer)
		}
	}
}

// The folder has answers in the forms of real hooks, each named for its event, with the
// expected results.
func TestAnswersOfRealHooksAreRead(t *testing.T) {
	const dir = "testdata/answers"
	s := jsonSchema(t, "result")
	files := list(t, dir, ".json")
	for _, file := range files {
		if strings.HasSuffix(file, ".result.json") {
			continue
		}
		t.Run(file, func(t *testing.T) {
			data := read(t, filepath.Join(dir, file))
			if err := validate(t, s, data); err != nil {
				t.Error(err)
			}
			event, _, _ := strings.Cut(file, ".")
			r, err := schema.DecodeResult(schema.EventType(event), data)
			if err != nil || len(r.HookErrors) > 0 || !schema.EventType(event).Permits(r.Decision) {
				t.Fatalf("%+v, %v", r, err)
			}
			golden := filepath.Join(dir, strings.TrimSuffix(file, ".json")+".result.json")
			got := indented(t, &r)
			if *update {
				write(t, golden, got)
			}
			if diff := cmp.Diff(read(t, golden), got); diff != "" {
				t.Errorf("(-file +code):\n%s", diff)
			}
		})
	}
	if len(files) < 20 {
		t.Errorf("only %d files", len(files))
	}
}

// Every accepted configuration satisfies the schema, and every configuration that the
// schema rejects is rejected.
func TestConfigurationsKeepTheSchemaOfHooks(t *testing.T) {
	s := jsonSchema(t, "hooks")
	for _, file := range list(t, "hooksyaml/testdata/good", ".yaml") {
		v := readYAML(t, filepath.Join("hooksyaml/testdata/good", file))
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, text := range []string{
		"hooks: {PreToolUse: [{}]}", "hooks: {PreToolUse: [{handler: a.b, timeout: soon}]}", "hooks: {PreToolUse: [{handler: a.b, timeout: -1}]}",
		"hooks: {PreToolUse: [{handler: a.b, fail_close: true}]}", "hooks: {PreCompact: [{handler: a.b}]}", "hook: {}", "presets: [all]",
		"hooks: {PreToolUse: {override: true, hooks: []}}", "agents: [{hooks: {}}]", "agents: [{id: a, hook: {}}]", "hooks: [{handler: a.b}]",
		"hooks: [{type: command, handler: ./a}]", "hooks: [{type: PreToolUse, handler: a.b, callable: a.b}]", "hooks: {PreToolUse: [{handler: a.b, mode: watch}]}",
		"hooks: {PreToolUse: [{handler: a.b, needs: [secrets]}]}", "hooks: {PreToolUse: [{handler: a.b, env: ['A=b']}]}", "- a", "hooks: {PreToolUse: [{handler: a.b, pool: 'a b'}]}",
		"hooks: {PreToolUse: [{handler: a.b, max_concurrent: -1}]}", "hooks: {PreToolUse: [{handler: a.b, type: lua}]}", "hooks: {PreToolUse: [{handler: a.b, matcher: 5}]}",
		"python: {hosts: 0}", "python: {memory: 512}", "python: {memory: 1G}", "python: {threads: 4}", "python: python3", "$schema: 5",
		"hooks: {PreToolUse: [{type: http, handler: 'https://a.b/', headers: {'a b': c}}]}", "hooks: {PreToolUse: [{type: http, handler: 'https://a.b/', headers: [a]}]}",
		"hooks: {PreToolUse: [{type: http, handler: 'https://a.b/', sign: '${A}'}]}", "hooks: {PreToolUse: [{type: http, handler: 'https://a.b/', tls: {cert: a}}]}",
		"hooks: {PreToolUse: [{type: http, handler: 'https://a.b/', tls: {insecure: true}}]}", "hooks: {PreToolUse: [{handler: a.b, registered: true}]}",
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if s.Validate(v) == nil {
			t.Errorf("the schema lets pass: %s", text)
		}
		if _, err := hooksyaml.Read("hooks.yaml", []byte(text), hooksyaml.Options{}); err == nil {
			t.Errorf("the schema refuses what is read: %s", text)
		}
	}
}

func readYAML(t *testing.T, path string) any {
	t.Helper()
	var v any
	text := strings.TrimPrefix(string(read(t, path)), "\ufeff")
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	// As JSON, so that numbers and maps have a JSON reader's types.
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
