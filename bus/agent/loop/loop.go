package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// The defaults of [Options].
const (
	DefaultMaxIterations = 15
	DefaultFinalRetries  = 3
	DefaultParallel      = 8
	DefaultEventTimeout  = 60 * time.Second
	DefaultEndTimeout    = 5 * time.Second
)

// An Order says whose hooks run first.
type Order int

// The orders. The zero Order is InProcessFirst.
const (
	// InProcessFirst runs the hooks of this program, then those of the fabric, which see the
	// results.
	InProcessFirst Order = iota
	// RemoteFirst runs the hooks of the fabric, then those of this program, which see the
	// results.
	RemoteFirst
)

// An Unreachable says what happens to events that the fabric does not judge.
type Unreachable int

// The policies. The zero Unreachable is Deny.
const (
	// Deny refuses prompts and calls, and fails the query at events of the model. Other events
	// continue.
	Deny Unreachable = iota
	// Allow continues, except at events that a fail-closed hook of the last known configuration
	// guards. The response lists the unjudged events.
	Allow
)

// Options configures a loop.
type Options struct {
	// Agent is the agent's id; required.
	Agent string
	// Model is the model; required.
	Model Model
	// Tools lists the tools that the model may call.
	Tools []Tool
	// System is the system prompt; empty: no system prompt.
	System string
	// Fabric asks the remote hooks; nil: in-process hooks only.
	Fabric *client.Client
	// Order says whose hooks run first.
	Order Order
	// Unreachable is the policy for events without a verdict of the fabric.
	Unreachable Unreachable
	// MaxIterations limits the model calls of a query; 0: DefaultMaxIterations.
	MaxIterations int
	// FinalRetries limits how often new messages delay a query's end. Later messages wait for
	// the next query. 0: DefaultFinalRetries; negative: no delay.
	FinalRetries int
	// Parallel limits concurrent tool calls; 0: DefaultParallel; 1: one after the other.
	Parallel int
	// EventTimeout limits each request to the fabric; 0: DefaultEventTimeout.
	EventTimeout time.Duration
	// EndTimeout limits the work after a query's context ended: hooks after tools that ran, and
	// QueryEnd; 0: DefaultEndTimeout.
	EndTimeout time.Duration
	// Approve decides about a call for which a hook asks for a person's approval. Nil, or an
	// error, refuses the call.
	Approve func(ctx context.Context, c schema.ToolCall, reason string) (bool, error)
	// Output receives the visible output of the agent, one chunk at a time; nil: no output. It
	// must not block.
	Output func(Chunk)
	// Verdict receives each event with its verdict, after all hooks; nil: none is reported.
	// Concurrent tool calls report concurrently. It must not block, and cannot change anything.
	Verdict func(*schema.Event, *schema.Verdict)
	// Session, Orchestrator, Runtime, Cwd and Labels describe the agent in its events. An empty
	// Runtime means "generic".
	Session      string
	Orchestrator string
	Runtime      string
	Cwd          string
	Labels       map[string]string
	// Logger is the logger; nil: slog's default.
	Logger *slog.Logger
}

// A Loop is an agent: a conversation, a model, tools and hooks. It runs one query at a time.
// Other goroutines may add and remove hooks at any time.
type Loop struct {
	opt          Options
	tools        map[string]*Tool
	conversation *conversation
	unread       unreadItems
	running      sync.Mutex // held while a query runs

	mu    sync.Mutex // guards the fields below
	hooks []*Hook    // replaced, never changed in place
	named int        // counts the hooks with a generated name
}

// New returns a loop. Its error lists all faults of the options.
func New(opt Options) (*Loop, error) {
	var errs []error
	if opt.Agent == "" {
		errs = append(errs, errors.New("the agent has no name; write Options.Agent"))
	}
	if opt.Model == nil {
		errs = append(errs, errors.New("there is no model; write Options.Model, a ModelFunc for one"))
	}
	if opt.MaxIterations < 0 || opt.Parallel < 0 || opt.EventTimeout < 0 || opt.EndTimeout < 0 {
		errs = append(errs, errors.New("a bound is negative; write numbers and times from 0, which is the default"))
	}
	opt.Tools, opt.Labels = cloneTools(opt.Tools), maps.Clone(opt.Labels)
	tools, err := checkTools(opt.Tools)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("making a loop: %w", err)
	}
	opt.MaxIterations = or(opt.MaxIterations, DefaultMaxIterations)
	opt.FinalRetries = or(opt.FinalRetries, DefaultFinalRetries)
	opt.Parallel = or(opt.Parallel, DefaultParallel)
	opt.EventTimeout = or(opt.EventTimeout, DefaultEventTimeout)
	opt.EndTimeout = or(opt.EndTimeout, DefaultEndTimeout)
	opt.Runtime = or(opt.Runtime, "generic")
	opt.Logger = cmp.Or(opt.Logger, slog.Default())
	l := &Loop{opt: opt, tools: tools, conversation: &conversation{}}
	l.begin()
	return l, nil
}

// or returns v, or the default if v is zero.
func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// begin starts the conversation with the system prompt and messages.
func (l *Loop) begin(messages ...schema.Message) {
	if l.opt.System != "" {
		messages = append([]schema.Message{{Role: schema.RoleSystem, Content: l.opt.System}}, messages...)
	}
	l.conversation.reset(messages...)
}

// Check returns an error that lists all faults of the hooks.
func (l *Loop) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, h := range l.hooks {
		errs = append(errs, h.fault)
	}
	return errors.Join(errs...)
}

// at returns the hooks of an event, in registration order.
func (l *Loop) at(t schema.EventType) []*Hook {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []*Hook
	for _, h := range l.hooks {
		if h.spec.Event == t && h.fault == nil {
			some = append(some, h)
		}
	}
	return some
}

// History returns a copy of the conversation, which continues from query to query.
func (l *Loop) History() []schema.Message { return l.conversation.messages(nil) }

// NewConversation clears the conversation and the flags. The fabric delivers queued items that
// no model has read again.
func (l *Loop) NewConversation() error {
	if !l.running.TryLock() {
		return ErrRunning
	}
	defer l.running.Unlock()
	l.conversation.clear()
	l.unread.remove(func(lease) bool { return true })
	l.begin()
	return nil
}

// Run answers a prompt. It calls the model, and the tools that the model requests, until a
// final response or another end. QueryEnd happens exactly once for each query. With faulty
// hooks, or while another query runs, Run returns an error and starts no query.
//
// The response says how the query ended, also after an error. The error is nil if the response
// is an answer.
func (l *Loop) Run(ctx context.Context, prompt string) (Response, error) {
	if err := l.Check(); err != nil {
		return Response{}, fmt.Errorf("the hooks of %s are faulty, so that nothing was done: %w", l.opt.Agent, err)
	}
	if !l.running.TryLock() {
		return Response{}, ErrRunning
	}
	defer l.running.Unlock()
	r := &run{loop: l, prompt: prompt}
	stop := l.unread.renew(ctx, l.opt.Fabric, l.opt.Agent)
	defer stop()
	// The fabric delivers items again that did not reach the conversation.
	defer l.unread.remove(func(some lease) bool { return !some.inConversation })
	e := r.query(ctx)
	return r.end(ctx, e)
}
