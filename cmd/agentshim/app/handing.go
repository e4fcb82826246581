package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/kept"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// ackTime is how long a shim waits to hear that what it handed over is
// acknowledged: its runtime waits for it to end.
const ackTime = 100 * time.Millisecond

// link is how a shim reaches the fabric, and what it does with what it gets.
type link struct {
	nats, creds, state, workspaces string
	name                           string // of the connection
}

// flags are those of every command that is handed something.
func (l *link) flags(c *cobra.Command, workspaces string) {
	f := c.Flags()
	f.StringVar(&l.nats, "nats", "nats://127.0.0.1:4222", "the fabric's NATS URL")
	f.StringVar(&l.creds, "creds", "", "credentials file")
	f.StringVar(&l.state, "state", program.StateHome(), "folder for what the agent's next shim must know")
	f.StringVar(&l.workspaces, "workspaces", "", "folder for workspaces of other agents, as temp_workspaces/<agent>; default: "+workspaces)
}

// A handing is what one shim hands over to its agent. A nil one never reached
// the fabric.
type handing struct {
	client *client.Client
	agent  string
	state  kept.Folder
	kept   []client.Handover // by shims before this one
	stderr io.Writer
}

// connect reaches the fabric, and tells it what shims before this one kept.
func (l *link) connect(ctx context.Context, agent, workspaces string, stderr io.Writer) (*handing, error) {
	g := &handing{agent: agent, state: kept.Folder(l.state), stderr: stderr}
	var err error
	if g.kept, err = g.state.Load(agent); err != nil {
		fmt.Fprintf(stderr, "agentshim: what earlier shims kept can not all be read: %v; mend the folder %s, or name another one with --state\n", err, l.state)
	}
	if l.workspaces != "" {
		// Who names a folder means it to be there. Where it can not be made, that
		// is said in the place of the workspaces.
		_ = os.MkdirAll(l.workspaces, 0o755)
	}
	g.client, err = client.Connect(ctx, client.Options{
		URL: l.nats, Creds: l.creds, Name: l.name, Workspaces: workspaces, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	g.client.Recall(g.kept...)
	return g, nil
}

// done acknowledges what an event brought, now that the agent has it. What is
// not confirmed within the time given is kept for the agent's next shim. It
// reports whether nothing was left to be kept.
func (g *handing) done(ctx context.Context, event string, within time.Duration) bool {
	if g == nil {
		return true
	}
	brought, _ := g.client.Brought(event)
	g.client.Handed(event)
	noted := g.client.Noted(g.agent)
	if noted.Fabric == "" {
		return true // nobody answered, so there is nothing to say to anybody
	}
	if len(noted.Events) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		if err := g.client.Ack(ctx, g.agent, noted.Events...); err == nil {
			noted.Events = nil
		}
	}
	if len(noted.Events) > 0 || len(brought.Events) == 0 {
		noted.Sequences = brought.Sequences
	}
	g.keep(noted)
	return len(noted.Events) == 0
}

// keep writes down what is not confirmed, and takes out what is by now.
func (g *handing) keep(left client.Handover) {
	var confirmed []string
	for _, h := range g.kept {
		if h.Fabric != left.Fabric {
			continue
		}
		for _, e := range h.Events {
			if !slices.Contains(left.Events, e) {
				confirmed = append(confirmed, e)
			}
		}
	}
	if len(left.Events) == 0 && len(left.Sequences) == 0 && len(confirmed) == 0 {
		return
	}
	if err := g.state.Keep(left, confirmed); err != nil {
		fmt.Fprintf(g.stderr, "agentshim: what was handed over could not be kept, and may come again: %v; make the folder %s writable, or name another one with --state\n",
			err, g.state)
	}
}

func (g *handing) close() {
	if g != nil {
		g.client.Close()
	}
}
