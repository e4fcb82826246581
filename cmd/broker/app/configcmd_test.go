package app_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// A fakeBroker answers each action of the control verb "config" with the answer of a test, and
// records the requests.
type fakeBroker struct {
	t   *testing.T
	url string

	mu      sync.Mutex // guards all below
	answers map[string]any
	asked   []schema.ConfigRequest
}

// setAnswers sets the answers from now on. It returns the requests so far.
func (s *fakeBroker) setAnswers(answers map[string]any) (asked []schema.ConfigRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, s.asked, s.answers = s.asked, nil, answers
	return asked
}

// newFakeBroker starts a fakeBroker on a NATS server, and changes to a new folder with a hooks.yaml
// in conf.
func newFakeBroker(t *testing.T) *fakeBroker {
	t.Helper()
	server := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	s := &fakeBroker{t: t, url: server.ClientURL()}
	nc := bustest.Connect(t, server, "fake broker")
	if _, err := nc.Subscribe("hook.v1.ctl.config._", s.serve); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOOKFABRIC_NATS", s.url)
	t.Chdir(t.TempDir())
	write(t, "conf/hooks.yaml", hooks)
	return s
}

func (s *fakeBroker) serve(m *nats.Msg) {
	var req schema.ConfigRequest
	if err := schema.Unmarshal(m.Data, &req); err != nil {
		s.t.Error(err)
	}
	reply, answer := nats.NewMsg(m.Reply), s.answer(&req)
	if e, ok := answer.(*schema.ControlError); ok {
		reply.Header.Set(schema.HeaderServiceError, e.Message)
		reply.Header.Set(schema.HeaderServiceErrorCode, e.Code)
	}
	var err error
	if reply.Data, err = schema.Marshal(answer); err == nil {
		err = m.RespondMsg(reply)
	}
	if err != nil {
		s.t.Error(err)
	}
}

func (s *fakeBroker) answer(req *schema.ConfigRequest) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, *req)
	answer, ok := s.answers[req.Action]
	if !ok {
		return &schema.ControlError{Code: schema.CodeNotFound, Message: "nothing is laid out for " + req.Action}
	}
	if shown, ok := answer.(map[uint64]*schema.ConfigAnswer); ok {
		return shown[req.Version]
	}
	return answer
}

// A configRun is the result of a command, and the requests that it made.
type configRun struct {
	Code           int
	Stdout, Stderr string
	Asked          []schema.ConfigRequest
}

// run runs a command line. The environment names the broker.
func (s *fakeBroker) run(answers map[string]any, stdin string, args ...string) (e configRun) {
	s.setAnswers(answers)
	var stdout, stderr bytes.Buffer
	e.Code = app.Main(s.t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	e.Stdout, e.Stderr = stdout.String(), stderr.String()
	e.Asked = s.setAnswers(nil)
	return e
}

const (
	hooks = "presets: []\nhooks:\n  PreToolUse:\n    - {name: one, type: builtin, handler: deny}\n"
	// normal is hooks in the form in which brokers store and show it.
	normal = "presets: []\n\nhooks:\n  PreToolUse:\n    - name: one\n      type: builtin\n      handler: deny\n"
	faulty = "hooks:\n  PreToolUse:\n    - {type: builtin, handler: deny, tiemout: 5}\n  BeforeLunch: []\n"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// cwd returns the current folder as commands see it.
func cwd(t *testing.T, below string) string {
	t.Helper()
	dir, err := filepath.Abs(below)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var (
	day     = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	history = &schema.ConfigAnswer{Version: 8, History: []schema.VersionInfo{
		{Version: 8, At: day, By: "b1", Note: "applied hooks.yaml", Hooks: 12},
		{Version: 7, At: day.Add(-time.Hour), By: "b2", Note: "registered review", Hooks: 9},
		{Version: 5, Hooks: 1},
	}}
	asksHistory = schema.ConfigRequest{Action: schema.ActionHistory}
)

func TestApply(t *testing.T) {
	s := newFakeBroker(t)
	request := schema.ConfigRequest{Action: schema.ActionApply, Source: hooks, File: "hooks.yaml", Dir: cwd(t, "conf")}
	forced, piped := request, request
	forced.Force = true
	piped.File, piped.Dir = "stdin", cwd(t, ".")
	refused := &schema.ConfigAnswer{Version: 7, Refused: true, Warnings: []string{"hooks.yaml:3:1: keys of MassGen are skipped here: ui"},
		Problems: []schema.Problem{{Node: "w1", Hook: "lint", Error: "no module named policies.lint"}, {Node: "w2", Error: "it did not say in time whether it can use the version"}}}
	problems := strings.Join([]string{refused.Warnings[0], "node w1 cannot load hook lint: no module named policies.lint",
		"node w2: it did not say in time whether it can use the version", ""}, "\n")
	for _, c := range []struct {
		name    string
		args    []string
		stdin   string
		answers map[string]any
		want    configRun
	}{
		{"a new version is active", []string{"apply", "conf/hooks.yaml"}, "",
			map[string]any{"apply": &schema.ConfigAnswer{Version: 8, Changed: true}, "history": history},
			configRun{0, "version 8 is active: 12 hooks (was version 7: 9 hooks)\n", "", []schema.ConfigRequest{request, asksHistory}}},
		{"without the history it still succeeds", []string{"apply", "conf/hooks.yaml"}, "",
			map[string]any{"apply": &schema.ConfigAnswer{Version: 8, Changed: true}},
			configRun{0, "version 8 is active\n", "", []schema.ConfigRequest{request, asksHistory}}},
		{"the first version has no version before it", []string{"apply", "conf/hooks.yaml"}, "",
			map[string]any{"apply": &schema.ConfigAnswer{Version: 5, Changed: true}, "history": history},
			configRun{0, "version 5 is active: 1 hooks\n", "", []schema.ConfigRequest{request, asksHistory}}},
		{"the same content changes nothing", []string{"apply", "conf/hooks.yaml"}, "",
			map[string]any{"apply": &schema.ConfigAnswer{Version: 7}},
			configRun{0, "nothing changed: version 7 is active and has the same content; to load changed Python code, restart the workers\n", "", []schema.ConfigRequest{request}}},
		{"a refusal changes nothing and prints every problem", []string{"apply", "conf/hooks.yaml"}, "",
			map[string]any{"apply": refused},
			configRun{1, "", problems + "broker: hooks.yaml was rejected, and nothing changed; correct the problems above, or activate it with --force\n", []schema.ConfigRequest{request}}},
		{"--force applies it and prints the problems", []string{"apply", "conf/hooks.yaml", "--force"}, "",
			map[string]any{"apply": &schema.ConfigAnswer{Version: 8, Changed: true, Problems: refused.Problems[:1]}, "history": history},
			configRun{0, "version 8 is active: 12 hooks (was version 7: 9 hooks)\n", "node w1 cannot load hook lint: no module named policies.lint\n", []schema.ConfigRequest{forced, asksHistory}}},
		{"- is stdin, in the current folder", []string{"apply", "-"}, hooks,
			map[string]any{"apply": &schema.ConfigAnswer{Version: 7}},
			configRun{0, "nothing changed: version 7 is active and has the same content; to load changed Python code, restart the workers\n", "", []schema.ConfigRequest{piped}}},
		{"--json prints the answer", []string{"apply", "conf/hooks.yaml", "--json"}, "",
			map[string]any{"apply": &schema.ConfigAnswer{Version: 8, Changed: true}},
			configRun{0, `{"version":8,"changed":true}` + "\n", "", []schema.ConfigRequest{request}}},
		{"--json prints a refusal and fails", []string{"apply", "conf/hooks.yaml", "--json"}, "",
			map[string]any{"apply": &schema.ConfigAnswer{Version: 7, Refused: true, Problems: []schema.Problem{{Node: "w1", Error: "no"}}}},
			configRun{1, `{"version":7,"refused":true,"problems":[{"node":"w1","error":"no"}]}` + "\n",
				"node w1: no\nbroker: hooks.yaml was rejected, and nothing changed; correct the problems above, or activate it with --force\n", []schema.ConfigRequest{request}}},
		{"an error of the brokers is the message", []string{"apply", "conf/hooks.yaml"}, "",
			map[string]any{"apply": &schema.ControlError{Code: schema.CodeConflict, Message: "the hook one is registered already"}},
			configRun{1, "", "broker: the hook one is registered already\n", []schema.ConfigRequest{request}}},
		{"a rollback prints the same as an apply", []string{"config", "rollback", "6"}, "",
			map[string]any{"rollback": &schema.ConfigAnswer{Version: 8, Changed: true}, "history": history},
			configRun{0, "version 8 is active: 12 hooks (was version 7: 9 hooks)\n", "", []schema.ConfigRequest{{Action: schema.ActionRollback, Version: 6}, asksHistory}}},
		{"a rollback can be refused and forced, too", []string{"config", "rollback", "6", "--force"}, "",
			map[string]any{"rollback": &schema.ConfigAnswer{Version: 7, Refused: true}},
			configRun{1, "", "broker: version 6 was rejected, and nothing changed: a broker cannot use it at all, which --force does not override\n", []schema.ConfigRequest{{Action: schema.ActionRollback, Version: 6, Force: true}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, s.run(c.answers, c.stdin, c.args...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFaultyFileIsNotSent(t *testing.T) {
	s := newFakeBroker(t)
	write(t, "faulty.yaml", faulty)
	for _, c := range []struct {
		name, path, stdin string
		says              []string
	}{
		{"all faults are printed with their places", "faulty.yaml", "", []string{"faulty.yaml:3:", "tiemout", "faulty.yaml:4:", "BeforeLunch", "broker: faulty.yaml has 2 faults"}},
		{"faults in stdin", "-", faulty, []string{"stdin:3:", "stdin:4:", "broker: stdin has 2 faults"}},
		{"a missing file", "gone.yaml", "", []string{"gone.yaml", "no such file"}},
		{"a folder", ".", "", []string{"is a directory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.run(nil, c.stdin, "apply", c.path)
			if got.Code != 1 || got.Stdout != "" || got.Asked != nil {
				t.Errorf("%+v", got)
			}
			for _, part := range c.says {
				if !strings.Contains(got.Stderr, part) {
					t.Errorf("stderr does not have %q:\n%s", part, got.Stderr)
				}
			}
		})
	}
}

func TestConfig(t *testing.T) {
	s := newFakeBroker(t)
	shown := map[uint64]*schema.ConfigAnswer{
		0: {Version: 8, Text: "hooks: {new: 1}\n", Config: &schema.Config{Version: 8, Hooks: []schema.Hook{}}},
		7: {Version: 7, Text: "hooks: {old: 1}\n"},
		8: {Version: 8, Text: "hooks: {new: 1}\n"},
	}
	show := func(version uint64) schema.ConfigRequest {
		return schema.ConfigRequest{Action: schema.ActionShow, Version: version}
	}
	stored := map[uint64]*schema.ConfigAnswer{
		0: {Version: 8, Text: strings.ReplaceAll(normal, "one", "other")},
		7: {Version: 7, Text: normal},
	}
	const changes = "diff version 7 version 8\n--- version 7\n+++ version 8\n@@ -1,1 +1,1 @@\n-hooks: {old: 1}\n+hooks: {new: 1}\n"
	when := func(at time.Time) string { return at.Local().Format(time.RFC3339) }
	gap := strings.Repeat(" ", len(when(day))-len("WHEN"))
	table := "VERSION  ACTIVE  WHEN" + gap + "  HOOKS  BY  NOTE\n" +
		"8        yes     " + when(day) + "  12     b1  applied hooks.yaml\n" +
		"7                " + when(day.Add(-time.Hour)) + "  9      b2  registered review\n" +
		"5                    " + gap + "  1          \n"
	for _, c := range []struct {
		name    string
		args    []string
		answers map[string]any
		want    configRun
	}{
		{"show prints the active version as a hooks.yaml", []string{"show"}, map[string]any{"show": shown},
			configRun{0, "hooks: {new: 1}\n", "", []schema.ConfigRequest{show(0)}}},
		{"show prints another version", []string{"show", "7"}, map[string]any{"show": shown},
			configRun{0, "hooks: {old: 1}\n", "", []schema.ConfigRequest{show(7)}}},
		{"show --json prints the stored form", []string{"show", "--json"}, map[string]any{"show": shown},
			configRun{0, `{"version":8,"hooks":[]}` + "\n", "", []schema.ConfigRequest{show(0)}}},
		{"the brokers reject an unknown version", []string{"show", "3"}, map[string]any{"show": &schema.ControlError{Code: schema.CodeNotFound, Message: "version 3 is not kept any more"}},
			configRun{1, "", "broker: version 3 is not kept any more\n", []schema.ConfigRequest{show(3)}}},
		{"history is a table", []string{"history"}, map[string]any{"history": history},
			configRun{0, table, "", []schema.ConfigRequest{asksHistory}}},
		{"history --json prints the answer", []string{"history", "--json"}, map[string]any{"history": &schema.ConfigAnswer{Version: 5, History: []schema.VersionInfo{{Version: 5, At: day, Hooks: 1}}}},
			configRun{0, `{"version":5,"history":[{"version":5,"at":"2026-11-21T10:00:00Z","hooks":1}]}` + "\n", "", []schema.ConfigRequest{asksHistory}}},
		{"diff compares the previous version with the active one", []string{"diff"}, map[string]any{"history": history, "show": shown},
			configRun{0, changes, "", []schema.ConfigRequest{asksHistory, show(7), show(8)}}},
		{"diff compares a version with the active one", []string{"diff", "7"}, map[string]any{"show": shown},
			configRun{0, changes, "", []schema.ConfigRequest{show(7), show(0)}}},
		{"diff compares two versions", []string{"diff", "7", "8"}, map[string]any{"show": shown},
			configRun{0, changes, "", []schema.ConfigRequest{show(7), show(8)}}},
		{"diff reports that there is no difference", []string{"diff", "8"}, map[string]any{"show": shown},
			configRun{0, "no difference between version 8 and version 8\n", "", []schema.ConfigRequest{show(8), show(0)}}},
		{"diff shows what a file would change", []string{"diff", "conf/hooks.yaml"}, map[string]any{"show": stored},
			configRun{0, "diff version 8 conf/hooks.yaml\n--- version 8\n+++ conf/hooks.yaml\n@@ -2,6 +2,6 @@\n \n hooks:\n   PreToolUse:\n-    - name: other\n+    - name: one\n       type: builtin\n       handler: deny\n", "", []schema.ConfigRequest{show(0)}}},
		{"diff compares a file with a version", []string{"diff", "7", "conf/hooks.yaml"}, map[string]any{"show": stored},
			configRun{0, "no difference between version 7 and conf/hooks.yaml\n", "", []schema.ConfigRequest{show(7)}}},
		{"the only version has no previous one", []string{"diff"}, map[string]any{"history": &schema.ConfigAnswer{Version: 1, History: []schema.VersionInfo{{Version: 1}}}},
			configRun{1, "", "broker: there is no stored version before version 1 to compare it with; print it with 'broker config show'\n", []schema.ConfigRequest{asksHistory}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, s.run(c.answers, "", append([]string{"config"}, c.args...)...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Wrong usage ends with exit code 2 and one sentence.
func TestConfigRejectsWrongUsage(t *testing.T) {
	s := newFakeBroker(t)
	for _, c := range []struct{ line, says string }{
		{"apply", "apply takes one file, or - for stdin"},
		{"apply a b", "apply takes one file, or - for stdin"},
		{"apply a --frobnicate", "--frobnicate"},
		{"config frobnicate", `unknown argument "frobnicate"`},
		{"config show seven", `"seven" is not a version; use a number that 'broker config history' lists, such as 7`},
		{"config show 0", `"0" is not a version`},
		{"config show 1 2", "show takes one version at most"},
		{"config history 1", `unknown argument "1"`},
		{"config diff 1 2 3", "diff takes two"},
		{"config diff 1 -2", "-2"},
		{"config diff seven", `"seven" is`},
		{"config rollback", "rollback takes one version"},
		{"config rollback -- -1", `"-1" is not a version`},
	} {
		t.Run(c.line, func(t *testing.T) {
			got := s.run(nil, "", strings.Fields(c.line)...)
			if got.Code != 2 || got.Asked != nil || strings.Count(got.Stderr, "\n") != 1 || !strings.Contains(got.Stderr, c.says) {
				t.Errorf("%+v; want %q", got, c.says)
			}
		})
	}
}

func TestConfigWithoutACommandPrintsHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := app.Main(t.Context(), []string{"config"}, strings.NewReader(""), &stdout, &stderr)
	if code != 0 || stderr.Len() > 0 || !strings.Contains(stdout.String(), "rollback") {
		t.Errorf("%d\n%s%s", code, &stdout, &stderr)
	}
}
