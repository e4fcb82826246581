package loop

import (
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

// An Order says who is asked first.
type Order int

// The orders. The zero Order is InProcessFirst.
const (
	// InProcessFirst: hooks of this program, then the fabric, which sees what they left.
	InProcessFirst Order = iota
	// RemoteFirst: the fabric, then hooks of this program, which see what it left.
	RemoteFirst
)

// An Unreachable says what happens to what the fabric does not judge.
type Unreachable int

// The policies. The zero Unreachable is Deny.
const (
	// Deny: prompts and calls are denied, the events of the model fail the query, others go on.
	Deny Unreachable = iota
	// Allow: everything goes on but what a fail-closed hook of the last configuration that is
	// known guards; the response says what nobody judged.
	Allow
)

// Options are what a loop is made of.
type Options struct {
	// Agent is who it is; required.
	Agent string
	// Model answers; required.
	Model Model
	// Tools are what the model may ask for.
	Tools []Tool
	// System is the system prompt; empty: there is none.
	System string
	// Fabric has the remote hooks asked; nil: there are only in-process ones.
	Fabric *client.Client
	// Order says who is asked first.
	Order Order
	// Unreachable says what happens when the fabric gives no verdict.
	Unreachable Unreachable
	// MaxIterations bounds the model calls of a query; 0: DefaultMaxIterations.
	MaxIterations int
	// FinalRetries bounds how often messages that came in put off a query's end; from
	// then on they wait for the next one. 0: DefaultFinalRetries; negative: they never do.
	FinalRetries int
	// Parallel bounds the tools that run side by side; 0: DefaultParallel, 1: one after the other.
	Parallel int
	// EventTimeout bounds each question to the fabric; 0: DefaultEventTimeout.
	EventTimeout time.Duration
	// EndTimeout bounds what is still done when a query's context has ended: hooks
	// after tools that ran, and QueryEnd; 0: DefaultEndTimeout.
	EndTimeout time.Duration
	// Approve decides about a call that a hook wants a person to decide about; nil, and
	// an error: no.
	Approve func(ctx context.Context, c schema.ToolCall, reason string) (bool, error)
	// Output gets what somebody who watches the agent sees, a chunk at a time; nil:
	// nobody does. It must not block.
	Output func(Chunk)
	// Verdict gets what came of each event, as the hooks left it; nil: nobody. Events of tools that
	// run side by side come so, too. It must not block, and changes nothing.
	Verdict func(*schema.Event, *schema.Verdict)
	// Session, Orchestrator, Runtime, Cwd and Labels are said of the agent in its
	// events. An empty Runtime is "generic".
	Session      string
	Orchestrator string
	Runtime      string
	Cwd          string
	Labels       map[string]string
	// Logger; nil: slog's default.
	Logger *slog.Logger
}

// A Loop is an agent: a conversation, a model, tools and hooks. It runs one query at a
// time; hooks may be registered and removed at any time.
type Loop struct {
	opt     Options
	tools   map[string]*Tool
	talk    *conversation
	waiting waiting
	running sync.Mutex // held while a query runs

	mu    sync.Mutex // guards what follows
	hooks []*Hook    // never changed in place
	named int        // counts the hooks that got a name
}

// New makes a loop. The error says all that is wrong with the options.
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
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	l := &Loop{opt: opt, tools: tools, talk: &conversation{}}
	l.begin()
	return l, nil
}

// or is v, or its default.
func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// begin begins the conversation.
func (l *Loop) begin(messages ...schema.Message) {
	if l.opt.System != "" {
		messages = append([]schema.Message{{Role: schema.RoleSystem, Content: l.opt.System}}, messages...)
	}
	l.talk.reset(messages...)
}

// Check says all that is wrong with the hooks.
func (l *Loop) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, h := range l.hooks {
		errs = append(errs, h.fault)
	}
	return errors.Join(errs...)
}

// at are the hooks of an event, in registration order.
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

// History is a copy of the conversation. It goes on from query to query.
func (l *Loop) History() []schema.Message { return l.talk.messages(nil) }

// NewConversation forgets what was said, and the flags. What came from the queue and
// no model has read comes again.
func (l *Loop) NewConversation() error {
	if !l.running.TryLock() {
		return ErrRunning
	}
	defer l.running.Unlock()
	l.talk.clear()
	l.waiting.forget(func(lease) bool { return true })
	l.begin()
	return nil
}

// Run answers a prompt: it calls the model, and the tools that it asks for, until there
// is a final response or another end. QueryEnd comes exactly once, whatever happens;
// only faulty hooks, and a loop that runs already, are refused before there is a query.
//
// The response is always the truth; the error is nil if it is an answer.
func (l *Loop) Run(ctx context.Context, prompt string) (Response, error) {
	if err := l.Check(); err != nil {
		return Response{}, fmt.Errorf("the hooks of %s are faulty, so that nothing was done: %w", l.opt.Agent, err)
	}
	if !l.running.TryLock() {
		return Response{}, ErrRunning
	}
	defer l.running.Unlock()
	r := &run{loop: l, prompt: prompt}
	stop := l.waiting.renew(ctx, l.opt.Fabric, l.opt.Agent)
	defer stop()
	// What was brought and came nowhere, as the query ended there, comes again.
	defer l.waiting.forget(func(some lease) bool { return !some.stands })
	e := r.query(ctx)
	return r.end(ctx, e)
}
