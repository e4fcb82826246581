package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
	"github.com/hookfabric/hookfabric/schema"
)

// maxOpen bounds the verdicts that a client has not yet reported as handed over.
const maxOpen = 1000

// A Client has calls judged by the daemon. It is safe for concurrent use.
type Client struct {
	// Socket is where the daemon listens: see [Place.Socket].
	Socket string
	// NATS and Creds identify the fabric that must judge; empty: the daemon's fabric.
	NATS, Creds string
	// Else judges if no daemon does; nil: the call is not judged.
	Else decide.Asker
	// Borrow: the agents' ids are guesses. A call with the same runtime id is then the same for all agents.
	Borrow bool

	mu   sync.Mutex // guards what follows
	open map[string]line
}

// Question is an event and the options of a [Client] for its verdict.
type Question = decide.Question

// Ask has a call judged before ctx ends. [Client.Handed] acknowledges the verdict's items.
func (c *Client) Ask(ctx context.Context, q decide.Question) decide.Judgement {
	if q.Event.EventID == "" {
		event := *q.Event
		if id, err := uuid.NewV7(); err == nil {
			event.EventID = id.String() // the daemon and the fabric get the same id
		}
		q.Event = &event
	}
	j, err := c.ask(ctx, &q)
	switch {
	case err == nil:
		return j
	case c.Else != nil:
		return c.Else.Ask(ctx, q)
	}
	return unjudged(&q, err)
}

// unjudged returns the verdict for a call that neither the daemon nor the fabric can judge.
func unjudged(q *decide.Question, err error) decide.Judgement {
	err = q.Cause(fmt.Errorf("%w: %w", client.ErrUnreachable, err))
	v := &schema.Verdict{EventID: q.Event.EventID, HookErrors: []string{err.Error()}}
	if b := q.Event.HookType.Blocking(); q.Unreachable == decide.UnreachableDeny && b != schema.None {
		v.Decision, v.Reason = b, fmt.Sprintf("the fabric did not judge this call, and --unreachable is deny: %v", err)
	}
	return decide.Judgement{Verdict: v, Unjudged: err}
}

func (c *Client) ask(ctx context.Context, q *decide.Question) (j decide.Judgement, err error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(client.DefaultTimeout)
	}
	m, err := c.message(q, deadline)
	if err != nil {
		return j, err
	}
	l, err := c.dial(ctx)
	if err != nil {
		return j, err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	answer, err := talk(l, m, deadline)
	if !stop() && err == nil {
		err = fmt.Errorf("%w: %w", ErrLost, context.Cause(ctx))
	}
	j.Verdict = new(schema.Verdict)
	if err == nil && schema.Unmarshal(answer.Body, j.Verdict) != nil {
		err = fmt.Errorf("%w: its verdict is unreadable", ErrLost)
	}
	if err != nil {
		_ = l.Close()
		return j, err
	}
	j.Verdict.EventID = answer.Words[wordID]
	if why := answer.Words[wordUnjudged]; why != "" {
		j.Unjudged = errors.New(why)
	}
	c.keep(j.Verdict, l)
	return j, nil
}

// dial connects to the daemon and checks that it runs as this user or as root.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	l, err := new(net.Dialer).DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	if err := peer.CheckConn(l.(*net.UnixConn)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w; agentshim sent nothing to it", ErrElsewhere, err), l.Close())
	}
	return l, nil
}

func (c *Client) message(q *decide.Question, deadline time.Time) (*frame.Message, error) {
	body, err := schema.Marshal(q.Event)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrElsewhere, err)
	}
	unreadable := ""
	if q.Unreadable != nil {
		unreadable = q.Unreadable.Error()
	}
	return &frame.Message{Kind: frame.Ask, Body: body, Words: words(
		wordUnreadable, unreadable, wordWorkspaces, q.Workspaces, wordUnreachable, q.Unreachable, wordNative, string(q.Native),
		wordKey, q.Key, wordPair, q.Pair, wordByID, flag(q.ByID), wordApart, q.Apart, wordMute, flag(q.Event.Mute), wordMidTurn, flag(q.Event.MidTurn), wordBorrow, flag(c.Borrow),
		wordNATS, c.NATS, wordCreds, c.Creds, wordLeft, time.Until(deadline).String())}, nil
}

// keep keeps the connection of a call with injections or a restart until the agent has them.
func (c *Client) keep(v *schema.Verdict, l line) {
	if len(v.Injections) == 0 && v.Restart == nil {
		written(l)
		_ = l.Close()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]line{}
	}
	for event, old := range c.open {
		if len(c.open) < maxOpen && event != v.EventID {
			continue
		}
		_ = old.Close() // the fabric sends its items again
		delete(c.open, event)
	}
	c.open[v.EventID] = l
}

// Handed reports to the daemon that the agent has the items of a verdict.
func (c *Client) Handed(ctx context.Context, v *schema.Verdict, within time.Duration) {
	c.mu.Lock()
	l := c.open[v.EventID]
	delete(c.open, v.EventID)
	c.mu.Unlock()
	switch {
	case l != nil:
		written(l)
		_ = l.Close()
	case c.Else != nil:
		c.Else.Handed(ctx, v, within)
	}
}

// Close drops all verdicts that were not handed over.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for event, l := range c.open {
		_ = l.Close()
		delete(c.open, event)
	}
}
