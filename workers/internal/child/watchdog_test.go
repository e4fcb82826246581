package child

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// TestMain makes the test binary the watchdog if asked.
func TestMain(m *testing.M) {
	RunWatchdog(os.Args)
	os.Exit(m.Run())
}

// shell starts a line of shell that g watches, and reaps it.
func shell(t *testing.T, g *Guard, line string) *Process {
	t.Helper()
	p, err := Start(g, Spec{Argv: []string{"/bin/sh", "-c", line}, Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{nil, nil, nil}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if _, err := p.Reap(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// dog returns g's watchdog, if there is one.
func dog(g *Guard) *os.Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dog
}

func TestADeadWatchdogIsReplacedAndWatchesAllGroups(t *testing.T) {
	g := NewGuard(SelfWatchdog(), slog.New(slog.DiscardHandler))
	t.Cleanup(g.Close)
	l := runnertest.NewLifeline(t)
	shell(t, g, `exec 3>"`+l.Path+`"; tail -f /dev/null & echo >&3; wait`)
	runnertest.Await(t, l.Held(), "the process to start")

	first := dog(g)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	bustest.Eventually(t, "the kernel has closed its end", func() bool { return state(t, first.Pid) == "Z" })
	// The kernel closes the last end of the pipe after the last thread has ended, which
	// may be after the process ended, so one process more may be needed.
	for range 20 {
		shell(t, g, ":")
		if now := dog(g); now != first && now != nil {
			break
		}
	}
	if now := dog(g); now == first || now == nil {
		t.Fatal("the watchdog was not replaced")
	}
	if err := g.pipe.Close(); err != nil { // as if the worker had ended
		t.Fatal(err)
	}
	runnertest.Await(t, l.Gone(), "the process that the first watchdog knew to be killed by the second")
}

func TestAWatchdogThatEndsAtOnceIsRestartedALimitedNumberOfTimes(t *testing.T) {
	for name, argv := range map[string][]string{"it is not there": {"/no/such/program"}, "it ends at once": {"/bin/true"}} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			g := NewGuard(argv, slog.New(slog.NewTextHandler(&log, nil)))
			for i := 0; i < 10 || !strings.Contains(log.String(), "watchdog"); i++ {
				shell(t, g, ":")
			}
			g.Close()
			if g.starts > guardStarts {
				t.Errorf("it was started %d times", g.starts)
			}
		})
	}
}

func TestTheWatchdogKillsTheRemainingGroups(t *testing.T) {
	var killed []int
	var marked []string
	in := "+100\n+200\n-100\n+1\n+0\n+-5\n-\n\n+junk\n*300\n+400\n?HOOKFABRIC_PROCESS=a\n?HOOKFABRIC_PROCESS=b\n!HOOKFABRIC_PROCESS=a\n?\n?PATH=x\n"
	watch(strings.NewReader(in), func(pgid int) { killed = append(killed, pgid) }, func(mark string) { marked = append(marked, mark) })
	slices.Sort(killed)
	if diff := cmp.Diff([]int{200, 400}, killed); diff != "" {
		t.Errorf("killed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"HOOKFABRIC_PROCESS=b"}, marked); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
}

// TestAProcessWithoutAKnownGroupIsKilled checks a worker that is killed between the start of a process
// and the moment when it knows the group.
func TestAProcessWithoutAKnownGroupIsKilled(t *testing.T) {
	g := NewGuard(SelfWatchdog(), slog.New(slog.DiscardHandler))
	t.Cleanup(g.Close)
	l := runnertest.NewLifeline(t)
	const mark = "HOOKFABRIC_PROCESS=a-process-without-a-group"
	g.announce(mark)
	cmd := exec.Command("/bin/sh", "-c", `exec 3>"`+l.Path+`"; tail -f /dev/null & echo >&3; wait`)
	cmd.Env, cmd.SysProcAttr = []string{"PATH=/usr/bin:/bin", mark}, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	runnertest.Await(t, l.Held(), "the process to start")
	if err := g.pipe.Close(); err != nil { // as if the worker had ended
		t.Fatal(err)
	}
	runnertest.Await(t, l.Gone(), "the process and its child to be killed")
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
