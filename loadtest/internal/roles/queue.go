package roles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// The requests of a client of the queue.
const (
	// Enqueue puts one item into the queue.
	Enqueue = "enqueue"
	// Ask sends the event of a tool call. It fails if the verdict delivers more items than
	// the request expects, and is late if it delivers fewer: a call continues without an
	// item that the broker cannot read in time. A later call acknowledges the items.
	Ask = "ask"
	// Take is Ask without acknowledging.
	Take = "take"
	// AskAndAck acknowledges immediately and waits for the answer.
	AskAndAck = "ask-and-ack"
	// Broadcast puts one item for all agents into the queue.
	Broadcast = "broadcast"
	// Put writes a key of the same size without the fabric.
	Put = "put"
)

const (
	// connectIn is the longest time until a client is connected.
	connectIn = 30 * time.Second
	// scratch is the bucket for bare writes.
	scratch = "loadtest_scratch"
)

// A QueueConfig starts a client of the queue.
type QueueConfig struct {
	// NATS is the server, or several separated by commas.
	NATS string `json:"nats"`
	// Replicas is that of the bucket for bare writes; 0: no bucket.
	Replicas int `json:"replicas"`
}

// A QueueRequest is a request to a client of the queue: a number of calls, or as many as fit into Window.
type QueueRequest struct {
	Do string `json:"do"`
	// Callers make Calls calls together.
	Callers int `json:"callers"`
	Calls   int `json:"calls"`
	// Window replaces both if it has callers. All calls are then of the agent with Prefix
	// and 0.
	Window load.Window `json:"window"`
	// Prefix starts the names of the agents. The i-th call is of agent i modulo Agents.
	Prefix string `json:"prefix"`
	Agents int    `json:"agents"`
	// Matcher selects the tools after whose calls an item may be delivered; empty: all.
	Matcher string `json:"matcher,omitzero"`
	// Items is the number of items that a call delivers.
	Items int `json:"items"`
	// Once counts the items of all calls of an agent together.
	Once bool `json:"once,omitzero"`
}

// A QueueFigures is the answer to a [QueueRequest].
type QueueFigures struct {
	load.Figures
	// Late is the number of calls that continued without an item.
	Late int64 `json:"late,omitzero"`
}

// queueClient has one connection of each kind.
type queueClient struct {
	nc     *nats.Conn
	c      *client.Client
	kv     jetstream.KeyValue
	name   string // as a producer
	number atomic.Uint64
	late   atomic.Int64 // of the current request

	mu     sync.Mutex     // guards given
	given  map[string]int // items by agent, for Once
	output string
}

func startQueueClient(ctx context.Context, c QueueConfig) (*proc.Role, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectIn, fmt.Errorf("no connection within %v", connectIn))
	defer cancel()
	t := &queueClient{name: fmt.Sprintf("producer-%d", os.Getpid()), given: map[string]int{}, output: `"` + strings.Repeat("x", 700) + `"`}
	var err error
	if t.nc, err = bus.Connect(ctx, bus.Options{URL: c.NATS, Name: "loadtest " + QueueClient}); err != nil {
		return nil, err
	}
	if t.c, err = client.Connect(ctx, client.Options{URL: c.NATS, Name: "loadtest " + QueueClient, Timeout: 10 * time.Second}); err != nil {
		t.nc.Close()
		return nil, err
	}
	role := &proc.Role{Do: proc.Asked(t.do), Close: t.close}
	if c.Replicas == 0 {
		return role, nil
	}
	js, err := jetstream.New(t.nc)
	if err == nil {
		t.kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: scratch, Replicas: c.Replicas})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the bucket %s: %w", scratch, err), t.close())
	}
	return role, nil
}

func (t *queueClient) close() error {
	t.c.Close()
	t.nc.Close()
	return nil
}

func (t *queueClient) do(ctx context.Context, q QueueRequest) (any, error) {
	call, err := t.call(q)
	if err != nil {
		return nil, err
	}
	t.late.Store(0)
	var got QueueFigures
	if q.Window.Callers > 0 {
		got.Figures, err = load.Run(ctx, q.Window, func(ctx context.Context) error { return call(ctx, 0) })
		return got, err
	}
	got.Figures, err = load.Calls(ctx, q.Callers, q.Calls, call)
	got.Late = t.late.Load()
	if err != nil || q.Do != Ask {
		return got, err
	}
	// The last acknowledgements are sent now, so that they do not disturb the next request.
	return got, t.c.Flush(ctx)
}

// call returns a function that makes one call of the i-th agent.
func (t *queueClient) call(q QueueRequest) (func(ctx context.Context, i int) error, error) {
	agents := max(q.Agents, 1)
	name := func(i int) string { return fmt.Sprintf("%s%d", q.Prefix, i%agents) }
	switch q.Do {
	case Enqueue:
		return func(ctx context.Context, i int) error {
			return t.inject(ctx, name(i), schema.InjectRequest{Matcher: q.Matcher})
		}, nil
	case Broadcast:
		return func(ctx context.Context, _ int) error {
			return t.inject(ctx, "", schema.InjectRequest{All: true})
		}, nil
	case Ask, Take, AskAndAck:
		return func(ctx context.Context, i int) error {
			return t.ask(ctx, name(i), q)
		}, nil
	case Put:
		if t.kv == nil {
			return nil, errors.New("the client has no bucket for bare writes")
		}
		return func(ctx context.Context, i int) error {
			_, err := t.kv.Put(ctx, name(i), []byte(text))
			return err
		}, nil
	}
	return nil, fmt.Errorf("the client does not know the request %q", q.Do)
}

// text is the content of every item.
const text = "Please look at the failing test of the parser before you go on: it is the one that reads an empty file. " +
	"The others are known, and another agent looks after them."

// inject puts an item into the queue.
func (t *queueClient) inject(ctx context.Context, agent string, r schema.InjectRequest) error {
	r.Content, r.Producer, r.Number = text, t.name, t.number.Add(1)
	var receipt schema.Receipt
	if err := Control(ctx, t.nc, Verb{Verb: schema.VerbInject, Agent: agent}, r, &receipt); err != nil {
		return err
	}
	if receipt.Duplicate || receipt.State != schema.Queued || receipt.Sequence == 0 {
		return fmt.Errorf("the receipt of a new item is %+v", receipt)
	}
	return nil
}

// ask asks about one tool call of the agent, and acknowledges the items that the verdict delivers.
func (t *queueClient) ask(ctx context.Context, agent string, q QueueRequest) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("making the id of an event: %w", err)
	}
	v, err := t.c.Ask(ctx, &schema.Event{
		HookType: schema.PostToolUse, EventID: id.String(), AgentID: agent, SessionID: "s-" + agent, Runtime: "generic",
		Timestamp: time.Now().UTC(), ToolName: "Bash", ToolInput: []byte(`{"command":"make test"}`), ToolOutput: []byte(t.output),
	})
	if err != nil {
		return err
	}
	all := delivered(v)
	if q.Once {
		all = t.note(agent, all)
	}
	if all < q.Items {
		t.late.Add(1)
	}
	if all > q.Items {
		return fmt.Errorf("%s received %d items where %d waited", agent, all, q.Items)
	}
	switch q.Do {
	case AskAndAck:
		return t.c.Ack(ctx, agent, v.EventID)
	case Ask:
		t.c.Handed(v.EventID)
	}
	return nil
}

// note adds to the number of items that an agent received, and returns it.
func (t *queueClient) note(agent string, items int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.given[agent] += items
	return t.given[agent]
}

// delivered returns the number of items that a verdict delivers.
func delivered(v *schema.Verdict) (items int) {
	for _, in := range v.Injections {
		switch {
		case len(in.Sequences) > 0:
			items += len(in.Sequences)
		case in.Sequence > 0:
			items++
		}
	}
	return items
}

// Lacking returns why a stream is incomplete if it needs the given number of copies besides
// its leader's; empty: it is complete.
func Lacking(info *jetstream.StreamInfo, copies int) string {
	if info.Cluster == nil || info.Cluster.Leader == "" {
		return "has no leader"
	}
	if n := len(info.Cluster.Replicas); n != copies {
		return fmt.Sprintf("has %d copies besides that of its leader %s instead of %d", n, info.Cluster.Leader, copies)
	}
	for _, r := range info.Cluster.Replicas {
		switch {
		case r.Offline:
			return fmt.Sprintf("is missing on %s, which its leader %s cannot reach", r.Name, info.Cluster.Leader)
		case !r.Current:
			return fmt.Sprintf("is incomplete on %s: according to its leader %s it is %d entries behind, last seen %v ago", r.Name, info.Cluster.Leader, r.Lag, r.Active)
		}
	}
	return ""
}
