package sessions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// The buckets: the names of agents in sessions, and sightings of agents.
const (
	Bucket      = "hook_sessions"
	AgentBucket = "hook_agents"
)

// MaxAgents is how many agents of one session can have names.
const MaxAgents = 256

const (
	// sessionFor is how long the names of a session live after the last change, agentFor how long an
	// agent counts as seen lately. It is long, so that operators notice silent agents.
	sessionFor = 14 * 24 * time.Hour
	agentFor   = 24 * time.Hour
	// idleFor is how long an idle agent stays in memory.
	idleFor = 10 * time.Minute
	// The sizes of the buckets, and their least sizes on a small disk.
	maxSessionBytes, minSessionBytes = 32 << 20, 1 << 20
	maxAgentBytes, minAgentBytes     = 16 << 20, 1 << 20
	// maxSession bounds the names of one session, in bytes.
	maxSession = 128 << 10
)

// The errors may be shown to clients.
var (
	// ErrInvalid: the label is invalid.
	ErrInvalid = errors.New("the label is not valid")
	// ErrTaken: another agent of the session has the name.
	ErrTaken = errors.New("the name belongs to another agent")
	// ErrFull: too many agents of the session have names.
	ErrFull = errors.New("the session has too many agents")
	// ErrNoRoom: too many sessions have names.
	ErrNoRoom = errors.New("there is no room for the names of another session")
	// ErrUnavailable: the state could not be read or written in time.
	ErrUnavailable = errors.New("the sessions cannot be reached now")
)

// Options configure the buckets.
type Options struct {
	// Replicas of the buckets; existing buckets can get more, never fewer; 0: 1.
	Replicas int
	// Room is how many bytes the server may store in all, of which new buckets get a share; 0: unlimited.
	Room int64
	// Logger logs what needs no action at once; nil: no log.
	Logger *slog.Logger
}

// Sessions are the agents' anonymised names, and sightings of agents.
type Sessions struct {
	kv.Health

	names *kv.Bucket
	// naming holds a token while an answer is named, so that the callers of a process do not compete.
	naming   chan struct{}
	presence *presence
}

// Named is the name of an answer.
type Named struct {
	// Name is the author's name, such as agent2, which does not change in its session.
	Name string
	// Label is the answer's label, such as agent2.1.
	Label string
}

// An Agent is an agent that was seen lately.
type Agent struct {
	Agent   string `json:"agent"`
	Session string `json:"session,omitzero"`
	// Earlier are its earlier sessions, the latest first.
	Earlier  []string  `json:"earlier,omitzero"`
	Runtime  string    `json:"runtime,omitzero"`
	Version  string    `json:"version,omitzero"`
	Host     string    `json:"host,omitzero"`
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Ended: its session ended, and it sent nothing since. It does not count as silent.
	Ended bool `json:"ended,omitzero"`
}

// Open creates or opens the buckets.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Sessions, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
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
	return &Sessions{Health: names, names: names, naming: make(chan struct{}, 1), presence: newPresence(agents, o.Logger)}, nil
}

// Close stops the background work.
func (s *Sessions) Close(context.Context) error {
	s.presence.close()
	return nil
}
