package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

const (
	victimArg = "victim"
	patience  = 20 * time.Second
)

// victim is a worker that runs a program that hangs, to be killed. One whose
// program starts nothing else needs no watchdog.
func victim(dir, program, lifeline string) {
	opt := Options{Watchdog: SelfWatchdog()}
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

func TestProgramsAndWhatTheyStartedAreGoneWhenTheWorkerIsKilled(t *testing.T) {
	for _, program := range []string{"hangs.sh", "hangs-alone.sh"} {
		t.Run(program, func(t *testing.T) {
			l := runnertest.NewLifeline(t)
			p, err := os.StartProcess("/proc/self/exe", []string{"worker", victimArg, testdata(t)[0], program, l.Path},
				&os.ProcAttr{Files: []*os.File{nil, os.Stderr, os.Stderr}})
			if err != nil {
				t.Fatal(err)
			}
			await(t, l.Held(), "the program to start")
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			await(t, l.Gone(), "everything to be gone")
		})
	}
}

func TestADeadWatchdogIsReplacedAndToldWhatRuns(t *testing.T) {
	r := New(Options{Watchdog: SelfWatchdog()})
	defer r.Close()
	l := runnertest.NewLifeline(t)
	hanging, err := r.Load(hookOf("hangs.sh", l.Path), workers.Site{Dirs: testdata(t)})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = hanging.Handle(t.Context(), runnertest.Event("Bash")) }()
	await(t, l.Held(), "the program to start")

	r.guard.mu.Lock()
	first := r.guard.dog
	r.guard.mu.Unlock()
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	for state(t, first.Pid) != "Z" { // until the kernel has closed its end
		runtime.Gosched()
	}
	answers, err := r.Load(hookOf("answers.sh"), workers.Site{Dirs: testdata(t)})
	if err != nil {
		t.Fatal(err)
	}
	// The kernel closes the last end of the pipe when the last of its threads is
	// gone, which may be after the process has ended: one program more or less.
	for range 20 {
		if _, err := answers.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
			t.Fatal(err)
		}
		r.guard.mu.Lock()
		replaced := r.guard.dog != first && r.guard.dog != nil
		r.guard.mu.Unlock()
		if replaced {
			break
		}
	}
	r.guard.mu.Lock()
	defer r.guard.mu.Unlock()
	if r.guard.dog == first || r.guard.dog == nil {
		t.Fatal("the watchdog was not replaced")
	}
	if err := r.guard.pipe.Close(); err != nil { // as if the worker were gone
		t.Fatal(err)
	}
	await(t, l.Gone(), "the program that the first watchdog knew to be killed by the second")
}

func TestAWatchdogThatDoesNotStartIsReportedAndHoldsUpNothing(t *testing.T) {
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
			if r.guard.starts > guardStarts {
				t.Errorf("it was started %d times", r.guard.starts)
			}
		})
	}
}

func TestWatchKillsWhatIsLeft(t *testing.T) {
	var killed []int
	in := "+100\n+200\n-100\n+1\n+0\n+-5\n-\n\n+junk\n*300\n+400\n"
	watch(strings.NewReader(in), func(pgid int) { killed = append(killed, pgid) })
	slices.Sort(killed)
	if diff := cmp.Diff([]int{200, 400}, killed); diff != "" {
		t.Errorf("killed (-want +got):\n%s", diff)
	}
}

func state(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		return "Z"
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	word, _, _ := strings.Cut(rest, " ")
	return word
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}
