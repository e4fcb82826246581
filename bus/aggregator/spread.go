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
	// patience is how long nodes may take to load a version: Python hooks import
	// their modules meanwhile.
	patience = 30 * time.Second
	// lookEvery is how often it is looked whether all have.
	lookEvery = 25 * time.Millisecond
	// settleTime is how long it is waited until all brokers use an active version:
	// longer than it takes them to renew their leases, by which they learn of it
	// in the seconds after a server was lost, when nobody hears of changes.
	settleTime = 4 * time.Second
	// knownAfter is when all live workers have been heard of.
	knownAfter = schema.Missed * schema.BeatEvery
)

// application is a configuration that somebody wants to be active.
type application struct {
	cfg schema.Config
	// base is the version it was made from, which must still be the active one;
	// 0: none is.
	base uint64
	note string
	// minor: it only registers or unregisters hooks.
	minor bool
	// force goes on although handlers cannot be loaded.
	force bool
	// atOnce does not wait for workers: they load it when it is active.
	atOnce bool
}

// applied is what came of an application.
type applied struct {
	version  uint64 // that is active in the end
	changed  bool
	refused  bool
	problems []schema.Problem
}

// spread proposes a configuration, waits until every live node has loaded it,
// and makes it the active one. Whoever calls it has the turn.
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

// withdraw takes a proposal back, also when its asker has gone: while this broker
// lives, others wait for what it has proposed. What cannot be done now is tried
// until it can.
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

// propose writes a configuration as the one that is to become active. Where
// another one is on its way it waits for that, unless nobody is behind it any more.
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

// abandoned reports whether whoever proposed a version is gone, or is this
// broker, which is at something else by now.
func (a *Aggregator) abandoned(ctx context.Context, busy *state.Busy) (bool, error) {
	if busy.By == a.opt.Node {
		return true, nil
	}
	nodes, err := a.opt.Configs.Nodes(ctx)
	return !slices.ContainsFunc(nodes, func(n state.Node) bool { return n.ID == busy.By }), err
}

// validated waits until every live node has loaded a version, or cannot. It
// reports what they cannot load, and whether a broker cannot use the version
// at all: no force goes over that, since it would go on with an older one.
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

// aloneIn reports whether only this broker is missing: it lives, and whatever it
// loads comes to an end.
func (a *Aggregator) aloneIn(missing []string) bool {
	return len(missing) == 1 && missing[0] == a.opt.Node
}

// census is what one kind of node says of a version.
type census struct {
	// asked are all of them, whatever they said.
	asked    []string
	problems []schema.Problem
	// missing are the nodes that have not said anything yet.
	missing []string
	// unfit: some node cannot use the version at all.
	unfit bool
}

// tell lists the problems and, in the end, who is missing.
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

// add counts what a node says; nil: nothing.
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

// brokersOn asks the brokers' leases. A broker that is cut off keeps its own
// until it has stopped to answer by an older version.
func (a *Aggregator) brokersOn(ctx context.Context, version uint64) (c census, err error) {
	nodes, err := a.opt.Configs.Nodes(ctx)
	for _, n := range nodes {
		c.add(n.ID, version, n.Candidate)
	}
	return c, err
}

// workersOn asks what the live workers said last, but those in brokers, whose
// leases say it.
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

// settle waits until the brokers use an active version, so that who is told of
// it meets no other. One that is cut off is not waited for.
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
