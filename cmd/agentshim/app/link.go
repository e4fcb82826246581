package app

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// ackTime is how long a shim waits to hear that what it handed over is
// acknowledged: its runtime waits for it to end.
const ackTime = 100 * time.Millisecond

// link is how a shim reaches the fabric, and what it does with what it gets.
type link struct {
	nats, creds, state, workspaces string
	tls                            certs.Files
	// unnamed: neither the command line nor the environment names a fabric.
	unnamed bool
}

// flags are those of every command that is handed something.
func (l *link) flags(f *pflag.FlagSet, workspaces string) {
	f.StringVar(&l.nats, "nats", "nats://127.0.0.1:4222", "`URL` of the fabric's NATS server")
	f.StringVar(&l.creds, "creds", "", "credentials `FILE` that 'broker creds add' wrote; default: none")
	program.TLSFlags(f, &l.tls)
	stateFlag(f, &l.state)
	f.StringVar(&l.workspaces, "workspaces", "", "`DIR` for copies of other agents' workspaces, as temp_workspaces/<agent> below it; default: "+workspaces)
}

// stateFlag is --state. [link.resolve] fills in its default, since to find a folder that can be
// written costs system calls.
func stateFlag(f *pflag.FlagSet, at *string) {
	f.StringVar(at, "state", "", "state folder `DIR`, where agentshim keeps the last policy and unacknowledged deliveries; default: hookfabric in $XDG_STATE_HOME, else in ~/.local/state, "+
		"else, if agentshim can write neither, a folder of this user in /run/user or /var/tmp")
}

// resolve fills in what f does not name: the state folder, and the fabric. It is the one rule for every
// command that judges: a shim whose fabric is unnamed means the fabric of the local daemon, and applies
// the policy of that one as well as the policy of the fabric at its own URL.
func (l *link) resolve(f *pflag.FlagSet) {
	if l.unnamed = !f.Changed("nats"); !f.Changed("state") {
		l.state = program.OwnState()
	}
}

func (l *link) judgeLink(name string, stderr io.Writer, log *slog.Logger) decide.Link {
	return decide.Link{URL: l.nats, Creds: l.creds, TLS: l.tls, Name: name, State: l.state, Unnamed: l.unnamed, Stderr: program.Messages(stderr), Log: log}
}

// warnings is the log of a process that its runtime starts for one event: what it writes may be
// shown to the user.
func warnings(stderr io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(program.Messages(stderr), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// check says what is wrong with the credentials and the certificates, before a call waits for them.
func (l *link) check() error {
	if _, _, err := bus.CredsTimes(l.creds); err != nil {
		return fmt.Errorf("--creds: %w", err)
	}
	return l.tls.Check()
}

// listens reports whether a daemon, be it one that hangs, has the socket.
func listens(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// follow has an unnamed shim ask the fabric of the daemon at a socket, if that daemon hangs or did not
// end in good order: then its card is there still. Credentials and certificates that the shim names
// itself stay. args are the flags with which another daemon asks the same fabric.
func (l *link) follow(socket string) (args []string) {
	card, err := daemon.Place{State: l.state}.ReadCard()
	if !l.unnamed || err != nil || card.NATS == "" || card.Socket != socket {
		return nil
	}
	l.nats, args = card.NATS, []string{"--nats", card.NATS}
	if l.creds == "" && card.Creds != "" {
		l.creds, args = card.Creds, append(args, "--creds", card.Creds)
	}
	if l.tls.Empty() {
		l.tls, args = card.TLS, append(args, "--tls-ca", card.TLS.CA, "--tls-cert", card.TLS.Cert, "--tls-key", card.TLS.Key)
	}
	return args
}
