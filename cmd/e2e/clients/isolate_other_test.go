//go:build !linux

package clients_test

import (
	"errors"
	"os/exec"
	"syscall"
)

// isolate does not know how; the command must not be started.
func isolate(cmd *exec.Cmd) {
	cmd.Err = errors.New("no network namespaces on this system")
}

func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func raiseLoopback() error { return errors.New("no network namespaces on this system") }
