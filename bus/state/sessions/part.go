package sessions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// maxEarlier is how many earlier sessions of an agent are remembered.
	maxEarlier = 7
	// partAgain is the delay before a second check whether an agent is in a session, because another broker may be
	// storing that.
	partAgain = 300 * time.Millisecond
)

// earlier returns the sessions before the present one, without duplicates, at most maxEarlier.
func earlier(now string, all []string) (some []string) {
	now = bounded(now)
	for _, s := range all {
		if s != "" && s != now && !slices.Contains(some, s) && len(some) < maxEarlier {
			some = append(some, s)
		}
	}
	return some
}

// same reports whether two agents are equal.
func (a Agent) same(b Agent) bool {
	return slices.Equal(a.Earlier, b.Earlier) && a.Agent == b.Agent && a.Session == b.Session && a.Runtime == b.Runtime && a.Version == b.Version &&
		a.Host == b.Host && a.LastSeen.Equal(b.LastSeen) && a.Ended == b.Ended
}

// in reports whether the agent was seen in the session.
func (a Agent) in(session string) bool {
	return session != "" && (a.Session == session || slices.Contains(a.Earlier, session))
}

// TakesPart reports whether an agent was seen in a session lately, or has a name in it.
func (s *Sessions) TakesPart(ctx context.Context, agent, session string) (bool, error) {
	for i := range 2 {
		if s.Known(agent).in(session) {
			return true, nil
		}
		stored, err := s.stored(ctx, agent)
		if err != nil || stored.in(session) {
			return err == nil, err
		}
		if in, err := s.named(ctx, agent, session); err != nil || in {
			return err == nil, err
		}
		if i == 0 && kv.Rest(ctx, partAgain) != nil {
			return false, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
		}
	}
	return false, nil
}

// IsAgent reports whether an agent with that id was seen lately.
func (s *Sessions) IsAgent(ctx context.Context, id string) (bool, error) {
	if s.Known(id).Agent != "" {
		return true, nil
	}
	a, err := s.stored(ctx, id)
	return a.Agent != "", err
}

// stored returns what the bucket has about an agent; the zero Agent: nothing.
func (s *Sessions) stored(ctx context.Context, agent string) (a Agent, err error) {
	key, err := bus.Token(agent)
	if err != nil {
		return a, fmt.Errorf("%w: its agent: %w", ErrInvalid, err)
	}
	e, err := s.presence.bucket.Last(ctx, key)
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if e.Kind == kv.Put && e.Revision > 0 {
		_ = schema.Unmarshal(e.Value, &a) // an invalid value will be overwritten
	}
	return a, nil
}

// named reports whether the agent has a name in the session.
func (s *Sessions) named(ctx context.Context, agent, session string) (bool, error) {
	key, err := bus.Token(session)
	if err != nil {
		return false, fmt.Errorf("%w: its session: %w", ErrInvalid, err)
	}
	e, err := s.names.Last(ctx, key)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var r roll
	if e.Kind == kv.Put && e.Revision > 0 {
		_ = schema.Unmarshal(e.Value, &r) // Name returns the error
	}
	return slices.ContainsFunc(r.Agents, func(m member) bool { return m.Agent == agent }), nil
}

// reserved returns names that suggest more authority than an agent has.
func reserved() []string {
	return []string{"operator", "operators", "orchestrator", "orchestrators", "human", "humans", "user", "admin", "administrator", "root",
		"system", "fabric", "hookfabric", "broker", "round", "timeout", "approver", "policy"}
}

// Reserved returns the name in a label, and whether it is reserved. Case, digits, _ and - are ignored.
func Reserved(label string) (name string, is bool) {
	name, _, _ = cutLabel(label)
	plain := strings.Map(func(c rune) rune {
		if c < 'a' || c > 'z' {
			return -1
		}
		return c
	}, strings.ToLower(name))
	return name, slices.Contains(reserved(), plain)
}

// cutLabel splits a label at its last dot.
func cutLabel(label string) (name, number string, ok bool) {
	i := strings.LastIndexByte(label, '.')
	if i < 0 {
		return label, "", false
	}
	return label[:i], label[i+1:], true
}
