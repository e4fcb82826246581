package doctor

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
)

// safe returns an error if a stranger may have written the hook: a user who runs the doctor in a downloaded
// folder has agreed to nothing in it.
func (o *Options) safe(l *Layer, h *install.Owned) error {
	theirs := l.Scope == install.Project
	if h.URL != "" {
		return o.safeURL(h.URL, theirs)
	}
	if !theirs {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if !sameProgram(h.Command[0], self) {
		return fmt.Errorf("the project's hook starts %s, which is not this agentshim; if you trust that program, run its own doctor", h.Command[0])
	}
	mine := map[string]string{"--nats": o.NATS, "--creds": o.Creds, "--state": o.State,
		"--tls-ca": o.TLS.CA, "--tls-cert": o.TLS.Cert, "--tls-key": o.TLS.Key}
	var flags []string
	for i, word := range h.Command {
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(h.Command) {
			value = h.Command[i+1]
		}
		if known, is := mine[name]; is && value != known {
			flags = append(flags, name+" "+install.Quote(bus.RedactURL(value)))
		}
	}
	if len(flags) > 0 {
		return fmt.Errorf("the project's hook has flags of its own; if you trust the project, run 'agentshim doctor' with these flags: %s", strings.Join(flags, " "))
	}
	return nil
}

// safeURL returns an error if a hook's URL is not the daemon's, which alone may get the token.
func (o *Options) safeURL(text string, theirs bool) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("the hook's URL is invalid; install again")
	}
	if u.Scheme != "http" || !peer.IsLocal(u.Hostname()) {
		return fmt.Errorf("the hook asks %s, which is not on this machine and would get the daemon's token; install again", bus.RedactURL(text))
	}
	card, err := daemon.Place{State: o.State}.ReadCard()
	if at, perr := url.Parse(card.URL); theirs && (err != nil || perr != nil || at.Host != u.Host) {
		return fmt.Errorf("the project's hook asks %s, which is not the daemon of this machine and would get the daemon's token; install again", u.Host)
	}
	return nil
}

// sameProgram reports whether a program, looked up as a shell does, is the given file.
func sameProgram(program, file string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err != nil {
		return false
	}
	a, err := os.Stat(path)
	b, berr := os.Stat(file)
	return err == nil && berr == nil && os.SameFile(a, b)
}
