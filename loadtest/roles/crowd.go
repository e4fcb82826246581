package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// dialers is how many connections a crowd opens at the same time, because hosts start one
// after the other.
const dialers = 16

// perAddress is the number of connections from one address.
const perAddress = 250

// thinks is how long an agent pauses, on average, until its next question: models take
// seconds until they use the next tool.
const thinks = 5 * time.Second

// backIn limits how long a crowd waits until all of its agents get answers again.
const backIn = 60 * time.Second

// A CrowdConfig configures a crowd.
type CrowdConfig struct {
	// NATS is the URL of the fabric.
	NATS string `json:"nats"`
	// Prefix is the prefix of its agents' names, which differs between crowds.
	Prefix string `json:"prefix"`
	// Host is the number of the host that the crowd stands for: its connections come from
	// its own addresses. 0: from the address of this host.
	Host uint8 `json:"host,omitzero"`
}

// from returns the source address of a connection. Connections from one address to a server
// share 28,000 ports. If most of them are in use or in TIME_WAIT, the kernel searches
// milliseconds for the next one. A real fleet does not have this limit, because each of its
// hosts has its own address.
func (c CrowdConfig) from(i int) netip.Addr {
	if c.Host == 0 || runtime.GOOS != "linux" { // other systems have one loopback address
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte{127, 2, c.Host, byte(1 + i/perAddress%250)})
}

// A CrowdRequest makes a crowd do one of three things: open more connections (Open), wait
// until all connections get answers (Back), or ask and measure (Window, Each). The answer
// is the figures of that.
type CrowdRequest struct {
	Open   int            `json:"open,omitzero"`
	Back   bool           `json:"back,omitzero"`
	Window measure.Window `json:"window"`
	// Each makes every agent ask once, instead of a window.
	Each bool `json:"each,omitzero"`
	// Agents ask in turn over this number of the open Connections, each agent always over
	// the same one. Numbers below one count as one.
	Agents      int `json:"agents,omitzero"`
	Connections int `json:"connections,omitzero"`
	// Prefix is the prefix of the agents' names; empty: the crowd's own.
	Prefix string `json:"prefix,omitzero"`
	// Event is the type of the events; empty: PreToolUse.
	Event schema.EventType `json:"event,omitzero"`
	// Tool is the events' tool, Hooks how many hooks must allow it.
	Tool  string `json:"tool,omitzero"`
	Hooks int    `json:"hooks,omitzero"`
	// Fresh gives every call a new tool (FreshTool) or a new agent (FreshAgent). Its name
	// is Tool, or the agent's name, and a number.
	Fresh Fresh `json:"fresh,omitzero"`
}

// Fresh says which part of each call is new.
type Fresh string

// The parts that may be new. The zero Fresh means no part.
const (
	FreshTool  Fresh = "tool"
	FreshAgent Fresh = "agent"
)

// A crowd is many agents in one process, on one connection each or on shared ones.
type crowd struct {
	config CrowdConfig
	mu     sync.Mutex // guards conns
	conns  []*client.Client
	fresh  atomic.Int64 // the number of the last new name
}

func startCrowd(_ context.Context, c CrowdConfig) (*proc.Role, error) {
	all := &crowd{config: c}
	return &proc.Role{Do: all.do, Close: all.close}, nil
}

func (c *crowd) close() error {
	for _, one := range c.conns {
		one.Close()
	}
	return nil
}

func (c *crowd) do(ctx context.Context, line []byte) (any, error) {
	var q CrowdRequest
	if err := schema.Unmarshal(line, &q); err != nil {
		return nil, fmt.Errorf("the request to a crowd: %w", err)
	}
	switch {
	case q.Open > 0:
		return c.open(ctx, q.Open)
	case q.Back:
		return c.back(ctx, q)
	}
	return c.ask(ctx, q)
}

// open opens n more connections.
func (c *crowd) open(ctx context.Context, n int) (measure.Figures, error) {
	return measure.Calls(ctx, min(dialers, n), n, func(ctx context.Context, i int) error {
		one, err := client.Connect(ctx, client.Options{URL: c.config.NATS, Name: "loadtest " + Crowd, From: c.config.from(i)})
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, one)
		return nil
	})
}

// ask makes agents ask in turn during the window.
func (c *crowd) ask(ctx context.Context, q CrowdRequest) (told measure.Figures, err error) {
	call, err := c.call(q)
	if err != nil {
		return told, err
	}
	var next atomic.Int64
	one := func(ctx context.Context) error {
		return call(ctx, int(next.Add(1)-1))
	}
	switch {
	case q.Each:
		return measure.Calls(ctx, dialers, max(q.Agents, 1), call)
	case q.Window.Callers == 0:
		return told, await(ctx, one)
	}
	return measure.Run(ctx, q.Window, one)
}

// call returns a function that makes the i-th call.
func (c *crowd) call(q CrowdRequest) (func(ctx context.Context, i int) error, error) {
	agents, conns := max(q.Agents, 1), max(q.Connections, 1)
	if conns > len(c.conns) {
		return nil, fmt.Errorf("the crowd has %d connections, not %d", len(c.conns), conns)
	}
	s, err := newSample(q.Tool)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, i int) error {
		e, err := s.event()
		if err != nil {
			return err
		}
		who := i % agents
		e.AgentID = cmp.Or(q.Prefix, c.config.Prefix) + strconv.Itoa(who)
		if q.Event != "" {
			e.HookType, e.ToolOutput = q.Event, jsontext.Value(`"done"`)
		}
		switch q.Fresh {
		case FreshTool:
			e.ToolName += "-" + strconv.FormatInt(c.fresh.Add(1), 10)
		case FreshAgent:
			e.AgentID += "-" + strconv.FormatInt(c.fresh.Add(1), 10)
		}
		e.SessionID = "s-" + e.AgentID
		v, err := c.conns[who%conns].Ask(ctx, e)
		if err != nil {
			return err
		}
		return check(v, q.Hooks)
	}, nil
}

// back makes each connection's agent ask until its event is judged, all at once, and
// returns how long that took. With so many at once, brokers may reject some requests.
func (c *crowd) back(ctx context.Context, q CrowdRequest) (told measure.Figures, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, backIn, fmt.Errorf("not all agents were answered again within %v", backIn))
	defer cancel()
	q.Agents, q.Connections = len(c.conns), len(c.conns)
	call, err := c.call(q)
	if err != nil {
		return told, err
	}
	return measure.Together(ctx, len(c.conns), func(ctx context.Context, i int) error {
		for {
			err := call(ctx, i)
			if !errors.Is(err, client.ErrUnreachable) && !errors.Is(err, client.ErrUnanswered) && !errors.Is(err, errTurnedAway) {
				return err
			}
			if !measure.Pause(ctx, thinks/2+rand.N(thinks)) {
				return errors.Join(context.Cause(ctx), err)
			}
		}
	})
}
