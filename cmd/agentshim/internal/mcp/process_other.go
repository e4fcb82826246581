//go:build !unix

package mcp

import (
	"os"
	"os/exec"
)

// apart does nothing where there are no process groups.
func apart(*exec.Cmd) (mark string) { return "" }

// ask ends a process; what it started stays.
func ask(cmd *exec.Cmd) { kill(cmd) }

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killAll(cmd *exec.Cmd, _ string) { kill(cmd) }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
