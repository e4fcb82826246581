//go:build unix

package mcp

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/hookfabric/hookfabric/bus/proctree"
)

// prepareGroup gives a process a group of its own. The mark finds children in other groups.
func prepareGroup(cmd *exec.Cmd) (mark string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	mark = proctree.NewMark()
	cmd.Env = append(cmd.Environ(), mark)
	return mark
}

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// killAll kills also what a process started in other sessions, where the system can find it.
func killAll(cmd *exec.Cmd, mark string) {
	proctree.Kill(cmd.Process.Pid, mark, func() { killGroup(cmd) })
}

// exitCode returns the exit code as shells count it.
func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
