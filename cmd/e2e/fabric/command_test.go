package fabric_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

func TestScenariosOfPrograms(t *testing.T) {
	inRealTime(t, slices.Concat(programsDecide, programsAreTold, programsFail))
}

// pre is a hooks.yaml with one program at PreToolUse.
func pre(more string) string {
	return `{hooks: {PreToolUse: [{name: guard, handler: ./guard.sh, timeout: 60` + more + `}]}}`
}

func (f *fabric) read(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Error(err)
	}
	return string(data)
}

var programsDecide = []scenario{
	{"global command hook from YAML", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - matcher: "Bash"
      type: command
      handler: "./deny.sh"
      timeout: 60
`, script("deny.sh", `echo '{"decision": "deny", "reason": "no shell today"}'`))
		for _, id := range []string{"agent1", "agent2"} {
			a := f.agent(id)
			a.call("Bash", bash)
			a.call("Edit", `{}`)
			a.want("error no shell today", "Edit ran with {}", `result "done"`)
		}
	}},
	{"result on stdout", func(t *testing.T) {
		f := start(t, pre(""), script("guard.sh", `cat >/dev/null; echo '{"updated_input": {"command": "ls -l"}, "inject": {"content": "listed in full", "strategy": "user_message"}}'`))
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls -l"}`, `result "done"`, "user listed in full")
	}},
	{"no output at exit 0 is no opinion", func(t *testing.T) {
		f := start(t, pre(", fail_closed: true"), script("guard.sh", `exit 0`))
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		a.wantErrors(0, 0, "")
	}},
	{"exit 2 denies with stderr as the reason", func(t *testing.T) {
		f := start(t, pre(""), script("guard.sh", `echo "not on a Friday" >&2; echo '{"decision":"allow"}'; exit 2`))
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want("error not on a Friday")
	}},
	{"an unmodified Claude Code hook script", func(t *testing.T) {
		text, err := os.ReadFile("../../../workers/command/testdata/claude-guard.sh")
		if err != nil {
			t.Fatal(err)
		}
		f := start(t, pre(", matcher: Bash"), program{"guard.sh", string(text)})
		a := f.agent("agent1")
		a.change = func(e *schema.Event) { e.Cwd = "/home/dev/project" }
		a.call("Bash", `{"command":"rm -rf /tmp/x"}`)
		a.call("Bash", bash)
		a.want("error destructive command in /home/dev/project: rm -rf /tmp/x", `Bash ran with {"command":"ls"}`, `result "done"`)
	}},
	{"programs and builtins chain", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - {handler: ./guard.sh, timeout: 60}
    - {handler: ./guard.sh, timeout: 60}
    - {type: builtin, handler: inject_text, options: {text: mind the gap}}
`, script("guard.sh", `input=$(cat | sed -n 's/.*"command":"\([^"]*\)".*/\1/p'); echo "{\"updated_input\":{\"command\":\"$input!\"}}"`))
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls!!"}`, `result "done" + mind the gap`)
	}},
}

var programsAreTold = []scenario{
	{"event on stdin", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:  [{handler: ./keep.sh, args: [before.json], timeout: 60}]
  PostToolUse: [{handler: ./keep.sh, args: [after.json], timeout: 60}]
`, script("keep.sh", `cat > "$1"`))
		a := f.agent("agent1")
		a.change = func(e *schema.Event) {
			e.Cwd, e.Runtime, e.Labels = "/home/dev", "generic", map[string]string{"team": "a"}
			e.Timestamp = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
		}
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		want := schema.Event{
			HookType: schema.PreToolUse, AgentID: "agent1", SessionID: "session 1", OrchestratorID: "orchestrator 1", Runtime: "generic",
			Timestamp: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), ToolName: "Bash", ToolInput: []byte(bash), Cwd: "/home/dev",
			Labels: map[string]string{"team": "a"},
		}
		for file, output := range map[string]string{"before.json": "", "after.json": `"done"`} {
			var got schema.Event
			if err := schema.Unmarshal([]byte(f.read(file)), &got); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if output != "" {
				want.HookType, want.ToolOutput = schema.PostToolUse, []byte(output)
			} else {
				want.HookType, want.ToolOutput = schema.PreToolUse, []byte("null") // each member of an event is there
			}
			if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(schema.Event{}, "EventID")); diff != "" || len(got.EventID) != 36 {
				t.Errorf("%s: the event differs (-want +got):\n%s", file, diff)
			}
		}
	}},
	{"environment variables", func(t *testing.T) {
		f := start(t, pre(""), script("guard.sh", `tr '\0' '\n' < /proc/$$/environ > env.txt`))
		a := f.agent("agent1")
		a.change = func(e *schema.Event) { e.Cwd = "/home/dev" }
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		want := []string{"CLAUDE_PROJECT_DIR=/home/dev", "HOOK_TYPE=PreToolUse"}
		for _, prefix := range []string{"HOOK_", "MASSGEN_"} {
			for _, v := range []string{"HOOK_TYPE=PreToolUse", "TOOL_NAME=Bash", "SESSION_ID=session 1", "AGENT_ID=agent1", "ORCHESTRATOR_ID=orchestrator 1"} {
				want = append(want, prefix+v)
			}
		}
		for _, name := range []string{"PATH", "HOME", "LANG"} {
			if v, ok := os.LookupEnv(name); ok {
				want = append(want, name+"="+v)
			}
		}
		got := slices.DeleteFunc(strings.Split(strings.TrimSpace(f.read("env.txt")), "\n"), func(v string) bool {
			return strings.HasPrefix(v, "HOOKFABRIC_PROCESS=") // the mark of one run
		})
		slices.Sort(want)
		slices.Sort(got)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("the environment differs (-want +got):\n%s", diff)
		}
	}},
}

var programsFail = []scenario{
	{"timed-out hook is terminated and fails open", func(t *testing.T) {
		l := runnertest.NewLifeline(t)
		f := start(t, `{hooks: {PreToolUse: [{name: slow, handler: ./hang.sh, args: [`+l.Path+`], timeout: 3}]}}`,
			script("hang.sh", `trap '' TERM INT HUP; exec 3>"$1"; echo >&3; tail -f /dev/null >/dev/null 2>&1 & wait`))
		a := f.agent("agent1")
		begin := time.Now()
		a.call("Bash", bash)
		if took := time.Since(begin); took < 3*time.Second {
			t.Errorf("it took %v", took)
		}
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		a.wantTrail(0, "slow:deadline")
		await(t, l.Held(), "the program to have run at all")
		await(t, l.Gone(), "the program, and what it had started, to be gone")
	}},
	{"invalid JSON fails open, with a log line", func(t *testing.T) {
		f := start(t, pre(""), script("guard.sh", `echo 'allow, I think'`))
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
		a.wantTrail(0, "guard:error")
		f.log.want(t, "WARN", "hook=guard", "outcome=error", "./guard.sh", "JSON")
	}},
	{"a handler that cannot be loaded denies", func(t *testing.T) {
		f := start(t, pre(""))
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.wantTrail(0, "guard:load_error")
		if len(a.transcript) != 1 || !strings.HasPrefix(a.transcript[0], "error ") || !strings.Contains(a.transcript[0], "guard.sh") {
			t.Errorf("%q", a.transcript)
		}
		f.log.want(t, "handler cannot be loaded", "hook=guard", "guard.sh")
	}},
	{"fail_closed on deadline", func(t *testing.T) {
		failing(t, `exec tail -f /dev/null`, ", timeout: 0.2", "deadline", "did not answer within its timeout of 200ms")
	}},
	{"fail_closed on crash: an exit code", func(t *testing.T) {
		failing(t, `echo "no such user" >&2; exit 3`, "", "error", "exited with code 3: no such user")
	}},
	{"fail_closed on crash: a signal", func(t *testing.T) {
		failing(t, `kill -9 $$`, "", "error", "was ended by a signal")
	}},
	{"fail_closed on junk", func(t *testing.T) {
		failing(t, `echo '{"decision":'`, "", "error", "JSON")
	}},
	{"fail_closed on junk: too much of it", func(t *testing.T) {
		failing(t, `exec yes`, "", "error", "printed more than 1048576 bytes")
	}},
	{"an unknown decision is an error, not an allow", func(t *testing.T) {
		failing(t, `echo '{"decision":"Allow"}'`, "", "error", `decided "Allow"`)
	}},
}

// failing runs a program that fails: its call is denied if the hook is
// fail-closed, and passes if it is not.
func failing(t *testing.T, text, more, outcome, says string) {
	t.Helper()
	if more == "" {
		more = ", timeout: 60"
	}
	f := start(t, `
hooks:
  PreToolUse:
    - {name: guard, handler: ./fails.sh, matcher: Bash, fail_closed: true`+more+`}
    - {name: open, handler: ./fails.sh, matcher: Edit`+more+`}
`, script("fails.sh", text))
	a := f.agent("agent1")
	a.call("Bash", bash)
	denied(t, a, outcome, says)
	a.call("Edit", `{}`)
	a.wantTrail(1, "open:"+outcome)
	a.wantErrors(1, 1, says)
	if len(a.transcript) != 3 || a.transcript[1] != "Edit ran with {}" {
		t.Errorf("%q", a.transcript)
	}
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}
