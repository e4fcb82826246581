package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// checkEvery is how often the leader is asked whether something was missed: a
	// watcher is silent for seconds when a leader leaves.
	checkEvery = time.Second
	// quietFor is how long what is known to be missing may still come by itself.
	quietFor = 250 * time.Millisecond
	// soonFor is the same where somebody waits for it.
	soonFor = 20 * time.Millisecond
	// lookFor bounds the question to the leader: one that is asked while a leader leaves
	// may never be answered, and the next leader knows nothing of it.
	lookFor = 2 * checkEvery
	// readFor bounds how long what was missed is read one by one before the bucket is
	// watched anew, which brings the rest at once.
	readFor = time.Second
	// lostFor is after what time without a check that worked a mirror is behind.
	lostFor = 3 * checkEvery
	// emptyFor is how long whoever is asked must say that nothing is left before it counts,
	// where several servers keep the bucket. After a cut one that takes himself for the leader
	// still answers until he hears of the new one, which speaks to him once a second.
	emptyFor = 2 * time.Second
	// emptyAgain is after what time he is asked again.
	emptyAgain = 100 * time.Millisecond
	// mostMissed bounds how many revisions are read one by one before the bucket is
	// watched anew instead.
	mostMissed = 1000
)

// MirrorOptions say how a bucket is followed.
type MirrorOptions struct {
	// Apply is called for each revision of the bucket, in their order, each once,
	// one after the other. Revisions that were replaced before they could be seen
	// are skipped. It must not block, and not call the mirror.
	Apply func(Entry)
	// Missed is called, as Apply is, before anything is told that is newer than a time
	// without news of MissedAfter: keys may have ended in it whose markers lapsed, so
	// that their ends are never told. nil: nobody asks. It needs a Clock.
	Missed      func()
	MissedAfter time.Duration
	// Clock hears what the leader's clock shows; nil: nobody does.
	Clock *Clock
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// A Mirror follows all changes of a bucket, until it is closed.
type Mirror struct {
	bucket *Bucket
	o      MirrorOptions
	log    *slog.Logger
	stop   context.CancelCauseFunc
	ended  sync.WaitGroup
	wake   chan struct{} // has the mirror look at once
	repair chan struct{} // holds a token while missing revisions are read
	hole   hole          // who has that token guards it

	mu sync.Mutex // guards what follows, and the order of Apply
	// position is up to where everything is known.
	position uint64
	// waiters are woken when the position changes.
	waiters map[chan struct{}]uint64
	// info is the leader's last word, checked when that was asked, behind since when
	// something is missing; zero: nothing is.
	info    Info
	checked time.Time
	behind  time.Time
	// whole is up to when, by the server's clock, it is known that nothing was missed.
	whole  time.Time
	feed   *feed
	closed bool
	// wrong is set where the leader knows less than was told.
	wrong error
}

var errClosed = errors.New("the mirror was closed")

// Follow returns a mirror that has caught up with all that was in the bucket
// when it was called.
func (b *Bucket) Follow(ctx context.Context, o MirrorOptions) (*Mirror, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
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

// begin has the bucket watched.
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

// Close ends the mirror. Nothing is applied after it has returned.
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

// Revision is up to where everything is known.
func (m *Mirror) Revision() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position
}

// Info is the leader's last word about the bucket, about a second old.
func (m *Mirror) Info() Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info
}

// Wrong is what is wrong if the leader knows less than was told, as of a second
// ago: the bucket was made anew, or the leader was cut off.
func (m *Mirror) Wrong() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

// Lag is how long the mirror has been behind, or has not known whether it is;
// 0: it is not.
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

// Reach returns when everything up to the revision is known. What does not come
// by itself at once is read from the leader.
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
			continue // it comes by itself
		}
		if err := m.catchUp(ctx, revision); err != nil {
			return err
		}
	}
}

// wait returns where the mirror is, and what is closed when it is at the
// revision; nil: it is.
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

// reached returns where the mirror is, and whether that is for good.
func (m *Mirror) reached() (at uint64, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position, m.closed
}

// leave ends a wait, and returns where the mirror is.
func (m *Mirror) leave(ch chan struct{}) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiters, ch)
	return m.position
}

// moved wakes those whose revision is there. The caller holds the lock.
func (m *Mirror) moved() {
	for ch, want := range m.waiters {
		if m.position >= want {
			close(ch)
			delete(m.waiters, ch)
		}
	}
}

// apply takes over the next revision, unless it is known.
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

// missed tells if there was no news for so long that ends may have been missed.
// The caller holds the lock.
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

// skip notes that nothing that is not known is there up to the revision.
func (m *Mirror) skip(revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > m.position {
		m.missed()
		m.position = revision
		m.moved()
	}
}

// catchUp reads what is missing up to the revision from the leader. One does it
// at a time.
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

// A hole is a part of the bucket in which whoever was asked says that nothing is left.
type hole struct {
	after, upTo uint64
	// since is when somebody was known to know all of it, stays how long the others must
	// say so from then on, and said when they were asked last.
	since, said time.Time
	stays       time.Duration
}

// empty returns for how long it must still be said that nothing is left of what comes
// after one revision, up to another, as somebody did who was asked then. He may have been
// another leader, who did not know of it: what is skipped is never told. The token of
// those who read what is missing is held.
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

// look asks the leader how far it is.
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
	if m.whole.IsZero() { // nothing was told yet
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

// keep looks about once a second whether something was missed.
func (m *Mirror) keep(ctx context.Context) {
	t := time.NewTimer(checkEvery)
	defer t.Stop()
	said := ""
	for {
		select {
		case <-t.C:
		case <-m.wake:
		case <-ctx.Done():
			return
		}
		err := m.check(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			m.log.Warn("cannot follow a bucket; trying again", "error", err)
		}
		if said = ""; err != nil {
			said = err.Error()
		}
		t.Reset(checkEvery)
	}
}

// check mends the mirror if something is missing.
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
			m.settled(info.Last)
			return nil // slow, but not silent
		}
		m.log.Info("a watcher was silent; reading the missed changes", "revision", before, "last", info.Last)
	}
	// A watcher cannot always be made where what it would tell can be read.
	return errors.Join(m.read(ctx, info.Last), m.watch(ctx))
}

// read is [Mirror.catchUp] for a short while.
func (m *Mirror) read(ctx context.Context, last uint64) error {
	short, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	err := m.catchUp(short, last)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		err = nil // there is much
	}
	m.settled(last)
	return err
}

// settled notes that the mirror is not behind if it has reached the revision.
func (m *Mirror) settled(last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.position >= last {
		m.behind = time.Time{}
	}
}

// watch has the bucket watched from where the mirror is, in the place of the
// watcher before.
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

// poke has the mirror look at once.
func (m *Mirror) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
