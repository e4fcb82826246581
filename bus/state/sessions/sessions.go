package sessions

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// The buckets: who is who among the agents of a session, and who was seen when.
const (
	Bucket      = "hook_sessions"
	AgentBucket = "hook_agents"
)

// MaxAgents is how many agents of one session can have names.
const MaxAgents = 256

const (
	// sessionFor is how long the names of a session are kept after the last answer
	// that brought something new, agentFor how long an agent counts as seen lately:
	// one that is silent has to be seen a while longer than it speaks.
	sessionFor = 14 * 24 * time.Hour
	agentFor   = 24 * time.Hour
	// idleFor is how long an agent is remembered here that says nothing.
	idleFor = 10 * time.Minute
	// The buckets' room, and what they must have if there is not so much.
	maxSessionBytes, minSessionBytes = 32 << 20, 1 << 20
	maxAgentBytes, minAgentBytes     = 16 << 20, 1 << 20
	// maxSession bounds the names of one session.
	maxSession = 128 << 10
)

// Errors are sentences that may be shown to whoever asked.
var (
	// ErrInvalid: the label is none.
	ErrInvalid = errors.New("the label is not valid")
	// ErrTaken: the name is another agent's of the session.
	ErrTaken = errors.New("the name belongs to another agent")
	// ErrFull: too many agents of the session have names.
	ErrFull = errors.New("the session has too many agents")
	// ErrNoRoom: too many sessions have names.
	ErrNoRoom = errors.New("there is no room for the names of another session")
	// ErrUnavailable: the state could be neither read nor written in time.
	ErrUnavailable = errors.New("the sessions cannot be reached now")
)

// Options say how sessions are kept.
type Options struct {
	// Replicas of the buckets; those that are there get more, but never less; 0 is 1.
	Replicas int
	// Room is how much the server may store of everything together, of which buckets
	// that are made take their share; 0: plenty.
	Room int64
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// Sessions are the agents' anonymised names and who was seen when.
type Sessions struct {
	names *kv.Bucket
	// naming is held by who names an answer: one at a time, so that the callers of
	// a process do not race each other.
	naming   chan struct{}
	presence *presence
}

// Named is what an answer is called.
type Named struct {
	// Name is the author's, such as agent2, stable in its session.
	Name string
	// Label is the answer's, such as agent2.1.
	Label string
}

// An Agent is what is known of an agent that was seen lately.
type Agent struct {
	Agent   string `json:"agent"`
	Session string `json:"session,omitzero"`
	// Earlier are the sessions in which it was seen before, the latest first.
	Earlier  []string  `json:"earlier,omitzero"`
	Runtime  string    `json:"runtime,omitzero"`
	Version  string    `json:"version,omitzero"`
	Host     string    `json:"host,omitzero"`
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Ended: its session ended, and nothing was heard since. It is not silent.
	Ended bool `json:"ended,omitzero"`
}

// Open makes the buckets, or opens those that are there.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Sessions, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	names, err := kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "the names of the hook fabric's agents, by their sessions", Replicas: max(o.Replicas, 1),
		Storage: jetstream.FileStorage, History: 1, TTL: sessionFor, MaxBytes: kv.Share(o.Room, 64, maxSessionBytes, minSessionBytes), MaxValueSize: maxSession,
	}, minSessionBytes)
	if err != nil {
		return nil, err
	}
	agents, err := kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: AgentBucket, Description: "the agents that the hook fabric saw lately", Replicas: max(o.Replicas, 1),
		Storage: jetstream.MemoryStorage, History: 1, TTL: agentFor, MaxBytes: maxAgentBytes, MaxValueSize: maxSession,
	}, minAgentBytes)
	if err != nil {
		return nil, err
	}
	if err := agents.DiscardOld(ctx); err != nil {
		o.Logger.Warn("the bucket "+AgentBucket+" refuses new agents when it is full, instead of removing the ones that have been silent the longest", "error", err)
	}
	return &Sessions{names: names, naming: make(chan struct{}, 1), presence: newPresence(agents, o.Logger)}, nil
}

// Unstored returns why nothing was stored of what was written last; nil: it was.
func (s *Sessions) Unstored() error { return s.names.Unstored() }

// Anew forgets that: the server was mended.
func (s *Sessions) Anew() { s.names.Anew() }

// Close stops what runs in the background.
func (s *Sessions) Close(context.Context) error {
	s.presence.close()
	return nil
}
