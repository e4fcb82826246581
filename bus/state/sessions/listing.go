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

// nearlyFull is how many bytes are left in a bucket that counts as full.
const nearlyFull = 8 << 10

// Lately lists the agents that were seen lately, of one host or of all: the longest silent ones first, ended ones last. crowded: the bucket
// is full, so agents that have been silent the longest may be missing.
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

// Agents lists the agents that were seen lately. Their last call is at most about two minutes newer than the list shows.
func (s *Sessions) Agents(ctx context.Context) ([]Agent, error) {
	w, err := s.presence.bucket.Store().WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = w.Stop() }()
	// Concurrent writes appear twice.
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
