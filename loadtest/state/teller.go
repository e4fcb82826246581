package state

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
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// The requests of a teller.
const (
	// Enqueue puts one item into the queue.
	Enqueue = "enqueue"
	// ask sends the event of a tool call. It fails if the verdict delivers more items than
	// the request expects, and is late if it delivers fewer: a call continues without an
	// item that the broker cannot read in time. A later call acknowledges the items.
	ask = "ask"
	// take is ask without acknowledging.
	take = "take"
	// askAndAck acknowledges immediately and waits for the answer.
	askAndAck = "ask-and-ack"
	// broadcast puts one item for all agents into the queue.
	broadcast = "broadcast"
	// Put writes a key of the same size without the fabric.
	Put = "put"
)

const (
	// connectIn is the longest time until a teller is connected.
	connectIn = 30 * time.Second
	// scratch is the bucket for bare writes.
	scratch = "loadtest_scratch"
)

// A TellerConfig starts a teller.
type TellerConfig struct {
	// NATS is the server, or several separated by commas.
	NATS string `json:"nats"`
	// Replicas is that of the bucket for bare writes; 0: no bucket.
	Replicas int `json:"replicas"`
}

// A Telling is a request to a teller: a number of calls, or as many as fit into Window.
type Telling struct {
	Do string `json:"do"`
	// Callers make Calls calls together.
	Callers int `json:"callers"`
	Calls   int `json:"calls"`
	// Window replaces both if it has callers. All calls are then of the agent with Prefix
	// and 0.
	Window measure.Window `json:"window"`
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

// A Told is the answer to a [Telling].
type Told struct {
	measure.Figures
	// Late is the number of calls that continued without an item.
	Late int64 `json:"late,omitzero"`
}

// teller has one connection of each kind.
type teller struct {
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

func startTeller(ctx context.Context, c TellerConfig) (*proc.Role, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectIn, fmt.Errorf("no connection within %v", connectIn))
	defer cancel()
	t := &teller{name: fmt.Sprintf("teller-%d", os.Getpid()), given: map[string]int{}, output: `"` + strings.Repeat("x", 700) + `"`}
	var err error
	if t.nc, err = bus.Connect(ctx, bus.Options{URL: c.NATS, Name: "loadtest teller"}); err != nil {
		return nil, err
	}
	if t.c, err = client.Connect(ctx, client.Options{URL: c.NATS, Name: "loadtest teller", Timeout: 10 * time.Second}); err != nil {
		t.nc.Close()
		return nil, err
	}
	role := &proc.Role{Do: t.do, Close: t.close}
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

func (t *teller) close() error {
	t.c.Close()
	t.nc.Close()
	return nil
}

func (t *teller) do(ctx context.Context, line []byte) (any, error) {
	var q Telling
	if err := schema.Unmarshal(line, &q); err != nil {
		return nil, fmt.Errorf("the request to measure: %w", err)
	}
	call, err := t.call(q)
	if err != nil {
		return nil, err
	}
	t.late.Store(0)
	var told Told
	if q.Window.Callers > 0 {
		told.Figures, err = measure.Run(ctx, q.Window, func(ctx context.Context) error { return call(ctx, 0) })
		return told, err
	}
	told.Figures, err = measure.Calls(ctx, q.Callers, q.Calls, call)
	told.Late = t.late.Load()
	if err != nil || q.Do != ask {
		return told, err
	}
	// The last acknowledgements are sent now, so that they do not disturb the next request.
	return told, t.c.Flush(ctx)
}

// call returns a function that makes one call of the i-th agent.
func (t *teller) call(q Telling) (func(ctx context.Context, i int) error, error) {
	agents := max(q.Agents, 1)
	name := func(i int) string { return fmt.Sprintf("%s%d", q.Prefix, i%agents) }
	switch q.Do {
	case Enqueue:
		return func(ctx context.Context, i int) error {
			return t.inject(ctx, name(i), schema.InjectRequest{Matcher: q.Matcher})
		}, nil
	case broadcast:
		return func(ctx context.Context, _ int) error {
			return t.inject(ctx, "", schema.InjectRequest{All: true})
		}, nil
	case ask, take, askAndAck:
		return func(ctx context.Context, i int) error {
			return t.ask(ctx, name(i), q)
		}, nil
	case Put:
		if t.kv == nil {
			return nil, errors.New("the teller has no bucket for bare writes")
		}
		return func(ctx context.Context, i int) error {
			_, err := t.kv.Put(ctx, name(i), []byte(text))
			return err
		}, nil
	}
	return nil, fmt.Errorf("the teller does not know the request %q", q.Do)
}

// text is the content of every item.
const text = "Please look at the failing test of the parser before you go on: it is the one that reads an empty file. " +
	"The others are known, and another agent looks after them."

// inject puts an item into the queue.
func (t *teller) inject(ctx context.Context, agent string, r schema.InjectRequest) error {
	r.Content, r.Producer, r.Number = text, t.name, t.number.Add(1)
	var receipt schema.Receipt
	if err := roles.Control(ctx, t.nc, roles.Verb{Verb: schema.VerbInject, Agent: agent}, r, &receipt); err != nil {
		return err
	}
	if receipt.Duplicate || receipt.State != schema.Queued || receipt.Sequence == 0 {
		return fmt.Errorf("the receipt of a new item is %+v", receipt)
	}
	return nil
}

// ask asks about one tool call of the agent, and acknowledges the items that the verdict delivers.
func (t *teller) ask(ctx context.Context, agent string, q Telling) error {
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
	case askAndAck:
		return t.c.Ack(ctx, agent, v.EventID)
	case ask:
		t.c.Handed(v.EventID)
	}
	return nil
}

// note adds to the number of items that an agent received, and returns it.
func (t *teller) note(agent string, items int) int {
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
