package sessions

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The buckets: who is who among the agents of a session, and who was seen when.
const (
	Bucket      = "hook_sessions"
	AgentBucket = "hook_agents"
)

// Errors are sentences that may be shown to whoever asked.
var (
	// ErrInvalid: the label is none.
	ErrInvalid = errors.New("the answer can not be named so")
	// ErrTaken: the name is another agent's of the session.
	ErrTaken = errors.New("the name belongs to another agent")
	// ErrUnavailable: the state could be neither read nor written in time.
	ErrUnavailable = errors.New("the sessions can not be reached now")
)

// Options say how sessions are kept.
type Options struct {
	// Replicas of the buckets, if they are made now; 0 is 1.
	Replicas int
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// Sessions are the agents' anonymised names and who was seen when.
type Sessions struct{}

// Named is what an answer is called.
type Named struct {
	// Name is the author's, such as agent2, stable in its session.
	Name string
	// Label is the answer's, such as agent2.1.
	Label string
}

// An Agent is what is known of an agent that was seen lately.
type Agent struct {
	Agent    string    `json:"agent"`
	Session  string    `json:"session,omitzero"`
	Runtime  string    `json:"runtime,omitzero"`
	Version  string    `json:"version,omitzero"`
	Host     string    `json:"host,omitzero"`
	LastSeen time.Time `json:"last_seen"`
}

var errNotBuilt = errors.New("not built yet")

// Open makes the buckets, or opens those that are there.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Sessions, error) {
	return nil, errNotBuilt
}

// Close stops what runs in the background.
func (s *Sessions) Close(ctx context.Context) error { return errNotBuilt }

// Name names the answer of an agent: by its label, or without one by counting.
// The same label again is the same answer; a label of another agent's name is refused.
func (s *Sessions) Name(ctx context.Context, session, agent, label string) (Named, error) {
	return Named{}, errNotBuilt
}

// Seen notes that an agent was seen. It costs no round trip.
func (s *Sessions) Seen(agent, session string) {}

// Describe adds what an agent said of itself when its session started.
func (s *Sessions) Describe(a Agent) {}

// Agents lists the agents that were seen lately.
func (s *Sessions) Agents(ctx context.Context) ([]Agent, error) { return nil, errNotBuilt }
