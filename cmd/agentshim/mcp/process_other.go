//go:build !unix

package mcp

import (
	"os"
	"os/exec"
)

// apart does nothing where there are no process groups.
func apart(*exec.Cmd) {}

// end ends a process; what it started stays.
func end(cmd *exec.Cmd, _ signal) { _ = cmd.Process.Kill() }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
