//go:build !unix

package mcp

import (
	"os"
	"os/exec"
)

// prepareGroup does nothing: there are no process groups, and children of the server can survive it.
func prepareGroup(*exec.Cmd) (mark string) { return "" }

func terminate(cmd *exec.Cmd) { killGroup(cmd) }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killAll(cmd *exec.Cmd, _ string) { killGroup(cmd) }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
