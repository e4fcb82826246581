package decide

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// maxAgents limits the deliveries of a resident judge, to as many agents as its client remembers.
const maxAgents = 10_000

// delivery returns the delivery of an agent, over the judge's connection.
func (j *Judge) delivery(ctx context.Context, agent string) (*Delivery, error) {
	j.mu.Lock()
	before, known := j.deliveries[agent]
	j.mu.Unlock()
	if !known {
		before = j.link.delivery(agent)
	}
	line, err := j.dial(ctx)
	if err != nil {
		return nil, err
	}
	if known {
		return before, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if g := j.deliveries[agent]; g != nil {
		return g, nil
	}
	for other, g := range j.deliveries {
		if len(j.deliveries) < maxAgents {
			break
		}
		g.store(g.Client.Noted(other))
		delete(j.deliveries, other)
	}
	before.connect(line)
	j.deliveries[agent] = before
	return before, nil
}

func (j *Judge) connected() *client.Client {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.line
}

// dialFor limits one attempt to connect.
const dialFor = 5 * time.Second

// An attempt is one try to connect. All goroutines share its result, so that a silent server costs one wait.
type attempt struct {
	ended chan struct{} // closed when line and err are set
	line  *client.Client
	err   error
}

// dial returns the connection. It returns before ctx ends, to leave time for an answer without a verdict.
func (j *Judge) dial(ctx context.Context) (*client.Client, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-schema.Margin(time.Until(end))/2))
		defer cancel()
	}
	j.mu.Lock()
	line, a := j.line, j.attempt(ctx)
	j.mu.Unlock()
	if line != nil {
		return line, nil
	}
	if a != nil {
		select {
		case <-a.ended:
			return a.line, a.err
		case <-ctx.Done():
		}
	}
	return nil, fmt.Errorf("%w: %w: no connection to NATS at %s within the time limit; start a broker there or name another server",
		client.ErrUnreachable, context.Cause(ctx), bus.RedactURL(j.link.URL))
}

// reach starts an attempt to connect. Meanwhile the caller can read the stored policy.
func (j *Judge) reach(ctx context.Context) {
	j.mu.Lock()
	connected := j.line != nil
	j.attempt(ctx)
	j.mu.Unlock()
	if !connected {
		runtime.Gosched() // on one processor, the attempt would otherwise start only when the caller waits
	}
}

// attempt returns the current attempt, and starts one if needed. The caller holds the lock.
func (j *Judge) attempt(ctx context.Context) *attempt {
	if j.line == nil && j.dialling == nil && ctx.Err() == nil {
		a := &attempt{ended: make(chan struct{}), err: errPanicked}
		j.dialling = a
		j.dials.Go(j.guarded(func() { j.connect(a) }))
	}
	return j.dialling
}

func (j *Judge) connect(a *attempt) {
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.line, j.dialling = a.line, nil
		close(a.ended)
	}()
	ctx, cancel := context.WithTimeout(j.background.ctx, dialFor)
	defer cancel()
	a.line, a.err = j.link.dial(ctx, "")
}

// A Link says how a shim connects to the fabric, and where it stores state for later shims.
type Link struct {
	// URL is the bus, Creds the credentials file, and Name the name of the connection.
	URL, Creds, Name string
	// TLS holds the certificates for the connection.
	TLS certs.Files
	// Unnamed: no fabric is named. URL is then a guess, and policies that the daemon reached count as well.
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

// Connect connects, and sends the stored handovers of earlier shims. It unpacks other agents' workspaces below
// the folder workspaces; empty: none.
func (l *Link) Connect(ctx context.Context, agent, workspaces string) (*Delivery, error) {
	line, err := l.dial(ctx, workspaces)
	if err != nil {
		return nil, err
	}
	g := l.delivery(agent)
	g.connect(line)
	return g, nil
}

func (l *Link) dial(ctx context.Context, workspaces string) (*client.Client, error) {
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

// Done acknowledges the items of an event, and stores what the fabric does not confirm in time for the agent's
// next shim. It reports whether the fabric confirmed everything.
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

// Needs returns which events of an agent must carry the conversation.
func (j *Judge) Needs(ctx context.Context, agent string) (client.Needs, error) {
	g, err := j.delivery(ctx, agent)
	if err != nil {
		return client.Needs{}, err
	}
	return g.Client.Needs(ctx, agent)
}

// Mode returns how other agents' answers reach an agent. voteOnly sets it first; nil: it stays.
func (j *Judge) Mode(ctx context.Context, agent string, voteOnly *bool) (schema.ModeAnswer, error) {
	g, err := j.delivery(ctx, agent)
	if err != nil {
		return schema.ModeAnswer{}, err
	}
	if voteOnly != nil {
		return schema.ModeAnswer{VoteOnly: *voteOnly}, g.Client.SetMode(ctx, agent, *voteOnly)
	}
	return g.Client.Mode(ctx, agent)
}

// Checkpoint reports that an agent starts again.
func (j *Judge) Checkpoint(ctx context.Context, agent string) error {
	g, err := j.delivery(ctx, agent)
	if err != nil {
		return err
	}
	return g.Client.Checkpoint(ctx, agent)
}
