package state

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// endFor bounds the end of a lease: one that cannot be ended lapses.
	endFor = 2 * time.Second
	// renewEvery is how often a lease is renewed.
	renewEvery = 3 * time.Second
	// renewFor bounds one renewal.
	renewFor = 4 * time.Second
	// alsoFor bounds what is confirmed beside the configuration while others wait for it.
	alsoFor = time.Second
	// renewAgain is how soon it is renewed again when that did not work, and
	// renewSoon how soon when somebody waits for it.
	renewAgain = 500 * time.Millisecond
	renewSoon  = 100 * time.Millisecond
	// freshFor is how long a broker may answer after a renewal began that was
	// confirmed. It is shorter than the lease, whoever's clock runs fast.
	freshFor = 12 * time.Second
	// unsaidFor is the same for one that the leader read but could not store.
	unsaidFor = 4 * time.Second
)

// A Lease says that a broker is alive and what it holds of the configuration.
// While it is [Lease.Fresh] the broker knows what is active: nobody activates a
// version before every broker that holds a lease has it ready, so a broker is
// never behind by more than one version. A broker whose lease may have lapsed
// must not answer calls before [Lease.Wait] returns.
type Lease struct {
	configs *Configs
	key     string
	stop    context.CancelFunc
	ended   chan struct{}
	wake    chan struct{}
	// until is when the lease stops being fresh; nil: it never was.
	until atomic.Pointer[freshness]
	// unstored: the last write of the lease did not work.
	unstored atomic.Bool
	// held is until when the lease that was stored last surely is there. Only the
	// goroutine that renews uses it.
	held freshness

	mu    sync.Mutex    // guards what follows
	node  Node          // what is to be said
	round chan struct{} // closed when the renewal that is on or comes next is over
	also  []Confirm
	realm func() (unreadable bool) // nil: there is none to read
}

// A Confirm reads from a leader what a broker must know. A broker whose lease may have
// lapsed is one that others did not wait for meanwhile: what it then hears must be known
// to be the last word, and not only what a leader says that may be cut off itself.
type Confirm func(ctx context.Context, lapsed bool) error

// Lease takes a lease for a broker and keeps it until [Lease.Close]. Somebody
// must [Configs.Watch] for it to become fresh.
func (c *Configs) Lease(n Node) (*Lease, error) {
	key, err := nodeKey(n.ID)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Lease{
		configs: c, key: key, stop: stop, node: n,
		ended: make(chan struct{}), wake: make(chan struct{}, 1), round: make(chan struct{}),
	}
	go l.keep(ctx)
	return l, nil
}

// Report says at once, if that is new, which version the broker answers with
// and what it thinks of the proposed one; nil: nothing yet.
func (l *Lease) Report(active uint64, candidate *schema.Candidate) {
	l.mu.Lock()
	same := l.node.Active == active && sameCandidate(l.node.Candidate, candidate)
	l.node.Active, l.node.Candidate = active, candidate
	l.mu.Unlock()
	if !same {
		l.poke()
	}
}

// Froze says at once which version of what is frozen the broker goes by.
func (l *Lease) Froze(version uint64) {
	l.mu.Lock()
	same := l.node.Freeze == version
	l.node.Freeze = version
	l.mu.Unlock()
	if !same {
		l.poke()
	}
}

// Also has each renewal confirm something else after the configuration, from the first one
// on if it is said before somebody does [Configs.Watch], so that a broker that starts or was
// cut off knows it before it answers. Where that cannot be had
// soon, a broker whose lease is still there goes on with what it knows: whoever changes
// it waits until this broker says that it knows.
func (l *Lease) Also(confirm Confirm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.also = append(l.also, confirm)
}

// Realm has each renewal say whether the broker cannot read who may use its server.
func (l *Lease) Realm(unreadable func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.realm = unreadable
}

// freshness is an end by both clocks of the machine: the steady one stands
// still while the machine sleeps, the one on the wall is set by people.
type freshness struct {
	steady time.Time
	wall   time.Time // without the reading of the other
}

// freshUntil is a freshness that ends at a time that was told with both clocks.
func freshUntil(t time.Time) freshness { return freshness{steady: t, wall: t.Round(0)} }

// at reports whether it lasts at a time that time.Now told.
func (f *freshness) at(now time.Time) bool { return now.Before(f.steady) && now.Before(f.wall) }

// Fresh reports whether the broker may answer at that time, which is one that
// time.Now told.
func (l *Lease) Fresh(now time.Time) bool {
	until := l.until.Load()
	return until != nil && until.at(now)
}

// Stored reports whether the lease could be written last time. One that could,
// and is not fresh, waits for the configuration to be confirmed.
func (l *Lease) Stored() bool { return !l.unstored.Load() }

// Wait returns when the lease is fresh, and renews it at once if it is not. Many
// may wait for one renewal.
func (l *Lease) Wait(ctx context.Context) error {
	for !l.Fresh(time.Now()) {
		l.mu.Lock()
		round := l.round
		l.mu.Unlock()
		l.poke()
		select {
		case <-round:
		case <-l.ended:
			return errors.New("this broker ended its lease")
		case <-ctx.Done():
			return fmt.Errorf("waiting for the active configuration to be confirmed: %w", context.Cause(ctx))
		}
	}
	return nil
}

// Close ends the lease: nobody waits for this broker any more.
func (l *Lease) Close(ctx context.Context) error {
	l.stop()
	<-l.ended
	ctx, cancel := context.WithTimeout(ctx, endFor)
	defer cancel()
	if err := l.configs.kv.Purge(ctx, l.key, jetstream.PurgeTTL(leaseFor)); err != nil {
		l.configs.log.Warn("cannot end this broker's lease; it lapses on its own", "after", leaseFor, "error", err)
	}
	return nil
}

func (l *Lease) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// keep renews the lease in time, when what it says changed, and when asked.
func (l *Lease) keep(ctx context.Context) {
	defer close(l.ended)
	defer l.until.Store(nil)
	var last error
	for ctx.Err() == nil {
		wait := renewEvery
		err := l.renew(ctx)
		if err != nil && ctx.Err() == nil && (last == nil || last.Error() != err.Error()) {
			l.configs.log.Warn("cannot renew this broker's lease; the broker tries again", "error", err)
		}
		if last = err; err != nil {
			_ = kv.Pause(ctx, renewSoon)
			wait = renewAgain
		}
		l.rest(ctx, wait)
	}
}

// rest waits, but not when somebody asks.
func (l *Lease) rest(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.wake:
	case <-ctx.Done():
	}
}

// renew writes the lease and then has the pointer confirmed: only an answer to
// the write proves that the leader is not cut off from the others.
func (l *Lease) renew(ctx context.Context) error {
	defer l.over()
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, renewFor)
	defer cancel()
	said := l.write(ctx)
	l.unstored.Store(said != nil)
	if _, answered := errors.AsType[*jetstream.APIError](said); said != nil && !answered {
		return said
	}
	lapsed := !l.held.at(time.Now())
	if err := l.confirm(ctx, lapsed); err != nil {
		return errors.Join(said, err)
	}
	if said != nil {
		until := start.Add(unsaidFor)
		if !lapsed && l.held.steady.Before(until) {
			until = l.held.steady // nobody waits for longer, and more must be confirmed then
		}
		l.extend(until)
		return said
	}
	l.held = freshUntil(start.Add(freshFor))
	l.extend(start.Add(freshFor))
	return nil
}

// confirm reads from the leaders what the broker must know.
func (l *Lease) confirm(ctx context.Context, lapsed bool) error {
	if err := l.configs.Confirm(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	also := l.also // a broker that starts has said by now what else it must know
	l.mu.Unlock()
	for _, confirm := range also {
		if lapsed {
			if err := confirm(ctx, true); err != nil {
				return err
			}
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, alsoFor)
		if err := confirm(ctx, false); err != nil {
			l.configs.log.Warn("the broker continues with the configuration and freezes that it knows", "error", err)
		}
		cancel()
	}
	return nil
}

// write stores the lease, in the place of the one before.
func (l *Lease) write(ctx context.Context) error {
	l.mu.Lock()
	n, unreadable := l.node, l.realm
	l.mu.Unlock()
	if unreadable != nil {
		n.RealmUnreadable = unreadable()
	}
	value, err := n.value()
	if err != nil {
		return err
	}
	_, err = l.configs.bucket.Write(ctx, kv.Write{Key: l.key, Value: value, Blind: true, Replace: true, TTL: leaseFor})
	return err
}

// extend moves the end of the freshness, but never back.
func (l *Lease) extend(until time.Time) {
	if old := l.until.Load(); old == nil || until.After(old.steady) {
		f := freshUntil(until)
		l.until.Store(&f)
	}
}

// over tells all who wait that a renewal is over.
func (l *Lease) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.round)
	l.round = make(chan struct{})
}
