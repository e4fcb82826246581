package rounds

import (
	"cmp"
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

// Bucket holds the rounds, one key per agent.
const Bucket = "hook_rounds"

// MaxDenials is how many calls in a row may be denied before the run must end.
const MaxDenials = 10

const (
	// livesFor is how long an unchanged round lives.
	livesFor = 30 * 24 * time.Hour
	// markersFor is the TTL of the marker of a lapsed round.
	markersFor = time.Minute
	// maxBytes is the size of the bucket, minBytes its least size on a small disk.
	maxBytes = 64 << 20
	minBytes = 1 << 20
	// maxRecord bounds one round, which consists mostly of event ids.
	maxRecord = 32 << 10
	// maxEvent bounds the stored part of an event id.
	maxEvent = 256
	// behindFor is how long the mirror may be behind before it is not ready.
	behindFor = 3 * time.Second
)

// The errors may be shown to clients.
var (
	// ErrNone: the agent has no round.
	ErrNone = errors.New("the agent has no round")
	// ErrInvalid: the request is invalid.
	ErrInvalid = errors.New("the round is not valid")
	// ErrUnavailable: the state could not be read or written in time.
	ErrUnavailable = errors.New("the rounds cannot be reached now")
)

// Options configure the bucket.
type Options struct {
	// Replicas of the bucket; an existing bucket can get more, never fewer; 0: 1.
	Replicas int
	// Room is how many bytes the server may store in all, of which a new bucket gets a share; 0: unlimited.
	Room int64
	// Conflict is called after a lost compare-and-set; nil: no call.
	Conflict func()
	// Step is called at each named step. An error ends the work there, as if the process had died. Only tests
	// set it.
	Step func(Step) error
	// Logger logs what needs no action at once; nil: no log.
	Logger *slog.Logger
}

// A Step is a step at which a test can simulate the death of the process.
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
	kv.Health

	o      Options
	bucket *kv.Bucket
	mirror *kv.Mirror
	clock  kv.Clock
	lanes  lanes
	// lives is how long the bucket keeps an unchanged round; 0: without a limit. Rounds are also checked
	// against it in memory, because the marker of a lapsed one may be missed.
	lives time.Duration

	// known are the records by agent. They are never changed, only replaced.
	known sync.Map
	mu    sync.Mutex // ensures that known records are replaced with newer ones only
}

// Open creates or opens the bucket, and follows it until [Rounds.Close].
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Rounds, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
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
	r := &Rounds{Health: b, o: o, bucket: b, lanes: newLanes(), lives: status.TTL()}
	r.mirror, err = b.Follow(ctx, kv.MirrorOptions{Apply: r.apply, Clock: &r.clock, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return r, nil
}

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

// apply applies a revision of the bucket.
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

// learn stores a record that was written here, before the mirror has it.
func (r *Rounds) learn(agent string, rec *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.known.Load(agent); !ok || known.(*record).revision < rec.revision {
		r.known.Store(agent, rec)
	}
}

// record returns the known record of the agent's round; nil: it has no round.
func (r *Rounds) record(agent string) *record {
	if v, ok := r.known.Load(agent); ok && !r.lapsed(v.(*record)) {
		return v.(*record)
	}
	return nil
}

func (r *Rounds) lapsed(rec *record) bool { return r.lives > 0 && r.clock.Age(rec.stored) >= r.lives }

// Get returns the agent's round at this moment, from the mirror; false: it has no round.
func (r *Rounds) Get(agent string) (schema.Round, bool) {
	rec := r.record(agent)
	if rec == nil {
		return schema.Round{}, false
	}
	return rec.round(agent, &r.clock), true
}

// Latest returns the agent's round from the leader; false: it has no round. The mirror may be old if this node was cut off.
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

// SoftDue returns the rounds whose warning is due and, as far as the mirror knows, was not delivered.
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

// Blocked counts the agents that may use only terminal tools.
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
