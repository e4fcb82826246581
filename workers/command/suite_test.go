package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// TestMain makes the test binary run as other processes: the watchdog, and a worker that
// a test kills.
func TestMain(m *testing.M) {
	child.RunWatchdog(os.Args)
	if len(os.Args) == 5 && os.Args[1] == victimArg {
		victim(os.Args[2], os.Args[3], os.Args[4])
	}
	os.Exit(m.Run())
}

func hookOf(handler string, args ...string) schema.Hook {
	return schema.Hook{Name: "test", Event: schema.PreToolUse, Type: schema.Command, Handler: handler, Args: args}
}

func testdata(t testing.TB) []string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return []string{dir}
}

func suite(t *testing.T, opt Options) runnertest.Suite {
	return runnertest.Suite{
		New:      func(*testing.T) workers.Runner { return New(opt) },
		Dirs:     testdata(t),
		Answers:  hookOf("answers.sh"),
		Refuses:  hookOf("./refuses.sh"),
		Rewrites: hookOf("rewrites.sh"),
		Echoes:   hookOf("echoes.sh"),
		Crashes:  hookOf("crashes.sh"),
		Floods:   hookOf("floods.sh"),
		Junk:     hookOf("junk.sh"),
		Unknown:  hookOf("unknown.sh"),
		Missing:  hookOf("no-such-policy.sh"),
		Hangs: func(_ *testing.T, l *runnertest.Lifeline) schema.Hook {
			return hookOf("hangs.sh", l.Path)
		},
	}
}

func TestRunnerIsARunner(t *testing.T) {
	runnertest.Run(t, suite(t, Options{}))
}

func TestRunnerWithAWatchdogIsARunner(t *testing.T) {
	runnertest.Run(t, suite(t, Options{Watchdog: child.SelfWatchdog()}))
}
