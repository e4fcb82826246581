package python

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// TestMain lets the test binary run as two other processes: the watchdog, and a worker that
// a test kills.
func TestMain(m *testing.M) {
	child.RunWatchdog(os.Args)
	if len(os.Args) == 4 && os.Args[1] == victimArg {
		victim(os.Args[2], os.Args[3])
	}
	findPython()
	bustest.Overlap()
	os.Exit(m.Run())
}

// findPython puts the folder of the real interpreter first in PATH, so that no test runs or
// measures a wrapper script.
func findPython() {
	out, err := exec.Command(defaultInterpreter, "-c", "import os, sys; print(os.path.dirname(sys.executable))").Output()
	if err == nil {
		err = os.Setenv("PATH", strings.TrimSpace(string(out))+":"+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "looking for python3:", err)
	}
}

// needPython skips a test if there is no interpreter.
func needPython(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(defaultInterpreter); err != nil {
		t.Skip("SKIPPED: no python3 on the PATH, so functions as hooks are not tested")
	}
}

func hookOf(handler string) schema.Hook {
	return schema.Hook{Name: "test", Event: schema.PreToolUse, Type: schema.Python, Handler: handler}
}

// sharing returns a hook whose coroutines may share a host.
func sharing(handler string) schema.Hook {
	h := hookOf(handler)
	h.Idempotent = true
	return h
}

func testdata(t testing.TB) []string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return []string{dir}
}

// lifeRunner is a runner whose hooks find the path of a lifeline in LIFE. All hooks of a
// worker see the same variable, so there is one lifeline for each runner.
type lifeRunner struct {
	*Runner
	life *string
}

func (r lifeRunner) Load(h schema.Hook, at workers.Site) (workers.Handler, error) {
	r.environ = append(os.Environ(), "LIFE="+*r.life)
	return r.Runner.Load(h, at)
}

func suite(t *testing.T, opt Options) runnertest.Suite {
	var life string
	return runnertest.Suite{
		New:      func(*testing.T) workers.Runner { return lifeRunner{New(opt), &life} },
		Dirs:     testdata(t),
		Answers:  hookOf("suite.answers"),
		Refuses:  hookOf("suite.refuses"),
		Rewrites: hookOf("suite.rewrites"),
		Echoes:   hookOf("suite.echoes"),
		Crashes:  hookOf("suite.crashes"),
		Floods:   hookOf("suite.floods"),
		Junk:     hookOf("suite.junk"),
		Unknown:  hookOf("suite.unknown"),
		Missing:  hookOf("no_such_policy.check"),
		Hangs: func(_ *testing.T, l *runnertest.Lifeline) schema.Hook {
			life = l.Path
			h := hookOf("suite.hangs")
			h.Env = []string{"LIFE"}
			return h
		},
	}
}

func TestRunnerIsARunner(t *testing.T) {
	t.Parallel()
	needPython(t)
	runnertest.Run(t, suite(t, Options{}))
}

func TestRunnerWithAWatchdogIsARunner(t *testing.T) {
	t.Parallel()
	needPython(t)
	runnertest.Run(t, suite(t, Options{Watchdog: child.SelfWatchdog()}))
}

func TestRunnerOfCoroutinesIsARunner(t *testing.T) {
	t.Parallel()
	needPython(t)
	s := suite(t, Options{})
	s.Echoes = sharing("suite.echoes_later")
	runnertest.Run(t, s)
}
