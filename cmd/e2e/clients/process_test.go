package clients_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A process is one of the fabric's programs.
type process struct {
	name  string
	cmd   *exec.Cmd
	said  *output
	ended chan struct{} // closed when it is reaped
}

// program is the path of one of the fabric's programs.
func program(name string) string { return filepath.Join(os.Getenv(programsVar), name) }

// start starts one of the fabric's programs until the test ends.
func start(t testing.TB, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(program(name), args...), said: newOutput(), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = t.TempDir(), env
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	p.cmd.WaitDelay = time.Second
	tie(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its state
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.said)
		}
	})
	return p
}

// kill ends the whole group, however it is, and waits for it.
func (p *process) kill() {
	select {
	case <-p.ended:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.ended
	}
}

// hang stops the process and returns when all of it stands still.
func (p *process) hang(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !p.frozen() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not stand still within %v", p.name, patience)
		}
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

// mustSay waits until the process says something that matches, and returns the match.
func (p *process) mustSay(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(patience)
	for {
		match, more := p.said.find(re)
		if match != nil {
			return match
		}
		select {
		case <-more:
		case <-p.ended:
			if match, _ := p.said.find(re); match != nil {
				return match
			}
			t.Fatalf("%s ended (%v) and never said %q; it said:\n%s", p.name, p.cmd.ProcessState, pattern, p.said)
		case <-late:
			t.Fatalf("%s did not say %q within %v; it said:\n%s", p.name, pattern, patience, p.said)
		}
	}
}

// An output is what a process says, to be read while it goes on.
type output struct {
	mu   sync.Mutex // guards all below
	said bytes.Buffer
	more chan struct{} // closed at the next word
}

func newOutput() *output { return &output{more: make(chan struct{})} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.said.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.String()
}

func (o *output) find(re *regexp.Regexp) ([]string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return re.FindStringSubmatch(o.said.String()), o.more
}
