package shim

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/loadtest/proc"
)

// module is where the programs come from that are measured.
const module = "github.com/hookfabric/hookfabric/"

// buildable looks whether the programs can be built here, as what the go command says
// where they cannot is of no help to who only wants to measure.
func buildable(ctx context.Context) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("shim builds the programs that it measures, and there is no go command in PATH; install Go, or add it to PATH")
	}
	c := exec.CommandContext(ctx, "go", "list", module+agentshim)
	c.Env = append(os.Environ(), "GOPROXY=off")
	if said, err := c.CombinedOutput(); err != nil && ctx.Err() == nil {
		here, _ := os.Getwd()
		first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		return fmt.Errorf("shim builds the programs that it measures, and the go command does not find their source from %s (%s); run it inside the repository", here, first)
	}
	return context.Cause(ctx)
}

// build builds a program of this module as it is released: static, without
// what only debuggers read, and copied to where it lies. What the linker wrote itself, page by
// page, stays so in the system's memory, and costs a start a fifth more than the copies that
// are installed.
func build(ctx context.Context, dir, pkg string) (string, error) {
	out := filepath.Join(dir, path.Base(pkg))
	linked := out + ".linked"
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", linked, module+pkg)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, said)
	}
	return out, copied(linked, out)
}

func copied(from, to string) error {
	program, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, program, 0o755)
	}
	if err != nil {
		return fmt.Errorf("copying a program: %w", err)
	}
	return nil
}

// A contender is one program that is measured.
type contender struct {
	name string
	args []string
}

// The rows.
const (
	baseline  = "Go program, one request on a unix socket"
	direct    = "agentshim hook, direct"
	byDaemon  = "agentshim hook, through the daemon"
	inPython  = "Python hook, one request on a unix socket"
	versioned = "agentshim version"
)

//go:embed baseline.py
var python string

func (s *session) contenders() []contender {
	echo := filepath.Join(s.dir, "echo.sock")
	hook := []string{s.shim, "hook", "--runtime", "generic", "--state", s.dir}
	all := []contender{
		{name: baseline, args: []string{s.base, echo}},
		{name: direct, args: append(slices.Clip(hook), "--nats", s.nats)},
		{name: byDaemon, args: append(slices.Clip(hook), "--socket", s.socket)},
		{name: versioned, args: []string{s.shim, "version"}},
	}
	if program, err := exec.LookPath("python3"); err == nil {
		all = append(all, contender{name: inPython, args: []string{program, "-c", python, echo}})
	}
	return all
}

// event is a call of 1 KiB that no other one is like.
func (s *session) event() string {
	s.asked++
	return fmt.Sprintf(`{"hook_type":"PreToolUse","agent_id":"load","session_id":"0d4c3f1e-load","tool_name":"none","tool_use_id":"load-%08d","cwd":"/",`+
		`"tool_input":{"command":"make test %s"}}`, s.asked, strings.Repeat("x", 840))
}

// A cost is what one run of a program took.
type cost struct {
	// took is the time from its start to its end, cpu the processor's in it, its own and
	// the kernel's, and faults the pages that it touched for the first time.
	took, cpu time.Duration
	faults    int64
}

// once runs a program, and returns what that took.
func (s *session) once(ctx context.Context, c contender) (spent cost, err error) {
	ctx, cancel := context.WithTimeout(ctx, dawdle)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return spent, err
	}
	defer r.Close()
	if _, err := io.WriteString(w, s.event()); err != nil { // a pipe takes as much at once
		return spent, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return spent, err
	}
	var stdout, stderr bytes.Buffer
	p := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	p.Env = proc.Environ()
	p.Stdin, p.Stdout, p.Stderr = r, &stdout, &stderr
	began := time.Now()
	err = p.Run()
	spent.took = time.Since(began)
	if err != nil || stdout.Len() == 0 || stderr.Len() > 0 {
		return spent, fmt.Errorf("%w: it said %q and %q", errors.Join(err, errWrong), &stdout, &stderr)
	}
	spent.cpu = p.ProcessState.UserTime() + p.ProcessState.SystemTime()
	spent.faults = faults(p.ProcessState)
	return spent, nil
}

// faults are the pages that a process touched for the first time; 0: this system
// does not tell.
func faults(p *os.ProcessState) int64 {
	if usage, ok := p.SysUsage().(*syscall.Rusage); ok {
		return int64(usage.Minflt) //nolint:unconvert // it has another type on other systems
	}
	return 0
}

var errWrong = errors.New("this is not how a hook answers")

// listen answers whoever asks with a verdict.
func listen(socket string) (io.Closer, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening for the baseline: %w", err)
	}
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(dawdle))
				if _, err := io.Copy(io.Discard, c); err == nil {
					_, _ = io.WriteString(c, "{\"decision\":\"continue\",\"config_version\":1}\n")
				}
			}()
		}
	}()
	return l, nil
}

// daemonProcess is `agentshim serve`.
type daemonProcess struct {
	cmd *exec.Cmd
	log *os.File
}

// startDaemon starts one, and waits until it answers.
func (s *session) startDaemon(ctx context.Context) (*daemonProcess, error) {
	log, err := os.Create(filepath.Join(s.dir, "daemon.log"))
	if err != nil {
		return nil, err
	}
	p := &daemonProcess{log: log, cmd: exec.Command(s.shim, "serve", "--nats", s.nats, "--state", s.dir, "--socket", s.socket, "--http", "")}
	p.cmd.Env, p.cmd.Stderr = proc.Environ(), log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the daemon: %w", err), log.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, dawdle)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := daemon.Ask(ctx, s.socket)
		if err == nil {
			return p, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.stop()
			said, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("the daemon does not answer: %w\n%s", err, said)
		}
	}
}

// stop ends the daemon.
func (p *daemonProcess) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(dawdle, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	late.Stop()
	_ = p.log.Close()
}
