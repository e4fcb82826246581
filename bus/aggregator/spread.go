package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// The times of spreading a configuration.
const (
	// patience is how long nodes may take to load a version. Python hooks import their modules in
	// this time.
	patience = 30 * time.Second
	// lookEvery is the interval at which spread checks whether all nodes have loaded it.
	lookEvery = 25 * time.Millisecond
	// settleTime bounds the wait until all brokers use an active version. It is longer than a lease
	// renewal, through which brokers learn of the version after a server was lost, while updates do
	// not arrive.
	settleTime = 4 * time.Second
	// knownAfter is how long it takes until a broker has a beat of every live worker.
	knownAfter = schema.Missed * schema.BeatEvery
)

// application is a configuration that is to become active.
type application struct {
	cfg schema.Config
	// base is the version it was made from, which must still be the active one;
	// 0: none is.
	base uint64
	note string
	// minor: it only registers or unregisters hooks.
	minor bool
	// force continues although handlers cannot be loaded.
	force bool
	// atOnce does not wait for workers: they load it when it is active.
	atOnce bool
}

// applied is the result of an application.
type applied struct {
	version  uint64 // the active version in the end
	changed  bool
	refused  bool
	problems []schema.Problem
}

// spread proposes a configuration, waits until every live node has loaded it, and makes it the
// active one. The caller holds the turn.
func (a *Aggregator) spread(ctx context.Context, app application) (applied, error) {
	version, same, err := a.propose(ctx, app)
	if err != nil || same {
		return applied{version: version}, err
	}
	problems, fatal, err := a.validated(ctx, version, app.atOnce)
	if err != nil && a.life.ctx.Err() != nil {
		err = &schema.ControlError{Code: schema.CodeUnavailable, Message: "this broker is stopping; nothing changed, try again"}
	}
	if err == nil && !fatal && (app.force || len(problems) == 0) {
		if err = a.opt.Configs.Activate(ctx, version); err == nil {
			a.settle(ctx, version)
			return applied{version: version, changed: true, problems: problems}, nil
		}
		if !errors.Is(err, state.ErrMoved) {
			err = fmt.Errorf("%w; the version may be active: look with config history", err)
		}
	}
	a.withdraw(version)
	return applied{version: app.base, refused: err == nil, problems: problems}, err
}

// withdraw withdraws a proposal, also if its client is gone: while this broker lives, others wait
// for its proposal. If that fails, withdraw tries again until it succeeds.
func (a *Aggregator) withdraw(version uint64) {
	err := a.withdrawOnce(version)
	if err == nil {
		return
	}
	a.opt.Logger.Warn("cannot withdraw the proposed configuration; the broker tries again", "version", version, "error", err)
	a.life.beside(func() {
		for kv.Rest(a.life.ctx, time.Second) == nil && a.withdrawOnce(version) != nil {
		}
	})
}

func (a *Aggregator) withdrawOnce(version uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.life.ctx), flushTime)
	defer cancel()
	return a.opt.Configs.Withdraw(ctx, version)
}

// propose writes a configuration as the one that is to become active. If another proposal is under
// way, it waits for that, unless that proposal is abandoned.
func (a *Aggregator) propose(ctx context.Context, app application) (version uint64, same bool, err error) {
	p := state.Proposal{By: a.opt.Node, Note: app.note, Minor: app.minor, Base: app.base, First: app.base == 0}
	for {
		version, same, err = a.opt.Configs.Propose(ctx, app.cfg, p)
		busy, ok := errors.AsType[*state.Busy](err)
		if !ok {
			return version, same, err
		}
		abandoned, err := a.abandoned(ctx, busy)
		if err != nil {
			return 0, false, err
		}
		if abandoned {
			p.Over = busy.Version
			continue
		}
		if kv.Rest(ctx, lookEvery) != nil {
			return 0, false, conflict(fmt.Sprintf("version %d is being applied by %s; try again", busy.Version, busy.By))
		}
	}
}

// abandoned reports whether the broker that proposed a version is gone, or is this one, which now
// works on another proposal.
func (a *Aggregator) abandoned(ctx context.Context, busy *state.Busy) (bool, error) {
	if busy.By == a.opt.Node {
		return true, nil
	}
	nodes, err := a.opt.Configs.Nodes(ctx)
	return !slices.ContainsFunc(nodes, func(n state.Node) bool { return n.ID == busy.By }), err
}

// validated waits until every live node has loaded a version, or reported that it cannot. It
// returns their problems, and whether a broker cannot use the version at all. Force does not
// override that, because the broker would keep an older version.
func (a *Aggregator) validated(ctx context.Context, version uint64, atOnce bool) (problems []schema.Problem, fatal bool, err error) {
	until := time.Now().Add(patience)
	for {
		brokers, err := a.brokersOn(ctx, version)
		if err != nil {
			return nil, false, err
		}
		workers := a.workersOn(version, brokers.asked)
		late := time.Now().After(until) && !a.aloneIn(brokers.missing)
		known := time.Since(a.life.started) >= knownAfter
		if late || len(brokers.missing) == 0 && (atOnce || known && len(workers.missing) == 0) {
			problems = slices.Concat(brokers.tell(late), workers.tell(late))
			return problems, brokers.unfit || late && len(brokers.missing) > 0, nil
		}
		if err := kv.Rest(ctx, lookEvery); err != nil {
			return nil, false, fmt.Errorf("waiting until every node has loaded version %d: %w", version, err)
		}
	}
}

// aloneIn reports whether only this broker is missing. It lives, so its load always ends.
func (a *Aggregator) aloneIn(missing []string) bool {
	return len(missing) == 1 && missing[0] == a.opt.Node
}

// census collects the answers of one kind of node about a version.
type census struct {
	// asked are all nodes, with or without an answer.
	asked    []string
	problems []schema.Problem
	// missing are the nodes without an answer yet.
	missing []string
	// unfit: some node cannot use the version at all.
	unfit bool
}

// tell lists the problems and, if late is true, the missing nodes.
func (c *census) tell(late bool) []schema.Problem {
	all := c.problems
	if late {
		for _, node := range c.missing {
			all = append(all, schema.Problem{Node: node, Error: "it did not report in time whether it can load the version"})
		}
	}
	slices.SortStableFunc(all, func(x, y schema.Problem) int {
		return strings.Compare(x.Node+"\x00"+x.Hook, y.Node+"\x00"+y.Hook)
	})
	return all
}

// add adds a node's answer; nil: the node has not answered.
func (c *census) add(node string, version uint64, said *schema.Candidate) {
	c.asked = append(c.asked, node)
	if said == nil || said.Version != version {
		c.missing = append(c.missing, node)
		return
	}
	if said.Error != "" {
		c.unfit = true
		c.problems = append(c.problems, schema.Problem{Node: node, Error: said.Error})
	}
	for hook, err := range said.LoadErrors {
		c.problems = append(c.problems, schema.Problem{Node: node, Hook: hook, Error: err})
	}
}

// brokersOn reads the state of the brokers from their leases. A broker that is cut off keeps its
// lease until it no longer answers by an older version.
func (a *Aggregator) brokersOn(ctx context.Context, version uint64) (c census, err error) {
	nodes, err := a.opt.Configs.Nodes(ctx)
	for _, n := range nodes {
		c.add(n.ID, version, n.Candidate)
	}
	return c, err
}

// workersOn collects the last state of the live workers, except those inside brokers, whose leases
// report it.
func (a *Aggregator) workersOn(version uint64, brokers []string) (c census) {
	for _, p := range a.workers.members.Pools() {
		for _, w := range p.Workers {
			if !w.Silent && !w.Draining && !slices.Contains(brokers, w.Worker) && !slices.Contains(c.asked, w.Worker) {
				c.add(w.Worker, version, w.Candidate)
			}
		}
	}
	return c
}

// settle waits until the brokers use an active version, so that a client that learns of it meets no
// older one. It does not wait for a broker that is cut off.
func (a *Aggregator) settle(ctx context.Context, version uint64) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		nodes, err := a.opt.Configs.Nodes(ctx)
		behind := slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Active < version })
		if err == nil && !behind || kv.Rest(ctx, lookEvery) != nil {
			return
		}
	}
}

func conflict(message string) error {
	return &schema.ControlError{Code: schema.CodeConflict, Message: message}
}
