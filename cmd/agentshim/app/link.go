package app

import (
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/judge"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// ackTime is how long a shim waits to hear that what it handed over is
// acknowledged: its runtime waits for it to end.
const ackTime = 100 * time.Millisecond

// link is how a shim reaches the fabric, and what it does with what it gets.
type link struct {
	nats, creds, state, workspaces string
	tls                            certs.Files
}

// flags are those of every command that is handed something.
func (l *link) flags(f *pflag.FlagSet, workspaces string) {
	f.StringVar(&l.nats, "nats", "nats://127.0.0.1:4222", "the fabric's NATS URL")
	f.StringVar(&l.creds, "creds", "", "credentials file")
	program.TLSFlags(f, &l.tls)
	f.StringVar(&l.state, "state", program.OwnState(), "folder for what the agent's next shim must know")
	f.StringVar(&l.workspaces, "workspaces", "", "folder for workspaces of other agents, as temp_workspaces/<agent>; default: "+workspaces)
}

func (l *link) judgeLink(name string, stderr io.Writer) judge.Link {
	return judge.Link{URL: l.nats, Creds: l.creds, TLS: l.tls, Name: name, State: l.state, Stderr: stderr}
}
