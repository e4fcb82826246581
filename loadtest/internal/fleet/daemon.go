package fleet

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	agentshim "github.com/hookfabric/hookfabric/cmd/agentshim/app"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/loadtest/internal/audit"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// Daemon is the role of a process that runs `agentshim serve`.
const Daemon = "fleet-daemon"

// DaemonConfig configures a daemon.
type DaemonConfig struct {
	// NATS is the URL of the broker's server.
	NATS string `json:"nats"`
	// State is the daemon's folder. By is the name of this process.
	State string `json:"state"`
	By    string `json:"by"`
}

// startDaemon runs `agentshim serve`. It names its process in a file before it takes calls, so
// that agents know which process acknowledges.
func startDaemon(ctx context.Context, c DaemonConfig) (*proc.Role, error) {
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, err
	}
	d := daemonIn(c.State)
	if err := os.WriteFile(d.name, []byte(c.By), 0o600); err != nil {
		return nil, err
	}
	p := roles.Run(context.WithoutCancel(ctx), agentshim.Main, "serve", "--nats", c.NATS, "--state", c.State, "--socket", d.c.Socket, "--http", "")
	return &proc.Role{Close: p.Close}, nil
}

// A connection is how agents ask the fabric: directly, or through a daemon.
type connection interface {
	Ask(ctx context.Context, e *schema.Event) (*schema.Verdict, error)
	Flush(ctx context.Context) error
	Close()
	// recipient returns what logs and acknowledges the messages of one agent.
	recipient(agent string, log *audit.Journal) recipient
}

// A recipient takes the messages in verdicts for one agent. An error means that the log cannot
// be written.
type recipient interface {
	Take(v *schema.Verdict) error
	Acknowledged() error
}

// direct is a connection to the fabric.
type direct struct{ *client.Client }

// Ask asks the fabric.
func (d direct) Ask(ctx context.Context, e *schema.Event) (*schema.Verdict, error) {
	return d.Client.Ask(ctx, e)
}

func (d direct) recipient(agent string, log *audit.Journal) recipient {
	return audit.NewRecipient(agent, d.Client, log)
}

// deliveredIn is the time limit for telling the daemon that messages were delivered.
const deliveredIn = time.Second

// throughDaemon asks a daemon, which acknowledges.
type throughDaemon struct {
	c    *daemon.Client
	name string   // the file with the name of the daemon's process
	by   sync.Map // the name of the process that answered, by event
}

func daemonIn(state string) *throughDaemon {
	return &throughDaemon{c: &daemon.Client{Socket: filepath.Join(state, "daemon.sock")}, name: filepath.Join(state, "by")}
}

// Ask asks the daemon. An answer that the fabric did not give counts as none.
func (d *throughDaemon) Ask(ctx context.Context, e *schema.Event) (*schema.Verdict, error) {
	by, err := os.ReadFile(d.name) // before asking: a process that is killed during the call is excused
	if err != nil {
		return nil, err
	}
	j := d.c.Ask(ctx, daemon.Question{Event: e})
	if j.Unjudged == nil {
		d.by.Store(j.Verdict.EventID, string(by))
	}
	return j.Verdict, j.Unjudged
}

// Flush has nothing to acknowledge.
func (d *throughDaemon) Flush(context.Context) error { return nil }

// Close ends the connections to the daemon.
func (d *throughDaemon) Close() { d.c.Close() }

func (d *throughDaemon) recipient(agent string, log *audit.Journal) recipient {
	return daemonRecipient{throughDaemon: d, agent: agent, log: log}
}

// daemonRecipient takes messages that a daemon brought.
type daemonRecipient struct {
	*throughDaemon
	agent string
	log   *audit.Journal
}

// Take logs the messages, and then tells the daemon, which acknowledges them.
func (r daemonRecipient) Take(v *schema.Verdict) error {
	by, _ := r.by.LoadAndDelete(v.EventID)
	name, _ := by.(string)
	if err := r.log.Hand(name, r.agent, v); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), deliveredIn)
	defer cancel()
	r.c.Handed(ctx, v, deliveredIn)
	return nil
}

// Acknowledged logs nothing: the agent does not learn what its daemon acknowledged.
func (r daemonRecipient) Acknowledged() error { return nil }
