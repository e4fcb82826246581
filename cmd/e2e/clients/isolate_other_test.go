//go:build !linux

package clients_test

import (
	"os/exec"
	"syscall"
)

func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
