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

// A Link is how a shim reaches the fabric, and where it keeps what the next one
// must know.
type Link struct {
	// URL and Creds are the bus and the credentials file; Name is the connection's.
	URL, Creds, Name string
	// TLS is whom the shim trusts, and what it shows.
	TLS certs.Files
	// Unnamed: whoever asks named no fabric. URL is a guess then, where no daemon
	// serves, and what is known of the fabric that the daemon reached counts.
	Unnamed bool
	// InProcess is a server in this process, which is reached instead of URL.
	InProcess nats.InProcessConnProvider
	// State is the folder of what is kept; empty: nothing is.
	State string
	// Tracer begins spans; nil: nobody traces here.
	Tracer *trace.Tracer
	// Stderr hears what people should know.
	Stderr io.Writer
	// Log hears of the connection and of workspaces; nil: slog's default.
	Log *slog.Logger
}

// A Handing is what one shim hands over to its agent. A nil one never reached
// the fabric.
type Handing struct {
	// Client is the connection.
	Client *client.Client

	agent  string
	state  shimstate.Folder
	kept   []client.Handover // by shims before this one
	stderr io.Writer
}

// places are under which URLs it is kept which fabric was reached, the one that
// counts first.
func (l *Link) places() []string {
	if l.Unnamed {
		return []string{shimstate.Unnamed, l.URL}
	}
	return []string{l.URL}
}

// Connect reaches the fabric, and tells it what shims before this one kept.
// Workspaces of other agents are unpacked below the folder workspaces; empty: nowhere.
func (l *Link) Connect(ctx context.Context, agent, workspaces string) (*Handing, error) {
	line, err := l.dialIn(ctx, workspaces)
	if err != nil {
		return nil, err
	}
	g := l.kept(agent)
	g.over(line)
	return g, nil
}

func (l *Link) dial(ctx context.Context) (*client.Client, error) { return l.dialIn(ctx, "") }

func (l *Link) dialIn(ctx context.Context, workspaces string) (*client.Client, error) {
	return client.Connect(ctx, client.Options{
		URL: l.URL, Creds: l.Creds, TLS: l.TLS, Name: l.Name, InProcess: l.InProcess, Workspaces: workspaces, Logger: l.Log,
	})
}

// kept is what shims before this one kept for an agent; it is handed over once there
// is a connection.
func (l *Link) kept(agent string) *Handing {
	g := &Handing{agent: agent, state: shimstate.Folder(l.State), stderr: l.Stderr}
	var err error
	if g.kept, err = g.state.Handovers(agent); err != nil {
		fmt.Fprintf(l.Stderr, "agentshim: reading the state of earlier agentshim processes: %v; repair the folder %s, or name another one with --state\n", err, l.State)
	}
	return g
}

// over tells the fabric what was kept, over a connection.
func (g *Handing) over(line *client.Client) {
	g.Client = line
	line.Recall(g.kept...)
}

// MakeWorkspaces makes a folder for workspaces: who names one means it to be
// there. Where it cannot be made, that is said in the place of the workspaces.
func MakeWorkspaces(dir string) {
	if dir != "" {
		_ = os.MkdirAll(dir, 0o755)
	}
}

// Done acknowledges what an event brought, now that the agent has it. What is
// not confirmed within the time given is kept for the agent's next shim. It
// reports whether nothing was left to be kept.
func (g *Handing) Done(ctx context.Context, event string, within time.Duration) bool {
	if g == nil {
		return true
	}
	brought, _ := g.Client.Brought(event)
	g.Client.Handed(event)
	noted := g.Client.Noted(g.agent)
	if noted.Fabric == "" {
		return true // nobody answered, so there is nothing to say to anybody
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
	g.keep(noted)
	return len(noted.Events) == 0
}

// timely reports whether the fabric waits to hear that the agent has what a verdict brought: the grace of a
// round begins when its warning was read, and may be nothing.
func timely(v *schema.Verdict) bool {
	return slices.ContainsFunc(v.Injections, func(in schema.Injection) bool { return in.Source == schema.SourceTimeout })
}

// ackNow acknowledges an event at once, in the background, and not with the agent's next question.
func (j *Judge) ackNow(line *client.Client, event string) {
	brought, ok := line.Brought(event)
	line.Handed(event)
	l := j.later
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok || l.ctx.Err() != nil {
		return
	}
	l.work.Go(j.calmly(func() {
		ctx, cancel := context.WithTimeout(l.ctx, lateFor)
		defer cancel()
		_ = line.Ack(ctx, brought.Agent, brought.Events...) // after an error it goes with the next question
	}))
}

// keep writes down what is not confirmed, and takes out what is by now.
func (g *Handing) keep(left client.Handover) {
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
	if err := g.state.AddHandover(left, confirmed); err != nil {
		fmt.Fprintf(g.stderr, "agentshim: storing the delivered items: %v; the fabric may deliver them again; make the folder %s writable, or name another one with --state\n",
			err, g.state)
	}
}

// Close ends the connection.
func (g *Handing) Close() {
	if g != nil {
		g.Client.Close()
	}
}
