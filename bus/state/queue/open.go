package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/nats-io/nats.go/jetstream"
)

// The limits of the buckets.
const (
	itemBytes, leastItemBytes     = 1 << 30, 32 << 20
	cursorBytes, leastCursorBytes = 256 << 20, 16 << 20
	// cursorsFor is how long a cursor or a mark lives without a write, and freshFor how old a cursor may be
	// when its agent is seen. No item for several agents lives as long.
	cursorsFor = 30 * 24 * time.Hour
	freshFor   = 7 * 24 * time.Hour
	// lapsedFor is the TTL of markers of lapsed keys, madeUpFor that of the ends of items with generated
	// names, which are never repeated.
	lapsedFor = 2 * time.Second
	madeUpFor = time.Minute
	// missedAfter is the time without news after which an item may have ended unnoticed.
	missedAfter = madeUpFor / 2
	// workers is how many goroutines run the jobs of each kind.
	workers = 16
	// behindFor is how long the mirrors may be behind before the queue is not ready.
	behindFor = 10 * time.Second
)

// A Queue is the durable queue of items for agents, with a mirror in memory.
type Queue struct {
	o       Options
	watch   Watch
	log     *slog.Logger
	id      string // of this handle, in its writes
	items   follower
	cursors follower
	clock   *kv.Clock
	index   *index
	agents  *agents
	marks   *marks
	usage   usage

	jobs     chan func() // what runs in the background
	givings  chan func() // the same, of claims that are given back, which may take long
	suspects suspects
	// marked is when the marks were written last; only the sweep uses it.
	marked time.Time
	// loggedFor is the last logged time for which ends are remembered; only the sweep uses it.
	loggedFor time.Duration
	stop      context.CancelCauseFunc
	life      context.Context //nolint:containedctx // what runs in the background lives as long as the queue
	work      sync.WaitGroup
	closed    atomic.Bool
}

// A follower is a bucket and its mirror.
type follower struct {
	*kv.Bucket
	mirror *kv.Mirror
}

var errClosed = errors.New("the queue was closed")

// Open creates or opens the buckets, and follows them until [Queue.Close]. It returns when the mirrors have caught up.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Queue, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	q := &Queue{
		o: o, watch: o.Watch, log: o.Logger, id: uuid.NewString(), clock: new(kv.Clock),
		index: newIndex(), agents: &agents{all: make(map[string]*agent)}, marks: newMarks(o.Dedup),
		jobs: make(chan func(), 4096), givings: make(chan func(), 1024), suspects: suspects{all: make(map[*agent]time.Time)},
	}
	q.life, q.stop = context.WithCancelCause(context.Background())
	if err := q.open(ctx, js); err != nil {
		q.end()
		return nil, err
	}
	for range workers {
		q.work.Go(func() { q.run(q.jobs) })
		q.work.Go(func() { q.run(q.givings) })
	}
	q.work.Go(q.sweep)
	return q, nil
}

// later adds a job, and reports false if too many wait.
func later(jobs chan<- func(), job func()) bool {
	select {
	case jobs <- job:
		return true
	default:
		return false
	}
}

// run runs jobs until the queue is closed.
func (q *Queue) run(jobs <-chan func()) {
	for {
		select {
		case job := <-jobs:
			job()
		case <-q.life.Done():
			return
		}
	}
}

func (q *Queue) open(ctx context.Context, js jetstream.JetStream) (err error) {
	replicas := max(q.o.Replicas, 1)
	q.items.Bucket, err = kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: ItemBucket, Description: "what waits for agents of the hook fabric",
		Replicas: replicas, Storage: jetstream.FileStorage, History: 1,
		MaxBytes: kv.Share(q.o.Room, 8, itemBytes, leastItemBytes), MaxValueSize: MaxValue, LimitMarkerTTL: lapsedFor,
	}, leastItemBytes)
	if err != nil {
		return err
	}
	q.cursors.Bucket, err = kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: CursorBucket, Description: "what agents of the hook fabric have got",
		Replicas: replicas, Storage: jetstream.FileStorage, History: 1, TTL: cursorsFor,
		MaxBytes: kv.Share(q.o.Room, 16, cursorBytes, leastCursorBytes), MaxValueSize: MaxValue, LimitMarkerTTL: lapsedFor,
	}, leastCursorBytes)
	if err != nil {
		return err
	}
	// The cursors first: they may have items that are not known yet.
	if q.cursors.mirror, err = q.cursors.Follow(ctx, kv.MirrorOptions{Apply: q.applyCursor, Clock: q.clock, Logger: q.log}); err != nil {
		return err
	}
	q.items.mirror, err = q.items.Follow(ctx, kv.MirrorOptions{
		Apply: q.applyItem, Missed: q.index.doubtAll, MissedAfter: missedAfter, Clock: q.clock, Logger: q.log,
	})
	if err != nil {
		return err
	}
	return q.rewind(ctx)
}

// complete sets the defaults.
func (o *Options) complete() error {
	o.Dedup = cmp.Or(o.Dedup, DefaultDedup)
	if o.Dedup < lapsedFor {
		return fmt.Errorf("ends are remembered for %v; write at least %v", o.Dedup, lapsedFor)
	}
	o.MaxPerScope = cmp.Or(o.MaxPerScope, 10_000)
	o.MaxItems = cmp.Or(o.MaxItems, 1_000_000)
	o.MaxEnds = cmp.Or(o.MaxEnds, 1_000_000)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Watch.complete()
	return nil
}

// Unstored returns the error of the last write; nil: it succeeded.
func (q *Queue) Unstored() error { return errors.Join(q.items.Unstored(), q.cursors.Unstored()) }

// ClearUnstored forgets that error, after the server was restarted.
func (q *Queue) ClearUnstored() {
	q.items.ClearUnstored()
	q.cursors.ClearUnstored()
}

// Close stops the background work.
func (q *Queue) Close(ctx context.Context) error {
	if q.closed.Swap(true) {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		q.end()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the queue was still stopping: %w", context.Cause(ctx))
	}
}

func (q *Queue) end() {
	q.stop(errClosed)
	q.work.Wait()
	if q.o.Step == nil && q.items.mirror != nil && q.cursors.mirror != nil {
		q.sayRest() // not after the simulated death of a test
	}
	for _, f := range []follower{q.items, q.cursors} {
		if f.mirror != nil {
			f.mirror.Close()
		}
	}
}

// sayRest writes what is usually written in the background: agents that were seen, and marks.
func (q *Queue) sayRest() {
	ctx := context.Background()
	if err := errors.Join(q.writeUnsaid(ctx), q.raiseAll(ctx, q.clock.Now())); err != nil {
		q.log.Warn("cannot store the latest agents and ended items at the close of the queue", "error", err)
	}
}

// Ready returns nil if the mirrors follow the buckets, or what is wrong.
func (q *Queue) Ready() error {
	if q.closed.Load() {
		return errClosed
	}
	if lag := q.lag(); lag > behindFor {
		return fmt.Errorf("the mirror of the queue has been behind for %v", lag.Round(time.Second))
	}
	return nil
}

func (q *Queue) lag() time.Duration { return max(q.items.mirror.Lag(), q.cursors.mirror.Lag()) }

// applyItem applies a revision of the items' bucket.
func (q *Queue) applyItem(e kv.Entry) {
	defer q.index.advance(e.Revision)
	if e.Kind != kv.Put {
		q.index.end(e.Key, e.Revision, false)
		q.marks.ended(e.Key, e.Created)
		return
	}
	it, err := decode(e)
	if err != nil {
		q.log.Error("an item was skipped", "error", err)
		return
	}
	own := q.index.put(it)
	if own == nil || own.kind != forAgent {
		return
	}
	if a := q.agents.find(it.Scope.Agent); a != nil && a.cursor.Load().done(own) {
		q.suspects.add(a)
	}
}

// applyCursor applies a revision of the cursors' bucket.
func (q *Queue) applyCursor(e kv.Entry) {
	if strings.Contains(e.Key, ".") {
		q.marks.take(e)
		return
	}
	if e.Kind != kv.Put {
		q.agents.forget(e.Key, e.Revision)
		return
	}
	a, err := q.agents.take(e, q.clock)
	if err != nil {
		q.log.Error("cannot read a cursor; its agent receives no messages", "error", err)
	}
	if a != nil && q.index.any(a.scope) {
		q.suspects.add(a)
	}
}
