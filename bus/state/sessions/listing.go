package sessions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

// nearlyFull is how much is left of a bucket that has no room for one more.
const nearlyFull = 8 << 10

// Lately lists the agents of a host that were seen lately, or of all hosts: first
// who is silent for the longest, last whose sessions ended. crowded: there was no
// room for all, so that who was silent for the longest may be missing.
func (s *Sessions) Lately(ctx context.Context, host string) (all []schema.AgentStatus, crowded bool, err error) {
	bucket := s.presence.bucket
	info, err := bucket.Info(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	agents, err := s.Agents(ctx)
	if err != nil {
		return nil, false, err
	}
	all = make([]schema.AgentStatus, 0, len(agents))
	for _, a := range agents {
		if host == "" || a.Host == host {
			all = append(all, schema.AgentStatus{Agent: a.Agent, Session: a.Session, Runtime: a.Runtime, Version: a.Version, Host: a.Host, Ended: a.Ended,
				Silent: schema.Duration(max(info.Now.Sub(a.LastSeen), 0))})
		}
	}
	slices.SortStableFunc(all, func(a, b schema.AgentStatus) int {
		if a.Ended != b.Ended {
			return map[bool]int{false: -1, true: 1}[a.Ended]
		}
		return cmp.Compare(b.Silent, a.Silent)
	})
	room := bucket.MaxBytes()
	return all, room > 0 && info.Bytes > room-nearlyFull, nil
}

// Agents lists the agents that were seen lately. That is written every two
// minutes, and when an agent begins a session.
func (s *Sessions) Agents(ctx context.Context) ([]Agent, error) {
	w, err := s.presence.bucket.Store().WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = w.Stop() }()
	// What is written meanwhile comes twice.
	all := map[string]Agent{}
	for {
		select {
		case e, open := <-w.Updates():
			if !open {
				return nil, fmt.Errorf("%w: the listing was cut off", ErrUnavailable)
			}
			if e == nil {
				return slices.SortedFunc(maps.Values(all), func(a, b Agent) int { return cmp.Compare(a.Agent, b.Agent) }), nil
			}
			var a Agent
			if err := schema.Unmarshal(e.Value(), &a); err == nil && a.Agent != "" {
				a.LastSeen = e.Created()
				all[a.Agent] = a
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
		}
	}
}
