package shim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
)

// module is the module of the measured programs.
const module = "github.com/hookfabric/hookfabric/"

// build builds a program of this module as it is released: static, without debug
// information, and copied. A file that the linker wrote itself starts a fifth slower than an
// installed copy.
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

// event returns a call of 1 KiB that differs from all others.
func (s *session) event() string {
	s.asked++
	return fmt.Sprintf(`{"hook_type":"PreToolUse","agent_id":"load","session_id":"0d4c3f1e-load","tool_name":"none","tool_use_id":"load-%08d","cwd":"/",`+
		`"tool_input":{"command":"make test %s"}}`, s.asked, strings.Repeat("x", 840))
}

// once runs a program with an event as its input. It returns the time from exec to exit and
// the CPU time.
func (s *session) once(ctx context.Context, args []string) (took, cpu time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return 0, 0, err
	}
	defer r.Close()
	if _, err := io.WriteString(w, s.event()); err != nil { // it fits into the buffer of a pipe
		return 0, 0, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return 0, 0, err
	}
	var stdout, stderr bytes.Buffer
	p := exec.CommandContext(ctx, args[0], args[1:]...)
	p.Env = proc.Environ()
	p.Stdin, p.Stdout, p.Stderr = r, &stdout, &stderr
	began := time.Now()
	err = p.Run()
	took = time.Since(began)
	if err != nil || stdout.Len() == 0 || stderr.Len() > 0 {
		return 0, 0, fmt.Errorf("%w: it printed %q and %q", errors.Join(err, errWrong), &stdout, &stderr)
	}
	return took, p.ProcessState.UserTime() + p.ProcessState.SystemTime(), nil
}

var errWrong = errors.New("this is not the answer of a hook")

// listen answers every request on a unix socket with a verdict.
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
				_ = c.SetDeadline(time.Now().Add(limit))
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
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = load.Until(ctx, 5*time.Millisecond, func(ctx context.Context) error {
		_, err := daemon.Ask(ctx, s.socket)
		return err
	})
	if err != nil {
		p.stop()
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("the daemon does not answer: %w\n%s", err, said)
	}
	return p, nil
}

// stop ends the daemon.
func (p *daemonProcess) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	late.Stop()
	_ = p.log.Close()
}
