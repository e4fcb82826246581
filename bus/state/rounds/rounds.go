package rounds

import (
	"context"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/schema"
)

// Bucket holds one key per agent: its round.
const Bucket = "hook_rounds"

// MaxDenials is how many calls may be refused one after the other before the
// run is to end.
const MaxDenials = 10

// Errors are sentences that may be shown to whoever asked.
var (
	// ErrNone: the agent has no round.
	ErrNone = errors.New("the agent has no round")
	// ErrInvalid: the request makes no sense.
	ErrInvalid = errors.New("the round can not be started so")
	// ErrUnavailable: the state could be neither read nor written in time.
	ErrUnavailable = errors.New("the rounds can not be reached now")
)

// Options say how rounds are kept.
type Options struct {
	// Replicas of the bucket, if it is made now; 0 is 1.
	Replicas int
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
type Rounds struct{}

var errNotBuilt = errors.New("not built yet")

// Open makes the bucket, or opens the one that is there, loads the mirror and
// keeps it until [Rounds.Close].
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Rounds, error) {
	return nil, errNotBuilt
}

// Close stops following.
func (r *Rounds) Close(ctx context.Context) error { return errNotBuilt }

// Ready returns nil if the mirror follows the bucket, or what is wrong.
func (r *Rounds) Ready() error { return errNotBuilt }

// Get is the agent's round as it is now, from the mirror; false: it has none.
func (r *Rounds) Get(agent string) (schema.Round, bool) { return schema.Round{}, false }

// Start begins the agent's next round. All that was counted begins anew.
func (r *Rounds) Start(ctx context.Context, agent string, req *schema.RoundRequest) (schema.Round, error) {
	return schema.Round{}, errNotBuilt
}

// WrapUp asks the agent to come to an end now. An agent without a round gets one
// without limits. It reports false if that was asked in this round before.
func (r *Rounds) WrapUp(ctx context.Context, agent string, req *schema.RoundRequest) (schema.Round, bool, error) {
	return schema.Round{}, false, errNotBuilt
}

// Warned notes that the soft warning of the round that began at revision start
// was handed over: its grace begins. For another round, or a second time, it
// changes nothing.
func (r *Rounds) Warned(ctx context.Context, agent string, start uint64) error { return errNotBuilt }

// Denied counts a refused call, once per event, and returns the round as it is then.
func (r *Rounds) Denied(ctx context.Context, agent string, start uint64, event string) (schema.Round, error) {
	return schema.Round{}, errNotBuilt
}

// Passed notes that a call was let through: refused calls before it do not
// count any more. Without such it costs nothing.
func (r *Rounds) Passed(ctx context.Context, agent string) error { return errNotBuilt }

// SoftDue are the rounds whose agents are to be warned and, as far as the mirror
// knows, were not.
func (r *Rounds) SoftDue() []schema.Round { return nil }
