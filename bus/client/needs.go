package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

const (
	// needsFor is how long a question waits at most until it is known which hooks
	// need the conversation, and needsTry how long the fabric has to say it.
	needsFor = time.Second
	needsTry = 5 * time.Second
	// needsAgain is how long after an answer that did not help it is asked again.
	needsAgain = time.Second
)

// Needs says at which events a hook of an agent needs the conversation.
type Needs struct {
	// ConfigVersion is the version of the configuration. Ask again if a verdict has another
	// version.
	ConfigVersion uint64 `json:"config_version"`
	// History lists those events.
	History []schema.EventType `json:"history"`
}

// Needs returns the events at which a hook of the agent needs the conversation. The client asks
// the fabric once for all agents, and again after a verdict of another configuration version.
// [History] calls it when necessary.
func (c *Client) Needs(ctx context.Context, agent string) (Needs, error) {
	k, err := c.needs.know(ctx, c)
	if err != nil {
		return Needs{}, fmt.Errorf("cannot find out which hooks need the conversation: %w", err)
	}
	n := Needs{ConfigVersion: k.version, History: []schema.EventType{}}
	for _, t := range schema.EventTypes() {
		if k.rules.History(guard.Call{Agent: agent, Event: t}) != nil {
			n.History = append(n.History, t)
		}
	}
	return n, nil
}

// Guard returns the first fail-closed hook that guards an event, or nil. Use it when Ask
// returned no verdict. It knows the hooks only after an Ask with [History], or after
// [Client.Needs].
func (c *Client) Guard(e *schema.Event) *schema.PolicyHook {
	c.needs.mu.Lock()
	defer c.needs.mu.Unlock()
	if c.needs.known == nil {
		return nil
	}
	return c.needs.known.rules.Guard(guard.Call{Agent: e.AgentID, Event: e.HookType, Tool: e.ToolName})
}

// Frozen returns the freeze that refuses an event, and the tools that pass it. It returns nil
// if it knows no such freeze. It knows the freezes under the same conditions as [Client.Guard]
// knows the hooks.
func (c *Client) Frozen(e *schema.Event) (z *schema.Freeze, terminal []string) {
	c.needs.mu.Lock()
	defer c.needs.mu.Unlock()
	k := c.needs.known
	if k == nil {
		return nil, nil
	}
	return k.freezes.Refuses(guard.Call{Agent: e.AgentID, Event: e.HookType, Tool: e.ToolName}, k.terminal), k.terminal
}

// known is what a policy says.
type known struct {
	origin
	rules    *guard.Rules
	freezes  *guard.Freezes
	terminal []string
}

// origin is where a verdict or a policy came from.
type origin struct {
	fabric  string
	version uint64
	freeze  uint64
}

// needs are what a client knows of the fabric's policy. The zero needs know nothing.
type needs struct {
	mu     sync.Mutex // guards what follows
	known  *known     // nil: nothing
	key    []byte     // the public key of known's fabric
	seen   origin     // of the last verdict; zero: none named one
	failed error      // why it is not known
	again  time.Time  // when it is worth to ask again
	asking chan struct{}
}

// stale reports whether the fabric is to be asked. The caller holds the lock.
func (n *needs) stale() bool {
	return (n.known == nil || n.seen != origin{} && n.seen != n.known.origin) && !time.Now().Before(n.again)
}

// heard takes in where a verdict came from. Whoever knew better before asks again
// in the background.
func (n *needs) heard(c *Client, v *schema.Verdict) {
	if v.Fabric == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = origin{v.Fabric, v.ConfigVersion, v.FreezeVersion}
	if n.known != nil && n.stale() {
		n.ask(c)
	}
}

// know is what is known, after asking if need be.
func (n *needs) know(ctx context.Context, c *Client) (*known, error) {
	n.mu.Lock()
	if n.stale() {
		n.ask(c)
	}
	k, err, asking := n.known, n.failed, n.asking
	n.mu.Unlock()
	if asking == nil {
		return k, err
	}
	wait := needsFor
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/4)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-asking:
	case <-t.C:
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil && n.failed == nil {
		return nil, ErrUnanswered
	}
	return n.known, n.failed
}

// glance is what is known without waiting for more; nil: nothing.
func (n *needs) glance(c *Client) *known {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stale() {
		n.ask(c)
	}
	return n.known
}

// ask begins to ask, unless somebody does. The caller holds the lock.
func (n *needs) ask(c *Client) {
	if n.asking != nil || !c.spawn(func() { n.fetch(c) }) {
		return
	}
	n.asking = make(chan struct{})
}

// fetch asks the fabric.
func (n *needs) fetch(c *Client) {
	ctx, cancel := context.WithTimeout(c.life, needsTry)
	defer cancel()
	answer, err := c.Policy(ctx, "")
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() {
		close(n.asking)
		n.asking = nil
	}()
	var k *known
	if err == nil {
		k, err = n.open(answer)
	}
	n.again = time.Now().Add(needsAgain)
	if err != nil {
		if n.known == nil {
			n.failed = err
		}
		c.log.Debug("cannot find out which hooks need the conversation", "error", err)
		return
	}
	n.known, n.key, n.failed = k, answer.Key, nil
}

// open checks a policy, and that it is of the fabric that answers.
func (n *needs) open(answer *schema.PolicyAnswer) (*known, error) {
	p, err := guard.Open(answer, nil)
	switch {
	case err != nil:
		return nil, err
	case n.seen.fabric != "" && p.Fabric != n.seen.fabric:
		return nil, errors.New("the policy is that of another fabric than the one that answers")
	case n.known != nil && n.known.fabric == p.Fabric && string(n.key) != string(answer.Key):
		return nil, guard.ErrOtherKey
	}
	rules, err := guard.Compile(p.Hooks, p.Overrides)
	if err != nil {
		return nil, fmt.Errorf("the policy of config version %d cannot be used: %w", p.ConfigVersion, err)
	}
	freezes, err := guard.CompileFreezes(p.Freezes)
	if err != nil {
		return nil, fmt.Errorf("the policy of config version %d cannot be used: %w", p.ConfigVersion, err)
	}
	return &known{origin{p.Fabric, p.ConfigVersion, p.FreezeVersion}, rules, freezes, p.Terminal}, nil
}
