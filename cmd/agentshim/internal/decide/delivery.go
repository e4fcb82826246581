package decide

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// A Link says how a shim connects to the fabric, and where it stores state for later shims.
type Link struct {
	// URL is the bus, Creds the credentials file, and Name the name of the connection.
	URL, Creds, Name string
	// TLS holds the certificates for the connection.
	TLS certs.Files
	// Unnamed: the shim's command line and environment name no fabric. URL is then a guess, and the
	// policies of fabrics that the daemon reached count as well.
	Unnamed bool
	// InProcess is a server in this process, used instead of URL.
	InProcess nats.InProcessConnProvider
	// State is the state folder; empty: the shim stores nothing.
	State string
	// Tracer begins spans; nil: tracing is off.
	Tracer *trace.Tracer
	// Stderr gets messages for people.
	Stderr io.Writer
	// Log gets messages about the connection and workspaces; nil: the default logger of slog.
	Log *slog.Logger
}

// A Delivery acknowledges what the fabric delivers to one agent. A nil Delivery has no connection.
type Delivery struct {
	// Client is the connection.
	Client *client.Client

	agent  string
	state  shimstate.Folder
	stored []client.Handover // by earlier shims
	stderr io.Writer
}

// urls returns the URLs under which the state folder stores the fabrics that answered, the main one first.
func (l *Link) urls() []string {
	if l.Unnamed {
		return []string{shimstate.Unnamed, l.URL}
	}
	return []string{l.URL}
}

// Connect connects to the fabric, and sends the stored handovers of earlier shims. It unpacks workspaces of
// other agents below the folder workspaces; empty: it unpacks none.
func (l *Link) Connect(ctx context.Context, agent, workspaces string) (*Delivery, error) {
	line, err := l.dialIn(ctx, workspaces)
	if err != nil {
		return nil, err
	}
	g := l.delivery(agent)
	g.connect(line)
	return g, nil
}

func (l *Link) dial(ctx context.Context) (*client.Client, error) { return l.dialIn(ctx, "") }

func (l *Link) dialIn(ctx context.Context, workspaces string) (*client.Client, error) {
	return client.Connect(ctx, client.Options{
		URL: l.URL, Creds: l.Creds, TLS: l.TLS, Name: l.Name, InProcess: l.InProcess, Workspaces: workspaces, Logger: l.Log,
	})
}

// delivery returns the delivery of an agent, with the stored handovers of earlier shims.
func (l *Link) delivery(agent string) *Delivery {
	g := &Delivery{agent: agent, state: shimstate.Folder(l.State), stderr: l.Stderr}
	var err error
	if g.stored, err = g.state.Handovers(agent); err != nil {
		fmt.Fprintf(l.Stderr, "agentshim: reading the state of earlier agentshim processes: %v; repair the folder %s, or name another one with --state\n", err, l.State)
	}
	return g
}

// connect sends the stored handovers over a connection.
func (g *Delivery) connect(line *client.Client) {
	g.Client = line
	line.Recall(g.stored...)
}

// MakeWorkspaces creates the folder for workspaces. If it cannot, the texts that name a workspace say so.
func MakeWorkspaces(dir string) {
	if dir != "" {
		_ = os.MkdirAll(dir, 0o755)
	}
}

// Done acknowledges the items of an event, which the agent has now. It stores what the fabric does not
// confirm in time for the agent's next shim, and reports whether the fabric confirmed everything.
func (g *Delivery) Done(ctx context.Context, event string, within time.Duration) bool {
	if g == nil {
		return true
	}
	brought, _ := g.Client.Brought(event)
	g.Client.Handed(event)
	noted := g.Client.Noted(g.agent)
	if noted.Fabric == "" {
		return true // no fabric answered, so there is nothing to acknowledge
	}
	if len(noted.Events) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		if err := g.Client.Ack(ctx, g.agent, noted.Events...); err == nil {
			noted.Events = nil
		}
	}
	if len(noted.Events) > 0 || len(brought.Events) == 0 {
		noted.Sequences = brought.Sequences
	}
	g.store(noted)
	return len(noted.Events) == 0
}

// mustAckNow reports whether the fabric waits for the acknowledgement of a verdict: the grace of a round
// begins when the agent has its warning, and may be zero.
func mustAckNow(v *schema.Verdict) bool {
	return slices.ContainsFunc(v.Injections, func(in schema.Injection) bool { return in.Source == schema.SourceTimeout })
}

// ackNow acknowledges an event at once, in the background, instead of with the agent's next event.
func (j *Judge) ackNow(line *client.Client, event string) {
	brought, ok := line.Brought(event)
	line.Handed(event)
	b := j.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if !ok || b.ctx.Err() != nil {
		return
	}
	b.work.Go(j.guarded(func() {
		ctx, cancel := context.WithTimeout(b.ctx, backgroundTime)
		defer cancel()
		_ = line.Ack(ctx, brought.Agent, brought.Events...) // after an error the next event acknowledges it
	}))
}

// store stores handovers that are not confirmed, and removes those that are.
func (g *Delivery) store(left client.Handover) {
	var confirmed []string
	for _, h := range g.stored {
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
	if err := g.state.AddHandover(left, confirmed); err != nil {
		fmt.Fprintf(g.stderr, "agentshim: storing the delivered items: %v; the fabric may deliver them again; make the folder %s writable, or name another one with --state\n",
			err, g.state)
	}
}

// Close closes the connection.
func (g *Delivery) Close() {
	if g != nil {
		g.Client.Close()
	}
}
