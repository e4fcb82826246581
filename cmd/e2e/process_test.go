package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
)

// patience is how long a test waits for what should come at once.
const patience = bustest.Patience

// A process is a child of the test, the leader of its own group.
type process struct {
	name  string
	cmd   *exec.Cmd
	said  *journal
	ended chan struct{} // closed when it is reaped
	line  *os.File      // the test's end of the lifeline
}

// launch starts one of the commands.
func launch(dir string, env []string, name string, args ...string) (*process, error) {
	return launchHolding(nil, dir, env, name, args...)
}

// launchHolding is launch for a command that finds these files open, from the descriptor 3 on.
func launchHolding(files []*os.File, dir string, env []string, name string, args ...string) (*process, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := &process{name: name, cmd: exec.Command(path, args...), said: newJournal(), ended: make(chan struct{}), line: w}
	p.cmd.Dir, p.cmd.Env = dir, append(env, lifelineVar+"="+strconv.Itoa(3+len(files)))
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	p.cmd.ExtraFiles = append(slices.Clone(files), r)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its state
		close(p.ended)
	}()
	return p, nil
}

// cleaned is an environment without what would configure the fabric.
func cleaned(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "HOOKFABRIC_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// start starts one of the commands until the test ends.
func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	return startWith(t, nil, name, args...)
}

// startWith is start with variables of the environment.
func startWith(t testing.TB, env []string, name string, args ...string) *process {
	t.Helper()
	return startHolding(t, nil, env, name, args...)
}

// startHolding is startWith for a command that finds files open.
func startHolding(t testing.TB, files []*os.File, env []string, name string, args ...string) *process {
	t.Helper()
	p, err := launchHolding(files, t.TempDir(), append(cleaned(os.Environ()), env...), name, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %s said:\n%s", name, strings.Join(args, " "), lastLines(p.said.String(), 40))
		}
	})
	return p
}

func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// kill ends the whole group, however it is, and waits for it.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.ended
	_ = p.line.Close()
}

// signal sends a signal to the process's group, unless the process has ended.
func (p *process) signal(s syscall.Signal) error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended already", p.name)
	default:
		return syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// must is signal for a process that has to be there.
func (p *process) must(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.signal(s); err != nil {
		t.Fatal(err)
	}
}

// freeze stops the process and returns when all of it stands still: what is sent
// to it after that waits.
func (p *process) freeze(t testing.TB) {
	t.Helper()
	p.must(t, syscall.SIGSTOP)
	if err := eventually("the process stands still", p.frozen); err != nil {
		t.Fatal(err)
	}
}

// frozen reports whether every thread of the process is stopped.
func (p *process) frozen() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	return err == nil && !slices.ContainsFunc(threads, func(path string) bool {
		stat, err := os.ReadFile(path)
		// The state stands behind the name, which is in parentheses.
		return err == nil && !strings.Contains(string(stat), ") T ")
	})
}

// await waits until the process says something that matches after mark, and
// returns the match.
func (p *process) await(mark int, pattern string) ([]string, error) {
	re := regexp.MustCompile(pattern)
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		match, changed := p.said.find(mark, re)
		if match != nil {
			return match, nil
		}
		select {
		case <-changed:
		case <-p.ended:
			if match, _ := p.said.find(mark, re); match != nil {
				return match, nil
			}
			return nil, fmt.Errorf("%s ended (%v) and never said %q; it said:\n%s", p.name, p.cmd.ProcessState, pattern, p.said)
		case <-late.C:
			return nil, fmt.Errorf("%s did not say %q within %v; it said:\n%s", p.name, pattern, patience, p.said)
		}
	}
}

// mustSay is await for a test that cannot go on without it.
func (p *process) mustSay(t testing.TB, mark int, pattern string) []string {
	t.Helper()
	match, err := p.await(mark, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return match
}

// wait waits for the end and returns the exit code.
func (p *process) wait() (int, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-late.C:
		return 0, fmt.Errorf("%s did not end within %v; it said:\n%s", p.name, patience, p.said)
	}
}

// eventually polls another program until a condition holds.
func eventually(what string, ok func() bool) error { return bustest.Poll(what, ok) }
