//go:build unix

package mcp

import (
	"os"
	"os/exec"
	"syscall"
)

// apart puts a process into a group of its own, so that all of it can be ended,
// and what a terminal sends to the proxy's is passed on in good order.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// end tells the whole group of a process to end. One that is gone hears nothing.
func end(cmd *exec.Cmd, how signal) {
	s := syscall.SIGTERM
	if how == killed {
		s = syscall.SIGKILL
	}
	_ = syscall.Kill(-cmd.Process.Pid, s)
}

// exitCode is how shells tell how a process ended.
func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
