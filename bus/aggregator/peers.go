package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/schema"
)

// faceName is the aggregators' name among the services of the bus.
const faceName = "hookfabric-aggregator"

// requestsName is the name of the service for requests of agents and workers.
const requestsName = "hookfabric-aggregator-requests"

// peerTime is how long other brokers may take to answer.
const peerTime = 300 * time.Millisecond

// Others returns the ids of the other brokers of the fabric that answer, regardless of their
// leases.
func (a *Aggregator) Others(ctx context.Context) ([]string, error) {
	var others []string
	err := a.peers(ctx, micro.PingVerb, func(m *nats.Msg) {
		var pong micro.Ping
		if schema.Unmarshal(m.Data, &pong) == nil && pong.Metadata["fabric"] == a.opt.Fabric && pong.Metadata["broker"] != a.opt.Node {
			others = append(others, pong.Metadata["broker"])
		}
	})
	slices.Sort(others)
	return slices.Compact(others), err
}

// peers sends a request to all aggregators on the bus, including this one, and calls use for each
// answer that comes in time.
func (a *Aggregator) peers(ctx context.Context, verb micro.Verb, use func(*nats.Msg)) error {
	ctx, cancel := context.WithTimeout(ctx, peerTime)
	defer cancel()
	subject, err := micro.ControlSubject(verb, faceName, "")
	if err != nil {
		return fmt.Errorf("asking the other brokers: %w", err)
	}
	inbox := a.opt.Work.NewInbox()
	sub, err := a.opt.Work.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("asking the other brokers: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := a.opt.Work.PublishRequest(subject, inbox, nil); err != nil {
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

// status answers the control request of that name.
func (a *Aggregator) status(req schema.StatusRequest) deferred {
	return func(ctx context.Context) (any, error) {
		st := a.Status()
		st.Brokers = a.brokers(ctx)
		var err error
		if req.Shadow {
			st.Shadow, err = a.ShadowStatus(ctx)
		}
		if req.Agents {
			err = errors.Join(err, a.lately(ctx, req.Host, &st))
		}
		return st, err
	}
}

// lately adds the agents that were seen lately to a status.
func (a *Aggregator) lately(ctx context.Context, host string, st *schema.FabricStatus) error {
	if a.opt.Memory.Sessions == nil {
		return nil
	}
	all, crowded, err := a.opt.Memory.Sessions.Lately(ctx, host)
	st.AgentsCrowded = crowded
	st.AgentsSeen, st.Agents = len(all), all[:min(len(all), schema.MaxAgents)]
	return err
}

// leasesTime bounds the read of the brokers' leases. Without them a status has everything else.
const leasesTime = 500 * time.Millisecond

// brokers returns the brokers that hold a lease.
func (a *Aggregator) brokers(ctx context.Context) (all []schema.BrokerStatus) {
	if a.opt.Configs == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leasesTime)
	defer cancel()
	nodes, err := a.opt.Configs.Nodes(ctx)
	if err != nil {
		a.opt.Logger.Debug("the status shows only this broker", "error", err)
	}
	for _, n := range nodes {
		all = append(all, schema.BrokerStatus{Broker: n.ID, ConfigVersion: n.Active, Candidate: n.Candidate, FreezeVersion: n.Freeze,
			RealmUnreadable: n.RealmUnreadable})
	}
	return all
}
