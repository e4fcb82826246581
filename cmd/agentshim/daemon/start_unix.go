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

// maxLogFile is when the log of daemons that hooks started is begun anew.
const maxLogFile = 1 << 20

// A Start is a daemon that a hook starts for the calls after its own.
type Start struct {
	Place

	// Program is the executable, and Args follow `serve`.
	Program string
	Args    []string
}

// Detached starts a daemon that outlives this process. Of many that do so at
// the same time one starts it; the others get ErrTaken.
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
	// The daemon gets the lock with the file, and keeps it as long as it lives.
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
	return c.Process.Release() // it is nobody's child when this process has ended
}

// openLog is where the daemon writes; a long one is put aside first.
func (s Start) openLog() (*os.File, error) {
	if info, err := os.Stat(s.Log()); err == nil && info.Size() > maxLogFile {
		_ = os.Rename(s.Log(), s.Log()+".old")
	}
	return os.OpenFile(s.Log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// startEnvironment is what a daemon may know of the environment of the hook that
// starts it: the rest is the runtime's, and holds secrets.
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
