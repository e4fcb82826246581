package app_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/broker/app"
)

// policy writes files into a folder, and returns the folder.
func policy(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runTest runs broker test.
func runTest(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = app.Main(t.Context(), append([]string{"test"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

const testedHooks = `
hooks:
  PreToolUse:
    - {name: rewrite, type: cel, matcher: Edit, options: {rewrite: '{"file_path": tool_input.file_path + ".new"}'}}
    - {name: guard, handler: ./guard.sh, matcher: "Write|Edit", fail_closed: true, pool: far, when: tool_input.file_path != "free"}
    - {name: cel, type: cel, options: {deny: 'action.paths.exists(p, p.path.under("/etc"))', reason: '"no files below /etc"'}}
  PostToolUse:
    - {name: note, type: builtin, handler: inject_text, options: {text: "mind the tests"}}
`

const guardProgram = `#!/bin/sh
read -r event
case $event in *secret*) echo '{"decision":"deny","reason":"it is a secret"}';; *) echo '{}';; esac
`

const passingCases = `
cases:
  - name: the program denies
    event: {hook_type: PreToolUse, tool_name: Write, tool_input: {file_path: secret}}
    expect: {decision: deny, by: guard, reason: secret, asked: [guard], not_asked: [cel]}
  - name: the program allows
    event: {hook_type: PreToolUse, tool_name: Write, tool_input: {file_path: a}}
    expect: {decision: continue, asked: [guard, cel]}
  - name: an expression denies
    event: {hook_type: PreToolUse, tool_name: Read, tool_input: {file_path: /etc/passwd}, runtime: claude}
    expect: {decision: deny, by: cel, reason: "/^no files/", not_asked: [guard]}
  - name: an input is rewritten
    event: {hook_type: PreToolUse, tool_name: Edit, tool_input: {file_path: a}}
    expect: {decision: continue, updated_input: {file_path: a.new}}
  - name: a program that fails denies
    hooks: {guard: {fails: timeout}}
    event: {hook_type: PreToolUse, tool_name: Write, tool_input: {file_path: a}}
    expect: {decision: deny, by: guard, hook_errors: ['hook "guard": did not answer before its deadline']}
  - name: steps
    steps:
      - {event: {hook_type: PreToolUse, tool_name: Write, tool_input: {file_path: free}}, expect: {not_asked: [guard]}}
      - {event: {hook_type: PostToolUse, tool_name: Bash, tool_output: ok}, expect: {injections: [mind]}}
`

func TestCasesPass(t *testing.T) {
	dir := policy(t, map[string]string{"hooks.yaml": testedHooks, "guard.sh": guardProgram, "tests/write.yaml": passingCases})
	code, stdout, stderr := runTest(t, dir)
	want := "ok    the program denies\nok    the program allows\nok    an expression denies\nok    an input is rewritten\nok    a program that fails denies\nok    steps\n6 cases: 6 passed, 0 failed\n"
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	code, stdout, _ = runTest(t, "--coverage", "--require-cases", filepath.Join(dir, "tests", "write.yaml"))
	if code != 0 || strings.Contains(stdout, "no case") {
		t.Errorf("%d\n%s", code, stdout)
	}
}

func TestCasesFail(t *testing.T) {
	dir := policy(t, map[string]string{"hooks.yaml": testedHooks, "guard.sh": guardProgram, "cases.yaml": `
cases:
  - name: wrong
    event: {hook_type: PreToolUse, tool_name: Read, tool_input: {file_path: /etc/x}, runtime: claude}
    expect: {decision: ask, by: guard, reason: other, updated_input: {a: 1}, asked: [guard], not_asked: [cel], hook_errors: [x], injections: [y]}
  - steps:
      - {event: {hook_type: SessionStart}}
      - {event: {hook_type: SessionStart}, expect: {decision: deny}}
`})
	code, stdout, stderr := runTest(t, dir)
	want := `FAIL  wrong (` + dir + `/cases.yaml:3)
      want decision: ask
      got  decision: deny (no files below /etc)
      want by: guard
      got  by: cel
      want reason: other
      got  reason: no files below /etc
      want updated_input: {"a":1}
      got  updated_input: ` + `
      want asked: guard
      got  asked: cel
      want not_asked: cel
      got  asked: cel
      want hook_errors: x
      got  hook_errors: ` + `
      want injections: y
      got  injections: ` + `
FAIL  case 2 (` + dir + `/cases.yaml:6, step 2)
      want decision: deny
      got  decision: continue
2 cases: 0 passed, 2 failed
`
	if code != 1 || stdout != want || stderr != "broker: 2 of 2 cases failed\n" {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	junit := filepath.Join(dir, "report.xml")
	code, stdout, _ = runTest(t, "--json", "--junit", junit, filepath.Join(dir, "cases.yaml"))
	var first struct {
		Name      string
		OK        bool
		Want, Got []string
	}
	if err := json.Unmarshal([]byte(strings.SplitN(stdout, "\n", 2)[0]), &first); code != 1 || err != nil || first.OK || first.Name != "wrong" || first.Want[0] != "decision: ask" {
		t.Errorf("%d %v %+v\n%s", code, err, first, stdout)
	}
	data, err := os.ReadFile(junit)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(data, &report); err != nil || report.Tests != 2 || report.Failures != 2 {
		t.Errorf("%v %+v\n%s", err, report, data)
	}
}

func TestCoverageOfCases(t *testing.T) {
	dir := policy(t, map[string]string{"hooks.yaml": testedHooks, "guard.sh": guardProgram, "cases.yaml": `
cases:
  - {event: {hook_type: PreToolUse, tool_name: Write, tool_input: {file_path: a}}}
`})
	code, stdout, stderr := runTest(t, "--coverage", "--require-cases", "--stub", dir)
	want := "ok    case 1\nno case  rewrite: run\nno case  guard: when false\nno case  note: run\n1 cases: 1 passed, 0 failed\n"
	if code != 1 || stdout != want || stderr != "broker: no case runs rewrite, note; write one, or leave out --require-cases\n" {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

func TestFaultyCases(t *testing.T) {
	event := "event: {hook_type: PreToolUse, tool_name: Write, tool_input: {}}"
	for text, want := range map[string]string{
		"":                     "is empty; write a list of cases",
		"cases: []":            "has no cases",
		"cases: [{nme: x}]":    `:1:10: there is no key "nme" here`,
		"cases: [{name: 3}]":   ":1:16: name is a number, which does not fit",
		"cases:\n- {name: x}":  `:2:3: the case "x" needs an event, or steps`,
		"cases: [{event: x}]":  "has an event that is not a mapping",
		"cases: [{event: {}}]": "unknown hook_type",
		"cases: [{event: {hook_type: PreToolUse}}]":                "an event about a tool without tool_name",
		"cases: [{" + event + ", expect: {decision: [no]}}]":       `does not fit`,
		"cases: [{" + event + ", expect: {decision: maybe}}]":      `expects the decision "maybe"; write continue`,
		"cases: [{" + event + ", expect: {reason: /(/}}]":          "pattern is not valid",
		"cases: [{" + event + ", expect: {by: gard}}]":             "has by: gard, but no hook has this name; the hooks are rewrite, guard",
		"cases: [{" + event + ", hooks: {guard: {fails: never}}}]": `fail by "never"; write timeout`,
		"cases: [{" + event + ", hooks: {gard: {fails: junk}}}]":   "has hooks: gard, but no hook has this name",
		"config: none.yaml\ncases: [{" + event + "}]":              "none.yaml",
		"cases: [}": "cases.yaml",
	} {
		dir := policy(t, map[string]string{"hooks.yaml": testedHooks, "guard.sh": guardProgram, "cases.yaml": text})
		if code, _, stderr := runTest(t, filepath.Join(dir, "cases.yaml")); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s, not %q", text, code, stderr, want)
		}
	}
	dir := policy(t, map[string]string{"cases.yaml": "cases: [{" + event + "}]"})
	if code, _, stderr := runTest(t, dir); code != 1 || !strings.Contains(stderr, "there is no hooks.yaml beside it") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, _, stderr := runTest(t, t.TempDir()); code != 1 || !strings.Contains(stderr, "there are no cases in") {
		t.Errorf("%d %s", code, stderr)
	}
	dir = policy(t, map[string]string{"hooks.yaml": "hooks: {PreToolUse: [{handler: ./missing.sh}]}", "cases.yaml": "cases: [{" + event + "}]"})
	if code, _, stderr := runTest(t, dir); code != 1 || !strings.Contains(stderr, `the hook "missing" cannot be loaded`) {
		t.Errorf("%d %s", code, stderr)
	}
}
