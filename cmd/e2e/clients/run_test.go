package clients_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// patience is how long a test waits for what should come at once, on a machine
// that does much else at the same time.
const patience = time.Minute

// run runs a program and all processes that it starts to their end, and returns its output.
func run(ctx context.Context, dir string, env []string, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*patience, fmt.Errorf("%s was not done within %v", filepath.Base(path), 3*patience))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = time.Second
	tie(cmd)
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = kill() // what it left behind
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return string(out), err
}
