package python

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

func TestLoadErrorsOfFunctions(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	dir := runnertest.Tree(t, map[string]string{
		"good.py": "number = 5\ndef check(event): pass\n", "pkg/__init__.py": "", "pkg/hooks.py": "def check(event): pass\n",
		"syntax.py": "def check(event:\n", "needs.py": "import no_such_library\ndef check(event): pass\n",
		"raises.py": "raise OSError('no disk')\n", "exits.py": "import sys\nsys.exit(4)\n",
		"vanishes.py": "import os\nprint('farewell', flush=True)\nos._exit(5)\n",
	})
	r := newRunner(t, Options{Logger: slog.New(slog.DiscardHandler)})
	for handler, c := range map[string]struct {
		says string
		want []string
	}{
		"gone.check":      {"a module that is not there", []string{"ModuleNotFoundError: No module named 'gone'", "looked in " + dir + ", and where "}},
		"pkg.gone.check":  {"a module that its package does not have", []string{"No module named 'pkg.gone'"}},
		"good.gone":       {"a function that the module does not have", []string{"AttributeError: module 'good' has no attribute 'gone'"}},
		"good.number":     {"what cannot be called", []string{"of the type int, which cannot be called"}},
		"good":            {"a name without a dot", []string{"names no function; write module.function"}},
		"good..check":     {"a name with nothing between two dots", []string{"'good.'"}},
		"syntax.check":    {"a syntax error", []string{"SyntaxError", "syntax.py, line 1"}},
		"needs.check":     {"a module that needs one that is not there", []string{"No module named 'no_such_library'"}},
		"raises.check":    {"a module that raises", []string{"OSError: no disk"}},
		"exits.check":     {"a module that calls sys.exit", []string{"SystemExit: 4"}},
		"vanishes.check":  {"a module that ends its process", []string{"exited with code 5: farewell"}},
		"pkg.hooks.check": {"what is right loads", nil},
	} {
		t.Run(c.says, func(t *testing.T) {
			_, err := r.Load(hookOf(handler), workers.Site{Dirs: []string{dir}})
			if err == nil && c.want != nil {
				t.Fatal("it loaded")
			}
			for _, want := range append(c.want, handler) {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			if err != nil && c.want == nil {
				t.Error(err)
			}
		})
	}
}

func TestAHangingImportIsALoadErrorAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	dir := runnertest.Tree(t, map[string]string{"hangs.py": "import threading\nthreading.Event().wait()\n", "good.py": "def check(event): pass\n"})
	r := newRunner(t, Options{})
	r.wait.loading = 4 * time.Second
	at := workers.Site{Dirs: []string{dir}, Python: oneHost()}
	good, err := r.Load(hookOf("good.check"), at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Load(hookOf("hangs.check"), at); err == nil || !strings.Contains(err.Error(), "the import of its module did not end in time") {
		t.Errorf("error %v", err)
	}
	if _, err := handle(t, good, runnertest.Event("Bash")); err != nil {
		t.Error(err)
	}
}

func TestTheTracebackOfALoadErrorIsLogged(t *testing.T) {
	var log bytes.Buffer
	dir := runnertest.Tree(t, map[string]string{"raises.py": "def inner():\n    raise OSError('no disk')\ninner()\n"})
	r := newRunner(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := r.Load(hookOf("raises.check"), workers.Site{Dirs: []string{dir}}); err == nil {
		t.Fatal("it loaded")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "raises.py") || !strings.Contains(text, "in inner") || strings.Contains(text, "_host.py") {
		t.Errorf("the log is %s", text)
	}
}

func TestInvalidInterpretersAreLoadErrors(t *testing.T) {
	dir := runnertest.Tree(t, map[string]string{
		"good.py": "def check(event): pass\n", "old*": "#!/bin/sh\necho 'this is Python 3.8; hooks need 3.9 or later' >&2\nexit 1\n",
		"silent*": "#!/bin/sh\nexit 0\n", "talks*": "#!/bin/sh\necho 'Hello, world!' >&4\nexec cat <&3\n", "plain": "",
	})
	for interpreter, want := range map[string]string{
		"./gone": `there is no program "./gone"`, "no-such-python": "install Python 3.9", "./plain": "chmod +x",
		"./old": "hooks need 3.9 or later", "./silent": "exited with code 0", "./talks": "answer pipe",
	} {
		t.Run(interpreter, func(t *testing.T) {
			r := New(Options{Environ: []string{"PATH=/usr/bin:/bin"}, Logger: slog.New(slog.DiscardHandler)})
			defer r.Close()
			at := workers.Site{Dirs: []string{dir}, Python: schema.PythonHosts{Interpreter: interpreter}}
			if _, err := r.Load(hookOf("good.check"), at); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		})
	}
}

func TestAWorkerWithoutPythonReportsIt(t *testing.T) {
	r := New(Options{Environ: []string{"PATH=" + t.TempDir()}})
	defer r.Close()
	_, err := r.Load(hookOf("good.check"), workers.Site{Dirs: testdata(t)})
	if err == nil || !strings.Contains(err.Error(), `there is no program "python3"`) || !strings.Contains(err.Error(), "install Python 3.9") {
		t.Errorf("error %v", err)
	}
}

func TestTheFirstFolderWithAModuleCounts(t *testing.T) {
	say := func(s string) string { return "def check(event): return {'reason': '" + s + "'}\n" }
	dir := runnertest.Tree(t, map[string]string{"a/both.py": say("a"), "b/both.py": say("b"), "b/second.py": say("b"), "a/json.py": say("shadow")})
	r := newRunner(t, Options{})
	at := workers.Site{Dirs: []string{filepath.Join(dir, "gone"), filepath.Join(dir, "a"), filepath.Join(dir, "b")}}
	for handler, want := range map[string]string{"both.check": "a", "second.check": "b"} {
		h, err := r.Load(hookOf(handler), at)
		if err != nil {
			t.Fatal(err)
		}
		if got := reason(t, h); got != want {
			t.Errorf("%s is that of %q, want %q", handler, got, want)
		}
	}
}

func TestTheFolderOfTheWorkerIsNotSearched(t *testing.T) {
	t.Chdir(runnertest.Tree(t, map[string]string{"stray.py": "def check(event): pass\n"}))
	r := newRunner(t, Options{})
	for says, dirs := range map[string][]string{"without folders": nil, "with folders": {t.TempDir()}} {
		if _, err := r.Load(hookOf("stray.check"), workers.Site{Dirs: dirs}); err == nil {
			t.Errorf("%s, a module that just lies around was loaded", says)
		}
	}
}

func TestTheEnvironmentHasOnlyNamedVariables(t *testing.T) {
	t.Parallel()
	elsewhere := runnertest.Tree(t, map[string]string{"elsewhere.py": "def check(event): pass\n"})
	dir := runnertest.Tree(t, map[string]string{"env.py": "import os\ndef check(event): return {'reason': ' '.join(n for n in ('HOME', 'TOKEN', 'SECRET', 'PYTHONPATH') if n in os.environ)}\n"})
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "TOKEN=t", "SECRET=s", "PYTHONPATH=" + elsewhere}
	r := newRunner(t, Options{Environ: environ})
	at := workers.Site{Dirs: []string{dir}}
	for names, want := range map[string]string{"": "HOME", "TOKEN": "HOME TOKEN"} {
		hook := hookOf("env.check")
		hook.Env = strings.Fields(names)
		h, err := r.Load(hook, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := reason(t, h); got != want {
			t.Errorf("with env: [%s] it sees %q, want %q", names, got, want)
		}
	}
	hook := hookOf("elsewhere.check")
	if _, err := r.Load(hook, at); err == nil {
		t.Error("PYTHONPATH was followed without being named")
	}
	hook.Env = []string{"PYTHONPATH"}
	if _, err := r.Load(hook, at); err != nil {
		t.Errorf("PYTHONPATH was named and not followed: %v", err)
	}
	hook.Env = []string{"TOKEN=x"}
	if _, err := r.Load(hook, at); err == nil || !strings.Contains(err.Error(), "names only") {
		t.Errorf("error %v", err)
	}
}

func TestAVirtualEnvironmentBesideTheHooksIsUsed(t *testing.T) {
	needPython(t)
	dir := runnertest.Tree(t, map[string]string{"policy.py": "import only_here\ncheck = only_here.check\n"})
	makeVenv(t, filepath.Join(dir, "venv"), "only_here.py", "import sys\ndef check(event): return {'reason': sys.prefix}\n")
	r := newRunner(t, Options{})
	h, err := r.Load(hookOf("policy.check"), workers.Site{Dirs: []string{dir}, Python: schema.PythonHosts{Interpreter: "./venv/bin/python"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := reason(t, h), filepath.Join(dir, "venv"); got != want {
		t.Errorf("it ran in %s, want %s", got, want)
	}
}

// makeVenv makes a virtual environment with one module in it.
func makeVenv(t *testing.T, root, module, source string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), defaultInterpreter, "-m", "venv", "--without-pip", root).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: python3 cannot make a virtual environment, so hooks in one are not tested: %v: %s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(root, "lib", "python3*", "site-packages"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("site-packages: %v, %v", packages, err)
	}
	if err := os.WriteFile(filepath.Join(packages[0], module), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
}
