package app

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// ackTime limits the wait for the confirmation of an acknowledgement: the runtime waits, too.
const ackTime = 100 * time.Millisecond

// link has the settings with which a shim reaches the fabric and handles what it gets.
type link struct {
	nats, creds, state, workspaces string
	tls                            certs.Files
	unnamed                        bool // neither the command line nor the environment names a fabric
}

// flags declares the flags of every command that receives items.
func (l *link) flags(f *pflag.FlagSet, workspaces string) {
	f.StringVar(&l.nats, "nats", "nats://127.0.0.1:4222", "`URL` of the fabric's NATS server")
	f.StringVar(&l.creds, "creds", "", "credentials `FILE` that 'broker creds add' wrote; default: none")
	program.TLSFlags(f, &l.tls)
	stateFlag(f, &l.state)
	f.StringVar(&l.workspaces, "workspaces", "", "`DIR` for copies of other agents' workspaces, as temp_workspaces/<agent> below it; default: "+workspaces)
}

// stateFlag declares --state. [link.resolve] fills in its default, which costs system calls.
func stateFlag(f *pflag.FlagSet, at *string) {
	f.StringVar(at, "state", "", "state folder `DIR`, where agentshim keeps the last policy and unacknowledged deliveries; default: hookfabric in $XDG_STATE_HOME, else in ~/.local/state, "+
		"else, if agentshim can write neither, a folder of this user in /run/user or /var/tmp")
}

// socketFlag declares --socket; more follows its default.
func socketFlag(f *pflag.FlagSet, at *string, more string) {
	f.StringVar(at, "socket", "", "`PATH` of the daemon's unix socket; default: hookfabric/agentshim.sock in $XDG_RUNTIME_DIR, else agentshim.sock in --state"+more)
}

// byItself says when hooks and proxies do not use the daemon.
const byItself = "; with --nats, agentshim does not use the daemon"

// unreachableFlag declares --unreachable for calls of some kind. The default is for [checkUnreachable].
func unreachableFlag(c *cobra.Command, at *string, usage string) {
	c.Flags().StringVar(at, "unreachable", "", usage)
	program.Completes(c, "unreachable", decide.UnreachableDeny, decide.UnreachableAllow)
}

// checkUnreachable fills in the default of --unreachable, and rejects unknown values.
func checkUnreachable(at *string, managed bool) error {
	if *at == "" {
		if *at = decide.UnreachableAllow; managed {
			*at = decide.UnreachableDeny
		}
	}
	if *at != decide.UnreachableDeny && *at != decide.UnreachableAllow {
		return program.UsageError("--unreachable is %q; write deny or allow", *at)
	}
	return nil
}

// resolve fills in the state folder, and whether the fabric is named. A shim whose fabric is unnamed uses that
// of the local daemon, and applies its policy beside that of its own URL.
func (l *link) resolve(f *pflag.FlagSet) {
	if l.unnamed = !f.Changed("nats"); !f.Changed("state") {
		l.state = program.OwnState()
	}
}

func (l *link) judgeLink(name string, stderr io.Writer, log *slog.Logger) decide.Link {
	if l.workspaces != "" {
		_ = os.MkdirAll(l.workspaces, 0o755) // if this fails, the texts that name a workspace say so
	}
	return decide.Link{URL: l.nats, Creds: l.creds, TLS: l.tls, Name: name, State: l.state, Unnamed: l.unnamed, Stderr: program.Messages(stderr), Log: log}
}

// warnings returns the log of a process for one event, which the user may see.
func warnings(stderr io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(program.Messages(stderr), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (l *link) check() error {
	if _, _, err := bus.CredsTimes(l.creds); err != nil {
		return fmt.Errorf("--creds: %w", err)
	}
	return l.tls.Check()
}

// listens reports whether a daemon has the socket, even if that daemon hangs.
func listens(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// follow makes an unnamed shim ask the fabric of a daemon that hangs or died: its card still exists. args are
// the flags for another daemon of that fabric.
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

// printJSON prints a value as one line.
func printJSON(w io.Writer, v any) error {
	data, err := schema.Marshal(v)
	if err == nil {
		_, err = w.Write(append(schema.VisibleJSON(data), '\n'))
	}
	return err
}
