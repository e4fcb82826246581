//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLogFile is the size at which the log of the daemons that hooks start is rotated.
const maxLogFile = 1 << 20

// A Start is a daemon that a hook starts for the calls after its own.
type Start struct {
	Place

	// Program is the executable, and Args follow `serve`.
	Program string
	Args    []string
}

// Detached starts a daemon that outlives this process. If several processes call it at the
// same time, one starts the daemon and the others get ErrTaken.
func (s Start) Detached() error {
	socket := s.Socket()
	if socket == "" || s.State == "" {
		return errors.New("found no folder for the daemon; name one with --state")
	}
	if err := makeOwn(filepath.Dir(socket)); err != nil {
		return err
	}
	if err := makeOwn(s.State); err != nil {
		return err
	}
	// The daemon inherits the locked file, and holds the lock until it ends.
	lock, err := takeLock(socket)
	if err != nil {
		return err
	}
	defer lock.Close()
	log, err := s.openLog()
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(s.Program, append([]string{"serve"}, s.Args...)...)
	c.Dir = s.State
	c.Env = append(startEnvironment(), lockVar+"="+socket)
	c.Stdout, c.Stderr = log, log // stdin is /dev/null
	c.ExtraFiles = []*os.File{lock}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting a daemon: %w", err)
	}
	return c.Process.Release() // init adopts the daemon when this process ends
}

// openLog opens the daemon's log, and first rotates a long one.
func (s Start) openLog() (*os.File, error) {
	if info, err := os.Stat(s.Log()); err == nil && info.Size() > maxLogFile {
		_ = os.Rename(s.Log(), s.Log()+".old")
	}
	return os.OpenFile(s.Log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// startEnvironment returns the environment of the new daemon. It leaves out the runtime's
// own variables, which may hold secrets.
func startEnvironment() (env []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "HOOKFABRIC_") && name != "HOOKFABRIC_AGENT" && name != "HOOKFABRIC_IDLE",
			strings.HasPrefix(name, "XDG_"), name == "HOME", name == "PATH", name == "USER", name == "LANG", name == "TMPDIR", name == "TZ":
			env = append(env, v)
		}
	}
	return env
}
