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

// What a teller can do.
const (
	// Enqueue puts one item into the queue.
	Enqueue = "enqueue"
	// ask is a tool call's event. It fails if it brings more items than the
	// request says, and is late if it brings none of them: calls go on without what
	// cannot be read in time. It acknowledges what it brings with a later one.
	ask = "ask"
	// take is ask, and keeps to itself that it handed anything over.
	take = "take"
	// askAndAck acknowledges at once and waits until that is known.
	askAndAck = "ask-and-ack"
	// broadcast puts one item into the queue that is for all agents.
	broadcast = "broadcast"
	// Put writes a key of the same size, without the fabric.
	Put = "put"
)

const (
	// connectIn is how long a teller looks for its server.
	connectIn = 30 * time.Second
	// scratch is the bucket for bare writes.
	scratch = "loadtest_scratch"
)

// A TellerConfig is what a teller is to be started with.
type TellerConfig struct {
	// NATS is the server, or several separated by commas.
	NATS string `json:"nats"`
	// Replicas are those of the bucket for bare writes; 0: it makes none.
	Replicas int `json:"replicas"`
}

// A Telling is a request to a teller: many calls of one kind, or, with Window,
// as many as fit into it.
type Telling struct {
	Do string `json:"do"`
	// Callers make the calls at the same time, Calls of them together.
	Callers int `json:"callers"`
	Calls   int `json:"calls"`
	// Window bounds the calls instead, if it has callers; each is about the agent
	// with Prefix and 0 then.
	Window measure.Window `json:"window"`
	// Prefix begins the names of the agents: the i-th call is about the i-th one,
	// of so many Agents, and from the beginning again.
	Prefix string `json:"prefix"`
	Agents int    `json:"agents"`
	// Matcher picks the tools after whose calls an item may come; empty: any.
	Matcher string `json:"matcher,omitzero"`
	// Items is how many a call is to bring; it is not looked at if it is negative.
	Items int `json:"items"`
	// Once: an agent is to be given so many once, by whichever of its calls.
	Once bool `json:"once,omitzero"`
	// For makes it a watch: one attempt after the other about the agent with
	// Prefix and 0, whatever comes of them.
	For schema.Duration `json:"for,omitzero"`
}

// A Told is what a teller answers.
type Told struct {
	measure.Figures
	// Late is how many calls went on without what waited.
	Late int64 `json:"late,omitzero"`
}

// teller asks on one connection of each kind.
type teller struct {
	nc     *nats.Conn
	c      *client.Client
	kv     jetstream.KeyValue
	name   string // as a producer
	number atomic.Uint64
	late   atomic.Int64 // of the request under way

	mu     sync.Mutex     // guards given
	given  map[string]int // items, by agent, where they are given once
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
	if q.For > 0 {
		return watch(ctx, q.For.Std(), func(ctx context.Context) ([]uint64, error) { return t.attempt(ctx, q) }), nil
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
	// What rides on no other question is said now, so that it disturbs nobody.
	return told, t.c.Flush(ctx)
}

// call is one call of the i-th agent.
func (t *teller) call(q Telling) (func(ctx context.Context, i int) error, error) {
	agents := max(q.Agents, 1)
	name := func(i int) string { return fmt.Sprintf("%s%d", q.Prefix, i%agents) }
	switch q.Do {
	case Enqueue:
		return func(ctx context.Context, i int) error {
			_, err := t.enqueue(ctx, name(i), q.Matcher)
			return err
		}, nil
	case broadcast:
		return func(ctx context.Context, _ int) error {
			_, err := t.inject(ctx, "", schema.InjectRequest{All: true})
			return err
		}, nil
	case ask, take, askAndAck:
		return func(ctx context.Context, i int) error {
			_, err := t.ask(ctx, name(i), q)
			return err
		}, nil
	case Put:
		if t.kv == nil {
			return nil, errors.New("this teller has no bucket for bare writes")
		}
		return func(ctx context.Context, i int) error {
			_, err := t.kv.Put(ctx, name(i), []byte(text))
			return err
		}, nil
	}
	return nil, fmt.Errorf("a teller cannot %q", q.Do)
}

// attempt is one call of a watch.
func (t *teller) attempt(ctx context.Context, q Telling) (items []uint64, err error) {
	agent := q.Prefix + "0"
	if q.Do == Enqueue {
		sequence, err := t.enqueue(ctx, agent, q.Matcher)
		if err != nil {
			return nil, err
		}
		return []uint64{sequence}, nil
	}
	return t.ask(ctx, agent, q)
}

// text is what every item says.
const text = "Please look at the failing test of the parser before you go on: it is the one that reads an empty file. " +
	"The others are known, and another agent looks after them."

// enqueue puts an item for the agent into the queue, and says at which place.
func (t *teller) enqueue(ctx context.Context, agent, matcher string) (sequence uint64, err error) {
	return t.inject(ctx, agent, schema.InjectRequest{Matcher: matcher})
}

// inject sends a request with a number of its own.
func (t *teller) inject(ctx context.Context, agent string, r schema.InjectRequest) (sequence uint64, err error) {
	r.Content, r.Producer, r.Number = text, t.name, t.number.Add(1)
	var receipt schema.Receipt
	if err := roles.Control(ctx, t.nc, roles.Verb{Verb: schema.VerbInject, Agent: agent}, r, &receipt); err != nil {
		return 0, err
	}
	if receipt.Duplicate || receipt.State != schema.Queued || receipt.Sequence == 0 {
		return 0, fmt.Errorf("a new item is said to be %+v", receipt)
	}
	return receipt.Sequence, nil
}

// ask asks about one tool call of the agent, hands over what that brings and
// says which items that were.
func (t *teller) ask(ctx context.Context, agent string, q Telling) (items []uint64, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("making an event's id: %w", err)
	}
	v, err := t.c.Ask(ctx, &schema.Event{
		HookType: schema.PostToolUse, EventID: id.String(), AgentID: agent, SessionID: "s-" + agent, Runtime: "generic",
		Timestamp: time.Now().UTC(), ToolName: "Bash", ToolInput: []byte(`{"command":"make test"}`), ToolOutput: []byte(t.output),
	})
	if err != nil {
		return nil, err
	}
	items = brought(v)
	all := len(items)
	if q.Once {
		all = t.note(agent, all)
	}
	if all < q.Items {
		t.late.Add(1)
	}
	if q.Items >= 0 && all > q.Items {
		return items, fmt.Errorf("%s was given %d items where %d waited", agent, all, q.Items)
	}
	switch q.Do {
	case askAndAck:
		return items, t.c.Ack(ctx, agent, v.EventID)
	case ask:
		t.c.Handed(v.EventID)
	}
	return items, nil
}

// note adds to what an agent was given, and says how much that is.
func (t *teller) note(agent string, items int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.given[agent] += items
	return t.given[agent]
}

// brought are the items that a verdict brings.
func brought(v *schema.Verdict) (items []uint64) {
	for _, in := range v.Injections {
		switch {
		case len(in.Sequences) > 0:
			items = append(items, in.Sequences...)
		case in.Sequence > 0:
			items = append(items, in.Sequence)
		}
	}
	return items
}
