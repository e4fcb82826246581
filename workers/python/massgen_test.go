package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

func TestAModuleWrittenForMassGenRunsUnchanged(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	r := newRunner(t, Options{})
	write := runnertest.Event("Write")
	write.ToolInput = jsontext.Value(`{"path":"/etc/passwd"}`)
	seen := runnertest.Event("Read")
	seen.HookType, seen.ToolOutput = schema.PostToolUse, jsontext.Value(`"a line"`)
	for name, c := range map[string]struct {
		handler string
		event   *schema.Event
		want    schema.Result
	}{
		"a function with its types":            {"my_audit_hook", write, schema.Allowed()},
		"a deny with a reason":                 {"validate_writes", write, schema.Denied("no writes to /etc/passwd")},
		"a coroutine function that injects":    {"log_outputs", seen, schema.Injected("seen: a line", schema.UserMessage)},
		"a PythonCallableHook as the handler":  {"validator", write, schema.Denied("no writes to /etc/passwd")},
		"what else the classes promise, it is": {"checks", write, schema.Denied("all as it was")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := handle(t, load(t, r, hookOf("my_pkg.hooks."+c.handler), schema.PythonHosts{}), c.event)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the answer differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheStandInHasEveryNameOfMassGensGuides(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	r := newRunner(t, Options{})
	remove := runnertest.Event("Delete")
	done := runnertest.Event("mcp__plan__update_task_status")
	done.HookType, done.ToolOutput = schema.PostToolUse, jsontext.Value(`"{\"task\":{\"priority\":\"high\",\"status\":\"completed\"}}"`)
	read := runnertest.Event("Read")
	read.HookType, read.ToolOutput = schema.PostToolUse, jsontext.Value(`"a line"`)
	for name, c := range map[string]struct {
		handler  string
		event    *schema.Event
		decision schema.Decision
		says     string
	}{
		"all of them work":                 {"checks", remove, schema.Deny, "the stand-in for massgen.mcp_tools.hooks that comes with hookfabric has no NoSuchHook; it has GeneralHookManager"},
		"a manager is a handler":           {"manager", remove, schema.Deny, "not with Delete"},
		"of one agent's hooks, too":        {"manager", read, schema.None, "agent2 has a new answer"},
		"so is one of MassGen's own hooks": {"reminder", done, schema.None, "SYSTEM REMINDER"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := handle(t, load(t, r, hookOf("my_pkg.names."+c.handler), schema.PythonHosts{}), c.event)
			if err != nil {
				t.Fatal(err)
			}
			texts := got.Reason
			for _, in := range got.Injections {
				texts += in.Content
			}
			if got.Decision != c.decision || !strings.Contains(texts, c.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestMassGensManagerRegistersInTheFabric: a program that registers a hook with MassGen's manager
// runs `broker hooks register`.
func TestMassGensManagerRegistersInTheFabric(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: no python3 on the PATH, so the stand-in for massgen is not tested")
	}
	for _, file := range []string{"massgen/__init__.py", "massgen/mcp_tools/hooks.py", "massgen/mcp_tools/_builtins.py", "hookfabric/__init__.py", "testdata/massgen_test.py"} {
		if _, err := os.ReadFile(file); err != nil { // so that `go test` runs this again after a change
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "-W", "error", "-m", "unittest", "-v", "massgen_test")
	cmd.Env = []string{"PYTHONPATH=.:testdata", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Ran 10 tests") || strings.Contains(string(out), "skipped") {
		t.Errorf("%v\n%s", err, out)
	}
}

func loadFrom(t *testing.T, r *Runner, handler, dir string) workers.Handler {
	t.Helper()
	h, err := r.Load(hookOf(handler), workers.Site{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAnInstalledMassGenReplacesTheStandIn(t *testing.T) {
	t.Parallel()
	dir := runnertest.Tree(t, map[string]string{
		"massgen/__init__.py": "", "massgen/mcp_tools/__init__.py": "",
		"massgen/mcp_tools/hooks.py": "class HookResult:\n    allowed = False\n    def to_dict(self): return {'allowed': False, 'reason': 'the real one'}\n",
		"policy.py":                  "from massgen.mcp_tools.hooks import HookResult\ndef check(event): return HookResult()\n",
	})
	if got := reason(t, loadFrom(t, newRunner(t, Options{}), "policy.check", dir)); got != "the real one" {
		t.Errorf("the answer came from %q", got)
	}
}

func TestHostsLeaveNoFilesOfTheirOwn(t *testing.T) {
	dir, tmp := runnertest.Tree(t, map[string]string{"policy.py": "import hookfabric\ndef check(event): pass\n"}), t.TempDir()
	r := newRunner(t, Options{Environ: append(os.Environ(), "TMPDIR="+tmp)})
	h := loadFrom(t, r, "policy.check", dir)
	if _, err := handle(t, h, runnertest.Event("Bash")); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{filepath.Join(tmp, "*"), filepath.Join(dir, "hookfabric*")} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			t.Errorf("there is %v", found)
		}
	}
}
