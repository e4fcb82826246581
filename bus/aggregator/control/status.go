package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

// faceName is the aggregators' name among the services of the bus.
const faceName = "hookfabric-aggregator"

// requestsName is the name of the service for requests of agents and workers.
const requestsName = "hookfabric-aggregator-requests"

// peerTime is how long other brokers may take to answer.
const peerTime = 300 * time.Millisecond

// others returns the ids of the other brokers of the fabric that answer, regardless of their
// leases.
func (c *Control) others(ctx context.Context) ([]string, error) {
	var all []string
	err := c.peers(ctx, micro.PingVerb, func(m *nats.Msg) {
		var pong micro.Ping
		if schema.Unmarshal(m.Data, &pong) == nil && pong.Metadata["fabric"] == c.opt.Fabric && pong.Metadata["broker"] != c.opt.Node {
			all = append(all, pong.Metadata["broker"])
		}
	})
	slices.Sort(all)
	return slices.Compact(all), err
}

// peers sends a request to all aggregators on the bus, including this one, and calls use for each
// answer that comes in time.
func (c *Control) peers(ctx context.Context, verb micro.Verb, use func(*nats.Msg)) error {
	ctx, cancel := context.WithTimeout(ctx, peerTime)
	defer cancel()
	subject, err := micro.ControlSubject(verb, faceName, "")
	if err != nil {
		return fmt.Errorf("asking the other brokers: %w", err)
	}
	inbox := c.opt.Work.NewInbox()
	sub, err := c.opt.Work.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("asking the other brokers: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.opt.Work.PublishRequest(subject, inbox, nil); err != nil {
		return fmt.Errorf("asking the other brokers: %w", err)
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil // the time is over, and a broker that has not answered counts as absent
		}
		use(m)
	}
}

// status answers the request of that name, with what all brokers know.
func (c *Control) status(ctx context.Context, _ string, req *schema.StatusRequest) (schema.FabricStatus, error) {
	st := c.Status()
	st.Brokers = c.brokers(ctx)
	var err error
	if req.Shadow {
		st.Shadow, err = c.shadows(ctx)
	}
	if req.Agents {
		err = errors.Join(err, c.lately(ctx, req.Host, &st))
	}
	return st, err
}

// lately adds the agents that were seen lately to a status.
func (c *Control) lately(ctx context.Context, host string, st *schema.FabricStatus) error {
	if c.opt.Sessions == nil {
		return nil
	}
	all, crowded, err := c.opt.Sessions.Lately(ctx, host)
	st.AgentsCrowded = crowded
	st.AgentsSeen, st.Agents = len(all), all[:min(len(all), schema.MaxAgents)]
	return err
}

// leasesTime bounds the read of the brokers' leases. Without them a status has everything else.
const leasesTime = 500 * time.Millisecond

// brokers returns the brokers that hold a lease.
func (c *Control) brokers(ctx context.Context) (all []schema.BrokerStatus) {
	if c.opt.Configs == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leasesTime)
	defer cancel()
	nodes, err := c.opt.Configs.Nodes(ctx)
	if err != nil {
		c.opt.Logger.Debug("the status shows only this broker", "error", err)
	}
	for _, n := range nodes {
		all = append(all, schema.BrokerStatus{Broker: n.ID, ConfigVersion: n.Active, Candidate: n.Candidate, FreezeVersion: n.Freeze,
			RealmUnreadable: n.RealmUnreadable})
	}
	return all
}

// stats adds what shadow hooks would have changed to the statistics that the
// service answers with, so that every broker can sum up all of them.
func (c *Control) stats(e *micro.Endpoint) any {
	if e.Name != schema.VerbStatus {
		return nil // once is enough
	}
	return c.opt.Report.Shadows.Status()
}

// peerStats is the part of a broker's statistics that the aggregator uses.
type peerStats struct {
	ID        string            `json:"id"`
	Metadata  map[string]string `json:"metadata"`
	Endpoints []struct {
		Data []schema.ShadowStatus `json:"data"`
	} `json:"endpoints"`
}

// shadows returns what shadow hooks would have changed, in all brokers together. It leaves out
// brokers that do not answer in time.
func (c *Control) shadows(ctx context.Context) ([]schema.ShadowStatus, error) {
	sum := c.opt.Report.Shadows.Status()
	own := c.services[0].Info().ID
	err := c.peers(ctx, micro.StatsVerb, func(m *nats.Msg) {
		var peer peerStats
		if schema.Unmarshal(m.Data, &peer) != nil || peer.ID == own || peer.Metadata["fabric"] != c.opt.Fabric {
			return
		}
		for _, e := range peer.Endpoints {
			for _, h := range e.Data {
				sum = observe.AddShadow(sum, h)
			}
		}
	})
	observe.SortShadows(sum)
	return sum, err
}

// Status returns the fabric's state as this aggregator knows it.
func (c *Control) Status() schema.FabricStatus {
	s := schema.FabricStatus{
		Fabric: c.opt.Fabric, Version: schema.Release, ConfigVersion: c.Version(),
		InFlight: c.opt.UnderWay(), Pools: c.opt.Members.Pools(), LoadErrors: c.opt.Members.LoadErrors(),
	}
	if local := c.opt.Local; local != nil {
		beat := local.Beat(schema.DefaultPool)
		maps.Copy(s.LoadErrors, beat.LoadErrors)
		p := pool(&s, schema.DefaultPool)
		p.Workers = append(p.Workers, schema.WorkerStatus{
			Worker: beat.Worker, InFlight: beat.InFlight, Capacity: beat.Capacity,
			Draining: beat.Draining, Versions: beat.Versions,
		})
	}
	c.remembered(&s)
	if f := c.opt.Frozen(); f != nil {
		s.Frozen = f.Freezes
	}
	s.Limited = c.opt.Limits.List()
	if err := c.opt.Trouble(); err != nil {
		s.Trouble = err.Error()
	}
	if act := c.opt.Active(); act != nil {
		maps.Copy(s.LoadErrors, act.Errors())
		s.Ready, s.Hooks = true, act.Config.HookCount()
		s.Pools = slices.DeleteFunc(s.Pools, func(p schema.PoolStatus) bool { return len(p.Workers) == 0 })
		for i := range act.Config.Hooks {
			if h := &act.Config.Hooks[i]; !h.Stage() {
				pool(&s, h.Pool)
			}
		}
	}
	return s
}

// pool finds a pool in s, or adds it without workers.
func pool(s *schema.FabricStatus, name string) *schema.PoolStatus {
	i, found := slices.BinarySearchFunc(s.Pools, name, func(p schema.PoolStatus, name string) int {
		return strings.Compare(p.Pool, name)
	})
	if !found {
		s.Pools = slices.Insert(s.Pools, i, schema.PoolStatus{Pool: name, Workers: []schema.WorkerStatus{}})
	}
	return &s.Pools[i]
}

// maxSources bounds the sources that a status lists: clients choose their names, so there may be as
// many as items.
const maxSources = 100

// remembered adds the stored state of agents to a status.
func (c *Control) remembered(s *schema.FabricStatus) {
	if c.opt.Queue != nil {
		st := c.opt.Queue.Stats()
		s.Pending, s.OldestPending = st.Pending, schema.Duration(st.Oldest)
		if len(s.Pending) > maxSources {
			s.Pending = observe.SumBySource(st.Pending)
		}
	}
	if c.opt.Rounds != nil {
		s.BlockedRounds = c.opt.Rounds.Blocked()
	}
}

const (
	// stillFor is the shortest gap that counts as a standstill. A shorter one is a busy machine.
	stillFor = time.Second
	// wakeFor is how long it then takes to receive everything that arrived during the standstill.
	wakeFor = time.Second
	// refuseIn is the age at which the broker refuses a request that changes something. The client
	// expects an answer within 10 s.
	refuseIn = 9 * time.Second
)

// A standstill is a period in which this process did not run, because it or its machine was
// stopped. A request read right after it may have arrived at any moment of it, so the client may
// have waited long.
type standstill struct {
	mu          sync.Mutex // guards the following fields
	alive       time.Time  // when the process was seen to run last
	from, until time.Time  // the last standstill
}

// tick notes that the process runs. It is called all the time.
func (s *standstill) tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(now)
}

// note is tick for a caller that holds the lock.
func (s *standstill) note(now time.Time) {
	if !s.alive.IsZero() && now.Sub(s.alive) > stillFor {
		if s.until.IsZero() || s.alive.Sub(s.until) >= wakeFor { // otherwise requests from the earlier standstill may still wait
			s.from = s.alive
		}
		s.until = now
	}
	s.alive = now
}

// came returns the earliest time at which a request read now may have arrived.
func (s *standstill) came(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(now)
	if !s.until.IsZero() && now.Sub(s.until) < wakeFor {
		return s.from
	}
	return now
}

// due returns the deadline of a request that is read now, and an error if it is over.
func (c *Control) due(changes bool, now time.Time) (time.Time, error) {
	until := now.Add(verbTime)
	if !changes {
		return until, nil
	}
	came := c.still.came(now)
	last := came.Add(refuseIn)
	switch {
	case !now.Before(last):
		return last, unavailable("this broker was stalled for %s, and the request may be that old; nothing changed, try again", schema.Duration(now.Sub(came).Round(time.Second)))
	case last.Before(until):
		return last, nil
	}
	return until, nil
}
