package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// calmFor is how long before the leader is killed everything is watched, and
	// stormFor how long after that.
	calmFor  = 3 * time.Second
	stormFor = 17 * time.Second
	// settling is how long nothing must have changed to count as settled.
	settling = 500 * time.Millisecond
)

// Leaderless is what happened after one kill -9 of the server that led the
// stream of items.
type Leaderless struct {
	// BothLed: it led the stream of cursors, too.
	BothLed bool `json:"both_led"`
	// NoEnqueue is how long after the kill the first item was accepted again, and
	// NoDelivery how long after it the first one was handed over again.
	NoEnqueue  schema.Duration `json:"no_enqueue"`
	NoDelivery schema.Duration `json:"no_delivery"`
	// Refused attempts to enqueue were answered with an error, or not in time; the
	// longest took RefusedAfter until that was known. Why is the last one's.
	Refused      int             `json:"refused"`
	RefusedAfter schema.Duration `json:"refused_after"`
	Why          string          `json:"why,omitzero"`
	// Idle and Due are tool calls while nothing could be enqueued: of an agent for
	// which nothing waits, and of one for which something does. Calm are those of
	// the first kind before the kill.
	Calm Calls `json:"calm"`
	Idle Calls `json:"idle"`
	Due  Calls `json:"due"`
	// Accepted items were said to be in the queue, Delivered ones handed over. There may
	// be more of these: attempts that were refused may have been accepted all the same.
	Accepted  int `json:"accepted"`
	Delivered int `json:"delivered"`
	// Lost were accepted and not handed over; Again were handed over once more.
	Lost  int `json:"lost,omitzero"`
	Again int `json:"again,omitzero"`

	accepted  []uint64
	delivered map[uint64]int
}

// OK reports whether no accepted item was lost or came twice, and all calls were answered.
func (l *Leaderless) OK() bool {
	return l.Lost == 0 && l.Again == 0 && l.Idle.Unanswered == 0 && l.Due.Unanswered == 0
}

// Calls are how long tool calls took.
type Calls struct {
	Count      int             `json:"count"`
	Unanswered int             `json:"unanswered"`
	P50        schema.Duration `json:"p50"`
	P99        schema.Duration `json:"p99"`
	Most       schema.Duration `json:"most"`
}

// leaderless kills the leader again and again, each time of a whole cluster.
func (o *Options) leaderless(ctx context.Context, r *Report) (err error) {
	s, err := o.cluster(ctx, "leaderless", 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	tellers := make([]*proc.Child, 3)
	for i := range tellers {
		if tellers[i], err = s.crew.Start(ctx, Teller, TellerConfig{NATS: s.nats}, nil); err != nil {
			return err
		}
	}
	for i := range o.Kills {
		if err := s.gather(ctx); err != nil {
			return err
		}
		one, err := s.lose(ctx, tellers, fmt.Sprintf("kill-%d-", i))
		if err != nil {
			return err
		}
		r.Leaderless = append(r.Leaderless, one)
		o.say("leaderless: nothing was accepted for %v, kill %d of %d", one.NoEnqueue, i+1, o.Kills)
	}
	return nil
}

// lose watches one kill of a leader, and mends the cluster.
func (s *site) lose(ctx context.Context, tellers []*proc.Child, prefix string) (*Leaderless, error) {
	var enqueued, idle, due []Attempt
	g, together := errgroup.WithContext(ctx)
	for i, w := range []struct {
		telling Telling
		to      *[]Attempt
	}{
		{Telling{Do: Enqueue, Prefix: prefix + "due-"}, &enqueued},
		{Telling{Do: ask, Prefix: prefix + "idle-", Items: 0}, &idle},
		{Telling{Do: ask, Prefix: prefix + "due-", Items: -1}, &due},
	} {
		w.telling.For = schema.Duration(calmFor + stormFor)
		g.Go(func() error { return tellers[i].Ask(together, w.telling, w.to) })
	}
	l := new(Leaderless)
	var killed time.Time
	var dead *node
	g.Go(func() (err error) {
		if !measure.Pause(together, calmFor) {
			return context.Cause(together)
		}
		if dead, l.BothLed, err = s.leader(together); err != nil {
			return err
		}
		killed = time.Now()
		return dead.child.Kill()
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	child, err := s.crew.Start(ctx, roles.Node, dead.config, nil)
	if err != nil {
		return nil, err
	}
	dead.child = child
	l.judge(killed, enqueued, idle, due)
	if err := s.spread(ctx); err != nil {
		return nil, err
	}
	return l, s.rest(ctx, tellers[2], prefix, l)
}

// leader is who leads the stream of items.
func (s *site) leader(ctx context.Context) (n *node, both bool, err error) {
	js, nc, err := s.streams(ctx)
	if err != nil {
		return nil, false, err
	}
	defer nc.Close()
	items, err := led(ctx, js, itemStream)
	if err != nil {
		return nil, false, err
	}
	cursors, err := led(ctx, js, cursorStream)
	if err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(s.nodes, func(n node) bool { return n.config.Name == items })
	if i < 0 {
		return nil, false, fmt.Errorf("the stream %s is led by %q, which is not one of the servers", itemStream, items)
	}
	return &s.nodes[i], items == cursors, nil
}

// gather has one server lead both streams, which is the worst that can be lost
// with one. A cluster that decides otherwise is measured as it is.
func (s *site) gather(ctx context.Context) error {
	js, nc, err := s.streams(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	leader, err := led(ctx, js, itemStream)
	if err != nil {
		return err
	}
	wish := fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, leader)
	if _, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+cursorStream, wish); err != nil {
		return fmt.Errorf("asking for another leader of %s: %w", cursorStream, err)
	}
	measure.Pause(ctx, settling)
	return s.spread(ctx)
}

func led(ctx context.Context, js jetstream.JetStream, stream string) (string, error) {
	st, err := js.Stream(ctx, stream)
	if err != nil {
		return "", fmt.Errorf("looking for the leader of %s: %w", stream, err)
	}
	if st.CachedInfo().Cluster == nil {
		return "", fmt.Errorf("the stream %s is not in a cluster", stream)
	}
	return st.CachedInfo().Cluster.Leader, nil
}

// judge reads what was watched around the kill.
func (l *Leaderless) judge(killed time.Time, enqueued, idle, due []Attempt) {
	after := func(all []Attempt, ok func(Attempt) bool) time.Duration {
		for _, a := range all {
			if time.Unix(0, a.At).After(killed) && a.Error == "" && ok(a) {
				return a.ended().Sub(killed)
			}
		}
		return stormFor
	}
	storm := after(enqueued, func(Attempt) bool { return true })
	l.NoEnqueue = schema.Duration(storm.Round(time.Millisecond))
	l.NoDelivery = schema.Duration(after(due, func(a Attempt) bool { return len(a.Items) > 0 }).Round(time.Millisecond))
	for _, a := range enqueued {
		if a.Error == "" {
			l.accepted = append(l.accepted, a.Items...)
			continue
		}
		l.Refused++
		l.Why = a.Error
		l.RefusedAfter = max(l.RefusedAfter, legible(float64(a.Took)))
	}
	l.take(due)
	in := func(all []Attempt, from, to time.Time) Calls {
		return summed(slices.DeleteFunc(slices.Clone(all), func(a Attempt) bool {
			return a.ended().Before(from) || time.Unix(0, a.At).After(to)
		}))
	}
	l.Calm = in(idle, time.Time{}, killed)
	l.Idle = in(idle, killed, killed.Add(storm))
	l.Due = in(due, killed, killed.Add(storm))
}

// take notes what attempts brought, item by item: a second one of the same does not make
// up for another that is lost.
func (l *Leaderless) take(all []Attempt) {
	if l.delivered == nil {
		l.delivered = map[uint64]int{}
	}
	for _, a := range all {
		for _, item := range a.Items {
			l.delivered[item]++
		}
	}
	l.Accepted, l.Delivered, l.Lost, l.Again = len(l.accepted), len(l.delivered), 0, 0
	for _, item := range l.accepted {
		if l.delivered[item] == 0 {
			l.Lost++
		}
	}
	for _, n := range l.delivered {
		l.Again += n - 1
	}
}

// summed are the quantiles of attempts.
func summed(all []Attempt) Calls {
	c := Calls{Count: len(all)}
	var took []schema.Duration
	for _, a := range all {
		if a.Error != "" {
			c.Unanswered++
		}
		took = append(took, a.Took)
	}
	if len(took) == 0 {
		return c
	}
	slices.Sort(took)
	at := func(q float64) schema.Duration {
		return legible(float64(took[min(int(q*float64(len(took))), len(took)-1)]))
	}
	c.P50, c.P99, c.Most = at(0.5), at(0.99), at(1)
	return c
}

// restFor is how long the last items may take: a lease may have to lapse first.
const restFor = 45 * time.Second

// rest takes what was not handed over while the watch was on.
func (s *site) rest(ctx context.Context, t *proc.Child, prefix string, l *Leaderless) error {
	for end := time.Now().Add(restFor); l.Lost > 0 && time.Now().Before(end); {
		var more []Attempt
		q := Telling{Do: ask, Prefix: prefix + "due-", Items: -1, For: schema.Duration(settling)}
		if err := t.Ask(ctx, q, &more); err != nil {
			return err
		}
		l.take(more)
	}
	return nil
}
