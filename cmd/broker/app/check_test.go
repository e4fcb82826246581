package app_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// check runs `broker check` with stdin.
func check(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = app.Main(t.Context(), append([]string{"check"}, args...), strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

const (
	soundFile  = "hooks: {PreToolUse: [{handler: ./a b.sh}, {type: builtin, handler: deny}]}\n"
	faultyFile = "hooks:\n  PreToolUse:\n    - {type: builtin, handler: deny, tiemout: 5}\n    - {handler: ./a.sh, when: 'tool_imput == 1'}\n"
)

func TestCheckPrintsText(t *testing.T) {
	code, stdout, stderr := check(t, soundFile, "-")
	if code != 0 || stdout != "stdin: 2 hooks, no faults\n" || !strings.HasPrefix(stderr, `stdin:1:32: the handler "./a b.sh" is read as one path`) {
		t.Errorf("a correct file: %d\n%s%s", code, stdout, stderr)
	}

	if _, stdout, _ := check(t, "packs: [destructive]", "-"); !strings.HasPrefix(stdout, "stdin: 2 hooks with ") || !strings.HasSuffix(stdout, " rules of packs, no faults\n") {
		t.Errorf("the hook of a pack is not counted: %s", stdout)
	}

	code, stdout, stderr = check(t, faultyFile, "-")
	if code != 1 || stdout != "" {
		t.Errorf("a faulty file: %d\n%s", code, stdout)
	}
	const first = `stdin:3:38: unknown key "tiemout" of a hook; did you mean "timeout"?
    3 |     - {type: builtin, handler: deny, tiemout: 5}
      |                                      ^
stdin:4:32: the condition cannot be compiled: `
	const last = "\nbroker: stdin has 2 faults\n"
	if !strings.HasPrefix(stderr, first) || !strings.HasSuffix(stderr, last) {
		t.Errorf("got\n%s\nwant\n%s…%s", stderr, first, last)
	}

	if code, _, stderr := check(t, "hook: {}", "-"); code != 1 || !strings.HasSuffix(stderr, "\nbroker: stdin has a fault\n") {
		t.Errorf("a file with one fault: %d\n%s", code, stderr)
	}
}

func TestCheckPrintsJSON(t *testing.T) {
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		stdout      string
		stderr      string
	}{
		{
			"a sound file", "hooks: {PreToolUse: [{handler: ./a.sh}]}", []string{"--json", "-"}, 0,
			`{"file":"stdin","ok":true,"hooks":1,"faults":[],"warnings":[]}`, "",
		},
		{
			"a sound file with a warning", soundFile, []string{"--json", "-"}, 0,
			`{"file":"stdin","ok":true,"hooks":2,"faults":[],"warnings":[{"file":"stdin","line":1,"column":32,` +
				`"message":"the handler \"./a b.sh\" is read as one path with spaces in it; arguments belong into args:"}]}`, "",
		},
		{
			"a faulty file", "hooks:\n  PreToolUse:\n    - {handler: ./a.sh, tiemout: 5}\n", []string{"-", "--json"}, 1,
			`{"file":"stdin","ok":false,"hooks":0,"faults":[{"file":"stdin","line":3,"column":25,"message":"unknown key \"tiemout\" of a hook",` +
				`"hint":"did you mean \"timeout\"?","source":"    - {handler: ./a.sh, tiemout: 5}"}],"warnings":[]}`,
			"broker: stdin has a fault\n",
		},
		{
			"a file that is not there", "", []string{"--json", "no/such.yaml"}, 1,
			`{"file":"no/such.yaml","ok":false,"hooks":0,"faults":[{"file":"no/such.yaml","line":1,"column":1,` +
				`"message":"cannot read the configuration: open no/such.yaml: no such file or directory"}],"warnings":[]}`,
			"broker: cannot read the configuration: open no/such.yaml: no such file or directory\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := check(t, c.stdin, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if d := cmp.Diff([]string{c.stdout + "\n", c.stderr}, []string{stdout, stderr}); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestCheckReportsUnreadableStdin(t *testing.T) {
	var out, errs bytes.Buffer
	code := app.Main(t.Context(), []string{"check", "-", "--json"}, iotest.ErrReader(errors.New("the pipe broke")), &out, &errs)
	var report struct {
		OK     bool             `json:"ok"`
		Faults hooksyaml.Faults `json:"faults"`
	}
	if err := schema.Unmarshal(out.Bytes(), &report); err != nil || code != 1 || report.OK || len(report.Faults) != 1 ||
		!strings.Contains(report.Faults[0].Message, "the pipe broke") {
		t.Errorf("%d, %v\n%s%s", code, err, out.String(), errs.String())
	}
}
