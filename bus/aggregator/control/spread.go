package control

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
	// withdrawTime bounds one attempt to withdraw a proposal.
	withdrawTime = 5 * time.Second
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
func (c *Control) spread(ctx context.Context, app application) (applied, error) {
	version, same, err := c.propose(ctx, app)
	if err != nil || same {
		return applied{version: version}, err
	}
	problems, fatal, err := c.validated(ctx, version, app.atOnce)
	if err != nil && c.opt.Life.Context().Err() != nil {
		err = unavailable("this broker is stopping; nothing changed, try again")
	}
	if err == nil && !fatal && (app.force || len(problems) == 0) {
		if err = c.opt.Configs.Activate(ctx, version); err == nil {
			c.settle(ctx, version)
			return applied{version: version, changed: true, problems: problems}, nil
		}
		if !errors.Is(err, state.ErrMoved) {
			err = fmt.Errorf("%w; the version may be active: look with config history", err)
		}
	}
	c.withdraw(version)
	return applied{version: app.base, refused: err == nil, problems: problems}, err
}

// withdraw withdraws a proposal, also if its client is gone: while this broker lives, others wait
// for its proposal. If that fails, withdraw tries again until it succeeds.
func (c *Control) withdraw(version uint64) {
	life := c.opt.Life.Context()
	once := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(life), withdrawTime)
		defer cancel()
		return c.opt.Configs.Withdraw(ctx, version)
	}
	err := once()
	if err == nil {
		return
	}
	c.opt.Logger.Warn("cannot withdraw the proposed configuration; the broker tries again", "version", version, "error", err)
	c.opt.Life.Go(func() {
		for kv.Rest(life, time.Second) == nil && once() != nil {
		}
	})
}

// propose writes a configuration as the one that is to become active. If another proposal is under
// way, it waits for that, unless that proposal is abandoned.
func (c *Control) propose(ctx context.Context, app application) (version uint64, same bool, err error) {
	p := state.Proposal{By: c.opt.Node, Note: app.note, Minor: app.minor, Base: app.base, First: app.base == 0}
	for {
		version, same, err = c.opt.Configs.Propose(ctx, app.cfg, p)
		busy, ok := errors.AsType[*state.Busy](err)
		if !ok {
			return version, same, err
		}
		abandoned, err := c.abandoned(ctx, busy)
		if err != nil {
			return 0, false, err
		}
		if abandoned {
			p.Over = busy.Version
			continue
		}
		if kv.Rest(ctx, lookEvery) != nil {
			return 0, false, conflict("version %d is being applied by %s; try again", busy.Version, busy.By)
		}
	}
}

// abandoned reports whether the broker that proposed a version is gone, or is this one, which now
// works on another proposal.
func (c *Control) abandoned(ctx context.Context, busy *state.Busy) (bool, error) {
	if busy.By == c.opt.Node {
		return true, nil
	}
	nodes, err := c.opt.Configs.Nodes(ctx)
	return !slices.ContainsFunc(nodes, func(n state.Node) bool { return n.ID == busy.By }), err
}

// validated waits until every live node has loaded a version, or reported that it cannot. It
// returns their problems, and whether a broker cannot use the version at all. Force does not
// override that, because the broker would keep an older version.
func (c *Control) validated(ctx context.Context, version uint64, atOnce bool) (problems []schema.Problem, fatal bool, err error) {
	until := time.Now().Add(patience)
	for {
		brokers, err := c.brokersOn(ctx, version)
		if err != nil {
			return nil, false, err
		}
		workers := c.workersOn(version, brokers.asked)
		late := time.Now().After(until) && !c.aloneIn(brokers.missing)
		known := time.Since(c.opt.Life.Started) >= knownAfter
		if late || len(brokers.missing) == 0 && (atOnce || known && len(workers.missing) == 0) {
			problems = slices.Concat(brokers.list(late), workers.list(late))
			return problems, brokers.unfit || late && len(brokers.missing) > 0, nil
		}
		if err := kv.Rest(ctx, lookEvery); err != nil {
			return nil, false, fmt.Errorf("waiting until every node has loaded version %d: %w", version, err)
		}
	}
}

// aloneIn reports whether only this broker is missing. It lives, so its load always ends.
func (c *Control) aloneIn(missing []string) bool {
	return len(missing) == 1 && missing[0] == c.opt.Node
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

// list returns the problems and, if late is true, the missing nodes.
func (n *census) list(late bool) []schema.Problem {
	all := n.problems
	if late {
		for _, node := range n.missing {
			all = append(all, schema.Problem{Node: node, Error: "it did not report in time whether it can load the version"})
		}
	}
	slices.SortStableFunc(all, func(x, y schema.Problem) int {
		return strings.Compare(x.Node+"\x00"+x.Hook, y.Node+"\x00"+y.Hook)
	})
	return all
}

// add adds a node's answer; nil: the node has not answered.
func (n *census) add(node string, version uint64, candidate *schema.Candidate) {
	n.asked = append(n.asked, node)
	if candidate == nil || candidate.Version != version {
		n.missing = append(n.missing, node)
		return
	}
	if candidate.Error != "" {
		n.unfit = true
		n.problems = append(n.problems, schema.Problem{Node: node, Error: candidate.Error})
	}
	for hook, err := range candidate.LoadErrors {
		n.problems = append(n.problems, schema.Problem{Node: node, Hook: hook, Error: err})
	}
}

// brokersOn reads the state of the brokers from their leases. A broker that is cut off keeps its
// lease until it no longer answers by an older version.
func (c *Control) brokersOn(ctx context.Context, version uint64) (all census, err error) {
	nodes, err := c.opt.Configs.Nodes(ctx)
	for _, n := range nodes {
		all.add(n.ID, version, n.Candidate)
	}
	return all, err
}

// workersOn collects the last state of the live workers, except those inside brokers, whose leases
// report it.
func (c *Control) workersOn(version uint64, brokers []string) (all census) {
	for _, p := range c.opt.Members.Pools() {
		for _, w := range p.Workers {
			if !w.Silent && !w.Draining && !slices.Contains(brokers, w.Worker) && !slices.Contains(all.asked, w.Worker) {
				all.add(w.Worker, version, w.Candidate)
			}
		}
	}
	return all
}

// settle waits until the brokers use an active version, so that a client that learns of it meets no
// older one. It does not wait for a broker that is cut off.
func (c *Control) settle(ctx context.Context, version uint64) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		nodes, err := c.opt.Configs.Nodes(ctx)
		behind := slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Active < version })
		if err == nil && !behind || kv.Rest(ctx, lookEvery) != nil {
			return
		}
	}
}

// checkStorableEvery is the interval at which a change of the configuration checks whether the
// store accepts writes.
const checkStorableEvery = time.Second

// whileStorable returns a context that ends when the store accepts no writes. A server with a full
// disk does not answer writes, and a change of the configuration would retry for a minute.
func (c *Control) whileStorable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	c.opt.Life.Go(func() {
		for kv.Rest(ctx, checkStorableEvery) == nil {
			if c.opt.Unstorable() != nil {
				cancel()
			}
		}
	})
	return ctx, cancel
}

// explained adds to an error of a request that could not store something why the store takes no
// writes, if that is known.
func (c *Control) explained(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !kv.Full(err) {
		return err
	}
	why := c.opt.Unstorable()
	if why == nil {
		return err
	}
	return unavailable("%v (%v)", why, err)
}
