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
	// needsFor is how long a call waits to learn which hooks need the conversation, and
	// needsTry the timeout of the request.
	needsFor = time.Second
	needsTry = 5 * time.Second
	// needsAgain is the pause before another request after one that did not help.
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
	k, err := c.needs.get(ctx, c)
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

// known is a decoded policy.
type known struct {
	origin
	rules    *guard.Rules
	freezes  *guard.Freezes
	terminal []string
}

// origin is the fabric and the versions of a verdict or a policy.
type origin struct {
	fabric  string
	version uint64
	freeze  uint64
}

// needs caches the fabric's policy. The zero value is an empty cache.
type needs struct {
	mu     sync.Mutex // guards the fields below
	known  *known     // nil: unknown
	key    []byte     // the public key of known's fabric
	seen   origin     // origin of the last verdict; zero: unknown
	failed error      // why the policy is unknown
	again  time.Time  // when to ask again
	asking chan struct{}
}

// isStale reports whether the policy must be fetched. The caller holds the lock.
func (n *needs) isStale() bool {
	return (n.known == nil || n.seen != origin{} && n.seen != n.known.origin) && !time.Now().Before(n.again)
}

// observe records the origin of a verdict. If it made the cached policy stale, a new one
// is fetched in the background.
func (n *needs) observe(c *Client, v *schema.Verdict) {
	if v.Fabric == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = origin{v.Fabric, v.ConfigVersion, v.FreezeVersion}
	if n.known != nil && n.isStale() {
		n.startFetch(c)
	}
}

// get returns the policy, and fetches it first if necessary.
func (n *needs) get(ctx context.Context, c *Client) (*known, error) {
	n.mu.Lock()
	if n.isStale() {
		n.startFetch(c)
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

// peek returns the cached policy without waiting; nil: unknown.
func (n *needs) peek(c *Client) *known {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isStale() {
		n.startFetch(c)
	}
	return n.known
}

// startFetch starts a fetch, unless one is in progress. The caller holds the lock.
func (n *needs) startFetch(c *Client) {
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

// open checks a policy, and that it belongs to the fabric that answers.
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
