package command

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

const victimArg = "victim"

// victim is a worker that runs a hanging program, until a test kills it. A program
// without child processes needs no watchdog.
func victim(dir, program, lifeline string) {
	opt := Options{Watchdog: child.SelfWatchdog()}
	if program == "hangs-alone.sh" {
		opt.Watchdog = nil
	}
	h, err := New(opt).Load(hookOf(program, lifeline), workers.Site{Dirs: []string{dir}})
	if err == nil {
		_, err = h.Handle(context.Background(), runnertest.Event("Bash"))
	}
	_, _ = io.WriteString(os.Stderr, "the victim was not killed: "+err.Error())
	os.Exit(1)
}

func TestProgramsAndTheirChildrenEndWithAKilledWorker(t *testing.T) {
	for _, program := range []string{"hangs.sh", "hangs-alone.sh"} {
		t.Run(program, func(t *testing.T) {
			l := runnertest.NewLifeline(t)
			p, err := os.StartProcess("/proc/self/exe", []string{"worker", victimArg, testdata(t)[0], program, l.Path},
				&os.ProcAttr{Files: []*os.File{nil, os.Stderr, os.Stderr}})
			if err != nil {
				t.Fatal(err)
			}
			runnertest.Await(t, l.Held(), "the program to start")
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			runnertest.Await(t, l.Gone(), "everything to be gone")
		})
	}
}

func TestAMissingWatchdogIsReportedAndDelaysNothing(t *testing.T) {
	for name, argv := range map[string][]string{"it is not there": {"/no/such/program"}, "it ends at once": {"/bin/true"}} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			r := New(Options{Watchdog: argv, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			h, err := r.Load(hookOf("answers.sh"), workers.Site{Dirs: testdata(t)})
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < 10 || !strings.Contains(log.String(), "watchdog"); i++ {
				if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
					t.Error(err)
				}
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if n := strings.Count(log.String(), "level=ERROR"); n > 10 {
				t.Errorf("it was reported %d times", n)
			}
		})
	}
}
