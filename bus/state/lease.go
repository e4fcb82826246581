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
	// endFor bounds the end of a lease. A lease that cannot be ended lapses.
	endFor = 2 * time.Second
	// renewEvery is how often a lease is renewed.
	renewEvery = 3 * time.Second
	// renewFor bounds one renewal.
	renewFor = 4 * time.Second
	// alsoFor bounds each additional Confirm while the lease has not lapsed.
	alsoFor = time.Second
	// renewAgain is the interval after a failed renewal, and renewSoon the shortest one.
	renewAgain = 500 * time.Millisecond
	renewSoon  = 100 * time.Millisecond
	// freshFor is how long a broker may answer after the beginning of a confirmed renewal. It is
	// shorter than the lease, so that clocks may run at different speeds.
	freshFor = 12 * time.Second
	// unsaidFor is freshFor for a renewal that the leader could read but not store.
	unsaidFor = 4 * time.Second
)

// A Lease announces that a broker is alive, and which versions it has. While it is [Lease.Fresh] the
// broker knows the active version: no version is activated before every broker with a lease has
// prepared it, so a broker is at most one version behind. A broker whose lease may have lapsed must
// not answer calls before [Lease.Wait] returns.
type Lease struct {
	configs *Configs
	key     string
	stop    context.CancelFunc
	ended   chan struct{}
	wake    chan struct{}
	// until is when the lease stops being fresh; nil: it never was.
	until atomic.Pointer[freshness]
	// unstored is true after a failed write of the lease.
	unstored atomic.Bool
	// held is until when the last stored lease certainly exists. Only the goroutine that renews
	// uses it.
	held freshness

	mu    sync.Mutex    // guards the following fields
	node  Node          // the content of the lease
	round chan struct{} // closed at the end of the current or next renewal
	also  []Confirm
	realm func() (unreadable bool) // nil: the broker has no realm
}

// A Confirm reads from a leader what a broker must know. If the lease may have lapsed, other brokers
// did not wait for this one. The answer must then be proved to be current, because the leader itself may
// be cut off.
type Confirm func(ctx context.Context, lapsed bool) error

// Lease takes a lease for a broker and renews it until [Lease.Close]. It becomes fresh only while a
// [Configs.Watch] runs.
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

// Report announces the version that the broker answers with, and its report on the proposed one; nil:
// no report yet.
func (l *Lease) Report(active uint64, candidate *schema.Candidate) {
	l.mu.Lock()
	same := l.node.Active == active && sameCandidate(l.node.Candidate, candidate)
	l.node.Active, l.node.Candidate = active, candidate
	l.mu.Unlock()
	if !same {
		l.poke()
	}
}

// Froze announces the version of the freezes that the broker applies.
func (l *Lease) Froze(version uint64) {
	l.mu.Lock()
	same := l.node.Freeze == version
	l.node.Freeze = version
	l.mu.Unlock()
	if !same {
		l.poke()
	}
}

// Also makes each renewal run another Confirm after the configuration's. One that is added before
// [Configs.Watch] runs from the first renewal on, so that a broker that starts, or was cut off, knows
// the result before it answers. If it fails while the lease has not lapsed, the broker continues: a
// process that makes a change waits until this broker confirms it.
func (l *Lease) Also(confirm Confirm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.also = append(l.also, confirm)
}

// Realm makes each renewal announce whether the broker cannot read its realm.
func (l *Lease) Realm(unreadable func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.realm = unreadable
}

// freshness is an end by both clocks of the machine: the monotonic one stops while the machine
// sleeps, and the wall clock can be set.
type freshness struct {
	steady time.Time
	wall   time.Time // without the monotonic reading
}

// freshUntil returns the freshness that ends at t, a result of time.Now.
func freshUntil(t time.Time) freshness { return freshness{steady: t, wall: t.Round(0)} }

// at reports whether it lasts at now, a result of time.Now.
func (f *freshness) at(now time.Time) bool { return now.Before(f.steady) && now.Before(f.wall) }

// Fresh reports whether the broker may answer at now, a result of time.Now.
func (l *Lease) Fresh(now time.Time) bool {
	until := l.until.Load()
	return until != nil && until.at(now)
}

// Stored reports whether the last write of the lease succeeded. A lease that is stored and not fresh
// waits for a confirmation of the configuration.
func (l *Lease) Stored() bool { return !l.unstored.Load() }

// Wait returns when the lease is fresh, and renews it at once if it is not. Several callers share one
// renewal.
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

// Close ends the lease: other brokers no longer wait for this one.
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

// keep renews the lease in time, when its content changed, and on request.
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

// rest waits, unless a renewal is requested.
func (l *Lease) rest(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.wake:
	case <-ctx.Done():
	}
}

// renew writes the lease and then confirms the pointer. Only an answer to the write proves that the
// leader is not cut off from the others.
func (l *Lease) renew(ctx context.Context) error {
	defer l.over()
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, renewFor)
	defer cancel()
	stored := l.write(ctx)
	l.unstored.Store(stored != nil)
	if _, answered := errors.AsType[*jetstream.APIError](stored); stored != nil && !answered {
		return stored
	}
	lapsed := !l.held.at(time.Now())
	if err := l.confirm(ctx, lapsed); err != nil {
		return errors.Join(stored, err)
	}
	if stored != nil {
		until := start.Add(unsaidFor)
		if !lapsed && l.held.steady.Before(until) {
			until = l.held.steady // other brokers wait no longer, and more must be confirmed then
		}
		l.extend(until)
		return stored
	}
	l.held = freshUntil(start.Add(freshFor))
	l.extend(start.Add(freshFor))
	return nil
}

// confirm reads what the broker must know from the leaders.
func (l *Lease) confirm(ctx context.Context, lapsed bool) error {
	if err := l.configs.Confirm(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	also := l.also // a starting broker has added all of them by now
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

// write stores the lease, in place of the previous one.
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

// extend moves the end of the freshness forward, never back.
func (l *Lease) extend(until time.Time) {
	if old := l.until.Load(); old == nil || until.After(old.steady) {
		f := freshUntil(until)
		l.until.Store(&f)
	}
}

// over wakes all who wait for a renewal.
func (l *Lease) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.round)
	l.round = make(chan struct{})
}
