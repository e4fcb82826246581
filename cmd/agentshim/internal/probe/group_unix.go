//go:build unix

package probe

import (
	"os/exec"
	"syscall"
)

// alone puts a program into its own process group, so that sweep can end its children with it.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// sweep kills the processes that a program left running.
func sweep(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
