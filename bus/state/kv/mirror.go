package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// checkEvery is how often the leader is asked whether a revision was missed, because a
	// watcher is silent for seconds when a leader stops.
	checkEvery = time.Second
	// quietFor is how long to wait for missing revisions before they are read.
	quietFor = 250 * time.Millisecond
	// soonFor is quietFor when a caller waits for them.
	soonFor = 20 * time.Millisecond
	// lookFor bounds a request to the leader. A request during a change of the leader may get no
	// answer.
	lookFor = 2 * checkEvery
	// readFor bounds how long missing revisions are read one by one. A new watcher then gets the
	// rest at once.
	readFor = time.Second
	// lostFor is how long a mirror without a successful check is not behind.
	lostFor = 3 * checkEvery
	// emptyFor is how long a replicated bucket must report that no revision is left in a range.
	// After a network cut an old leader answers until it hears of the new one, which contacts
	// it once a second.
	emptyFor = 2 * time.Second
	// emptyAgain is the interval of these requests.
	emptyAgain = 100 * time.Millisecond
	// mostMissed bounds the revisions that are read one by one before a new watcher is made.
	mostMissed = 1000
)

// MirrorOptions configure a Mirror.
type MirrorOptions struct {
	// Apply is called once for each revision, in order, and never concurrently. It may miss
	// revisions that were replaced quickly. It must not block, and not call the mirror.
	Apply func(Entry)
	// Missed is called, as Apply is, before the first revision after more than MissedAfter without
	// news: the markers of keys that ended in this time may have lapsed, so that Apply never gets
	// them. nil: no call. It needs a Clock.
	Missed      func()
	MissedAfter time.Duration
	// Clock gets the leader's time; nil: no clock.
	Clock *Clock
	// Logger logs what needs no action at once; nil: no log.
	Logger *slog.Logger
}

// A Mirror follows all changes of a bucket until it is closed.
type Mirror struct {
	bucket *Bucket
	o      MirrorOptions
	log    *slog.Logger
	stop   context.CancelCauseFunc
	ended  sync.WaitGroup
	wake   chan struct{} // makes the mirror check at once
	repair chan struct{} // holds a token while missing revisions are read
	hole   hole          // guarded by repair

	mu sync.Mutex // guards the following fields, and the order of Apply
	// position is the revision up to which everything was applied.
	position uint64
	// waiters are woken when the position changes.
	waiters map[chan struct{}]uint64
	// info is the leader's last answer, at the time checked. behind is since when revisions are
	// missing; zero: none is.
	info    Info
	checked time.Time
	behind  time.Time
	// whole is the server's time up to which nothing was missed.
	whole  time.Time
	feed   *feed
	closed bool
	// wrong is set if the leader has fewer revisions than were applied.
	wrong error
}

var errClosed = errors.New("the mirror was closed")

// Follow returns a mirror that has applied everything that was in the bucket at the time of the call.
func (b *Bucket) Follow(ctx context.Context, o MirrorOptions) (*Mirror, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	life, stop := context.WithCancelCause(context.Background())
	m := &Mirror{
		bucket: b, o: o, log: o.Logger.With("bucket", b.stream), stop: stop,
		wake: make(chan struct{}, 1), repair: make(chan struct{}, 1), waiters: make(map[chan struct{}]uint64),
	}
	info, err := Patiently(ctx, "following the bucket of "+b.stream, Passing, m.begin)
	if err == nil {
		m.ended.Go(func() { m.keep(life) })
		err = m.Reach(ctx, info.Last)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// begin makes the first watcher.
func (m *Mirror) begin(ctx context.Context) (Info, error) {
	info, err := m.look(ctx)
	if err != nil {
		return info, err
	}
	if info.Messages == 0 {
		m.skip(info.Last)
	}
	return info, m.watch(ctx)
}

// Close ends the mirror. After it, Apply is not called.
func (m *Mirror) Close() {
	m.stop(errClosed)
	m.ended.Wait()
	m.mu.Lock()
	f := m.feed
	m.feed, m.closed = nil, true
	m.mu.Unlock()
	if f != nil {
		f.close()
	}
}

// Revision returns the revision up to which everything was applied.
func (m *Mirror) Revision() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position
}

// Info returns the leader's last answer, about a second old.
func (m *Mirror) Info() Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info
}

// Wrong returns an error if the leader had fewer revisions than were applied, about a second ago: the
// bucket was recreated, or the leader was cut off.
func (m *Mirror) Wrong() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

// Lag returns how long the mirror has been behind, or without a successful check; 0: it is current.
func (m *Mirror) Lag() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	unchecked := time.Since(m.checked)
	if unchecked < lostFor {
		unchecked = 0
	}
	if m.behind.IsZero() {
		return unchecked
	}
	return max(unchecked, time.Since(m.behind))
}

// Reach returns when everything up to the revision was applied. Revisions that do not arrive soon are
// read from the leader.
func (m *Mirror) Reach(ctx context.Context, revision uint64) error {
	for {
		at, moved := m.wait(revision)
		if moved == nil {
			return nil
		}
		t := time.NewTimer(soonFor)
		select {
		case <-moved:
			t.Stop()
			continue
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			m.leave(moved)
			return fmt.Errorf("waiting for what was stored last: %w", context.Cause(ctx))
		}
		if m.leave(moved) > at {
			continue // it is moving
		}
		if err := m.catchUp(ctx, revision); err != nil {
			return err
		}
	}
}

// wait returns the position, and a channel that is closed when the mirror reaches the revision; nil: it
// has reached it.
func (m *Mirror) wait(revision uint64) (at uint64, reached chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.position >= revision {
		return m.position, nil
	}
	ch := make(chan struct{})
	m.waiters[ch] = revision
	return m.position, ch
}

// reached returns the position, and whether the mirror is closed.
func (m *Mirror) reached() (at uint64, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position, m.closed
}

// leave ends a wait, and returns the position.
func (m *Mirror) leave(ch chan struct{}) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiters, ch)
	return m.position
}

// moved wakes waiters whose revision is reached. The caller holds the lock.
func (m *Mirror) moved() {
	for ch, want := range m.waiters {
		if m.position >= want {
			close(ch)
			delete(m.waiters, ch)
		}
	}
}

// apply applies the next revision, unless it was applied already.
func (m *Mirror) apply(e Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Revision <= m.position || m.closed {
		return
	}
	m.missed()
	m.o.Apply(e)
	m.position = e.Revision
	if e.Created.After(m.whole) {
		m.whole = e.Created
	}
	m.moved()
}

// missed calls Missed if there was no news for too long. The caller holds the lock.
func (m *Mirror) missed() {
	if m.o.Missed == nil || m.whole.IsZero() {
		return
	}
	if now := m.o.Clock.Now(); now.Sub(m.whole) > m.o.MissedAfter {
		m.log.Info("a watcher was silent for long; checking for expired keys", "since", m.whole)
		m.o.Missed()
		m.whole = now
	}
}

// skip records that there are no further revisions up to the given one.
func (m *Mirror) skip(revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > m.position {
		m.missed()
		m.position = revision
		m.moved()
	}
}

// catchUp reads the missing revisions from the leader. Only one caller does so at a time.
func (m *Mirror) catchUp(ctx context.Context, revision uint64) error {
	select {
	case m.repair <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for what was stored last: %w", context.Cause(ctx))
	}
	defer func() { <-m.repair }()
	for range mostMissed {
		at, closed := m.reached()
		switch {
		case at >= revision:
			return nil
		case closed:
			return errClosed
		}
		asked := time.Now()
		e, err := m.bucket.Next(ctx, at+1)
		switch {
		case err != nil:
			return fmt.Errorf("reading what was missed: %w", err)
		case e.Revision > 0:
			m.apply(e)
			continue
		}
		left, err := m.empty(ctx, at, revision, asked)
		switch {
		case err != nil:
			return err
		case left <= 0:
			m.skip(revision)
			return nil
		}
		if err := Rest(ctx, min(left, emptyAgain)); err != nil {
			return err
		}
	}
	return nil
}

// A hole is a range of revisions that the leader reports as empty.
type hole struct {
	after, upTo uint64
	// since is when the leader first reported it, stays how long the reports must continue, and
	// said the time of the last request.
	since, said time.Time
	stays       time.Duration
}

// empty returns how long the leader must continue to report that a range is empty; asked is the time
// of its last report. An old leader may not know the revisions yet, and a skipped revision is never
// applied. The caller holds the repair token.
func (m *Mirror) empty(ctx context.Context, after, upTo uint64, asked time.Time) (left time.Duration, err error) {
	if h := &m.hole; h.after == after && h.upTo >= upTo && asked.Sub(h.said) < 2*emptyFor {
		h.said = asked
		return h.stays - asked.Sub(h.since), nil
	}
	info, err := m.bucket.Info(ctx)
	if err != nil {
		return 0, err
	}
	if err := m.bucket.reached(info, upTo); err != nil {
		return 0, err
	}
	now := time.Now()
	m.hole = hole{after: after, upTo: info.Last, since: now, said: now}
	if info.Replicas > 1 {
		m.hole.stays = emptyFor
	}
	return max(m.hole.stays, 1), nil
}

// look asks the leader for its last revision.
func (m *Mirror) look(ctx context.Context) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	known, sent := m.Revision(), time.Now()
	info, err := m.bucket.Info(ctx)
	if err != nil {
		return info, err
	}
	wrong := m.bucket.reached(info, known)
	if m.o.Clock != nil {
		m.o.Clock.Heard(info.Now, sent, time.Since(sent))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wrong = wrong; wrong != nil {
		return info, wrong
	}
	m.info, m.checked = info, time.Now()
	if m.whole.IsZero() { // nothing was applied yet
		m.whole = info.Now
	}
	if m.position >= info.Last {
		m.missed()
		m.behind, m.whole = time.Time{}, info.Now
	} else if m.behind.IsZero() {
		m.behind = m.checked
	}
	return info, nil
}

// keep checks about once a second whether revisions were missed.
func (m *Mirror) keep(ctx context.Context) {
	t := time.NewTimer(checkEvery)
	defer t.Stop()
	logged := ""
	for {
		select {
		case <-t.C:
		case <-m.wake:
		case <-ctx.Done():
			return
		}
		err := m.check(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != logged {
			m.log.Warn("cannot follow a bucket; trying again", "error", err)
		}
		if logged = ""; err != nil {
			logged = err.Error()
		}
		t.Reset(checkEvery)
	}
}

// check repairs the mirror if revisions are missing.
func (m *Mirror) check(ctx context.Context) error {
	info, err := m.look(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	f, before := m.feed, m.position
	m.mu.Unlock()
	if !f.dead(m.bucket.js.Conn()) {
		if before >= info.Last {
			return nil
		}
		if err := Rest(ctx, quietFor); err != nil {
			return err
		}
		if now := m.Revision(); now > before {
			m.updateBehind(info.Last)
			return nil // the watcher is slow, but not silent
		}
		m.log.Info("a watcher was silent; reading the missed changes", "revision", before, "last", info.Last)
	}
	// A new watcher may fail where reads succeed.
	return errors.Join(m.read(ctx, info.Last), m.watch(ctx))
}

// read is [Mirror.catchUp] for at most readFor.
func (m *Mirror) read(ctx context.Context, last uint64) error {
	short, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	err := m.catchUp(short, last)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		err = nil // there are many revisions
	}
	m.updateBehind(last)
	return err
}

// updateBehind ends behind if the mirror has reached the revision.
func (m *Mirror) updateBehind(last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.position >= last {
		m.behind = time.Time{}
	}
}

// watch replaces the watcher with a new one that starts at the mirror's position.
func (m *Mirror) watch(ctx context.Context) error {
	f, err := m.bucket.feed(ctx, m.Revision()+1, m)
	if err != nil {
		return err
	}
	m.mu.Lock()
	old := m.feed
	m.feed = f
	m.mu.Unlock()
	if old != nil {
		old.close()
	}
	return nil
}

// poke makes the mirror check at once.
func (m *Mirror) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
