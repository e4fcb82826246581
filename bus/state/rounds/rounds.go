package rounds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// Bucket holds one key per agent: its round.
const Bucket = "hook_rounds"

// MaxDenials is how many calls may be refused one after the other before the
// run is to end.
const MaxDenials = 10

const (
	// livesFor is how long a round is kept that nothing happens to.
	livesFor = 30 * 24 * time.Hour
	// markersFor is how long it shows that a round has lapsed.
	markersFor = time.Minute
	// The bucket's room: what it takes, and what it must have on a small disk.
	maxBytes = 64 << 20
	minBytes = 1 << 20
	// maxRecord bounds one round: its denials' event ids are the most of it.
	maxRecord = 32 << 10
	// maxEvent is the longest event id that is counted by.
	maxEvent = 256
	// behindFor is how long a mirror may be behind and still be ready.
	behindFor = 3 * time.Second
)

// Errors are sentences that may be shown to whoever asked.
var (
	// ErrNone: the agent has no round.
	ErrNone = errors.New("the agent has no round")
	// ErrInvalid: the request makes no sense.
	ErrInvalid = errors.New("the round is not valid")
	// ErrUnavailable: the state could be neither read nor written in time.
	ErrUnavailable = errors.New("the rounds cannot be reached now")
)

// Options say how rounds are kept.
type Options struct {
	// Replicas of the bucket; one that is there gets more, but never less; 0 is 1.
	Replicas int
	// Room is how much the server may store of everything together, of which buckets
	// that are made take their share; 0: plenty.
	Room int64
	// Conflict hears of a compare-and-set that was lost; nil: nobody does.
	Conflict func()
	// Step is called at each named step; an error ends the work there, as if the
	// process had died. Only tests set it.
	Step func(Step) error
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// A Step is a point at which a process may die.
type Step string

// The steps of a round.
const (
	StepStartStored  Step = "round.start.stored"
	StepWarnedBegun  Step = "round.warned.begun"
	StepWarnedStored Step = "round.warned.stored"
	StepDenialBegun  Step = "round.denial.begun"
	StepDenialStored Step = "round.denial.stored"
)

// Rounds are the agents' rounds, with a mirror in memory.
type Rounds struct {
	o      Options
	bucket *kv.Bucket
	mirror *kv.Mirror
	clock  kv.Clock
	lanes  lanes
	// lives is how long the bucket keeps a round that nothing happens to; 0: for
	// ever. The marker of its end may be missed.
	lives time.Duration

	// known are the records by agent. They are never changed, only replaced.
	known sync.Map
	mu    sync.Mutex // guards that known records are replaced by newer ones only
}

// Open makes the bucket, or opens the one that is there, loads the mirror and
// keeps it until [Rounds.Close].
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Rounds, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Conflict == nil {
		o.Conflict = func() {}
	}
	if o.Step == nil {
		o.Step = func(Step) error { return nil }
	}
	b, err := kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "the rounds of the hook fabric's agents", Replicas: max(o.Replicas, 1),
		Storage: jetstream.FileStorage, History: 1, TTL: livesFor, LimitMarkerTTL: markersFor,
		MaxBytes: kv.Share(o.Room, 32, maxBytes, minBytes), MaxValueSize: maxRecord,
	}, minBytes)
	if err != nil {
		return nil, err
	}
	status, err := b.Store().Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening the bucket %s: %w", Bucket, err)
	}
	r := &Rounds{o: o, bucket: b, lanes: newLanes(), lives: status.TTL()}
	r.mirror, err = b.Follow(ctx, kv.MirrorOptions{Apply: r.apply, Clock: &r.clock, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Unstored returns why nothing was stored of what was written last; nil: it was.
func (r *Rounds) Unstored() error { return r.bucket.Unstored() }

// Anew forgets that: the server was mended.
func (r *Rounds) Anew() { r.bucket.Anew() }

// Close stops following.
func (r *Rounds) Close(context.Context) error {
	r.mirror.Close()
	return nil
}

// Ready returns nil if the mirror follows the bucket, or what is wrong.
func (r *Rounds) Ready() error {
	if lag := r.mirror.Lag(); lag >= behindFor {
		return fmt.Errorf("this broker's copy of the rounds is %v old", lag.Round(time.Second))
	}
	return nil
}

// apply takes over what the bucket holds.
func (r *Rounds) apply(e kv.Entry) {
	agent, err := bus.ParseToken(e.Key)
	if err != nil {
		return
	}
	rec := read(e)
	if rec == nil && e.Kind == kv.Put {
		r.o.Logger.Error("the round of an agent cannot be read; start another one", "agent", agent, "bucket", Bucket, "revision", e.Revision)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known.Load(agent)
	switch {
	case ok && known.(*record).revision > e.Revision:
	case rec == nil:
		r.known.Delete(agent)
	default:
		r.known.Store(agent, rec)
	}
}

// learn takes over what was written here, before the bucket says so.
func (r *Rounds) learn(agent string, rec *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.known.Load(agent); !ok || known.(*record).revision < rec.revision {
		r.known.Store(agent, rec)
	}
}

// record is what is known of the agent's round; nil: it has none.
func (r *Rounds) record(agent string) *record {
	if v, ok := r.known.Load(agent); ok && !r.lapsed(v.(*record)) {
		return v.(*record)
	}
	return nil
}

func (r *Rounds) lapsed(rec *record) bool { return r.lives > 0 && r.clock.Age(rec.stored) >= r.lives }

// Get is the agent's round as it is now, from the mirror; false: it has none.
func (r *Rounds) Get(agent string) (schema.Round, bool) {
	rec := r.record(agent)
	if rec == nil {
		return schema.Round{}, false
	}
	return rec.round(agent, &r.clock), true
}

// Latest is the agent's round as the leader has it; false: it has none. What the
// mirror knows may be old, where its node was cut off.
func (r *Rounds) Latest(ctx context.Context, agent string) (schema.Round, bool, error) {
	key, err := bus.Token(agent)
	if err != nil {
		return schema.Round{}, false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	e, err := r.bucket.Last(ctx, key)
	if err != nil {
		return schema.Round{}, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	rec := read(e)
	if rec == nil {
		return schema.Round{}, false, nil
	}
	r.learn(agent, rec)
	return rec.round(agent, &r.clock), true, nil
}

// SoftDue are the rounds whose agents are to be warned and, as far as the mirror
// knows, were not.
func (r *Rounds) SoftDue() []schema.Round {
	var due []schema.Round
	r.known.Range(func(agent, rec any) bool {
		if rec := rec.(*record); !rec.Warned && !r.lapsed(rec) {
			if round := rec.round(agent.(string), &r.clock); round.SoftDue() {
				due = append(due, round)
			}
		}
		return true
	})
	return due
}

// Blocked counts the agents that may only use terminal tools.
func (r *Rounds) Blocked() (n int) {
	r.known.Range(func(agent, rec any) bool {
		if rec := rec.(*record); !r.lapsed(rec) {
			if round := rec.round(agent.(string), &r.clock); round.Blocked() {
				n++
			}
		}
		return true
	})
	return n
}
