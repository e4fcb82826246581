//go:build unix

package mcp

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/hookfabric/hookfabric/bus/proctree"
)

// apart puts a process into a group of its own, so that all of it can be ended,
// and what a terminal sends to the proxy's is passed on in good order.
func apart(cmd *exec.Cmd) (mark string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	mark = proctree.NewMark()
	cmd.Env = append(cmd.Environ(), mark)
	return mark
}

// ask tells the whole group of a process to end. One that is gone hears nothing.
func ask(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill ends the whole group of a process.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// killAll ends also what a process has started in sessions of their own, where the system tells
// whose it is.
func killAll(cmd *exec.Cmd, mark string) {
	proctree.Kill(cmd.Process.Pid, mark, func() { kill(cmd) })
}

// exitCode is how shells tell how a process ended.
func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
