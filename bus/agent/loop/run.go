package loop

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// A run is one query.
type run struct {
	loop   *Loop
	prompt string
	// iteration counts the model calls, from 1; 0: before the first.
	iteration int
	// putOff counts the ends that messages which came in put off.
	putOff int
	// last is why the model is asked once more.
	last string

	mu     sync.Mutex // guards what follows, and is held while a chunk is shown
	errors []string
}

// An ending is how a query ends; nil: it goes on.
type ending struct {
	how     Ending
	err     error
	reason  string
	message *schema.Message
}

// event is what is said at every moment.
func (r *run) event(t schema.EventType) schema.Event {
	o := &r.loop.opt
	e := schema.Event{HookType: t, AgentID: o.Agent, SessionID: o.Session, OrchestratorID: o.Orchestrator,
		Runtime: o.Runtime, Cwd: o.Cwd, Labels: o.Labels, Timestamp: time.Now(), Iteration: r.iteration}
	if id, err := uuid.NewV7(); err == nil {
		e.EventID = id.String() // otherwise the client tries again, and says why not
	}
	return e
}

// ask asks the fabric about a moment as it is now.
func (r *run) ask(ctx context.Context, m *moment) (*schema.Verdict, error) {
	e := m.event
	if flags := r.loop.talk.flagged(); len(flags) > 0 {
		e.Flags = asJSON(flags)
	}
	ctx, cancel := context.WithTimeout(ctx, r.loop.opt.EventTimeout)
	defer cancel()
	return r.loop.opt.Fabric.Ask(ctx, &e, client.History(m.history))
}

// judge asks everybody about a moment and reports how the query ends by that.
func (r *run) judge(ctx context.Context, m *moment) *ending {
	m.judge(ctx)
	v := &m.verdict
	r.note(v.HookErrors)
	if r.loop.opt.Verdict != nil {
		event, verdict := m.event, *v // whoever looks on decides nothing
		r.loop.opt.Verdict(&event, &verdict)
	}
	switch {
	case ctx.Err() != nil:
		return cancelled(ctx)
	case v.Terminate != nil:
		return &ending{how: Terminated, err: because(ErrTerminated, v.Terminate.Reason), reason: v.Terminate.Reason}
	case v.Decision == schema.Fail:
		return &ending{how: Failed, err: because(ErrFailed, v.Reason), reason: v.Reason}
	}
	return nil
}

// note keeps what went wrong with hooks.
func (r *run) note(errs []string) {
	if len(errs) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range errs {
		r.loop.opt.Logger.Warn("a hook failed", "agent", r.loop.opt.Agent, "error", e)
		if len(r.errors) < mostErrors {
			r.errors = append(r.errors, e)
		}
	}
}

// because is an error with the reason that somebody gave.
func because(err error, reason string) error {
	if reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, reason)
}

func cancelled(ctx context.Context) *ending {
	return &ending{how: Cancelled, err: fmt.Errorf("%w: %w", ErrCancelled, context.Cause(ctx))}
}

// query runs the query to its end. A panic of what the loop is given is an end, too.
func (r *run) query(ctx context.Context) (e *ending) {
	defer func() {
		if p := recover(); p != nil {
			r.loop.opt.Logger.Error("a query panicked", "agent", r.loop.opt.Agent, "panic", p, "stack", string(debug.Stack()))
			e = &ending{how: Failed, err: fmt.Errorf("the query panicked: %v", p)}
		}
	}()
	if e := r.submit(ctx); e != nil {
		return e
	}
	for r.iteration = 1; r.iteration <= r.loop.opt.MaxIterations; r.iteration++ {
		if e := r.iterate(ctx); e != nil {
			return e
		}
	}
	r.iteration = r.loop.opt.MaxIterations
	return &ending{how: MaxIterations, err: fmt.Errorf("%w: after %d of them %s", ErrMaxIterations, r.iteration, r.last)}
}

// submit is the prompt's way into the conversation.
func (r *run) submit(ctx context.Context) *ending {
	m := r.at(schema.UserPromptSubmit, nil, nil)
	m.event.Prompt = r.prompt
	if e := r.judge(ctx, m); e != nil {
		return e
	}
	if v := &m.verdict; v.Decision == schema.Deny {
		return &ending{how: Rejected, err: because(ErrRejected, v.Reason), reason: v.Reason}
	}
	if m.verdict.Restart != nil {
		r.restart(&m.verdict)
		r.inject(nil, &m.verdict)
		return nil
	}
	r.loop.talk.add(nil, schema.Message{Role: schema.RoleUser, Content: r.prompt})
	r.inject(nil, &m.verdict)
	return nil
}

// inject hands over injections as messages of their own. Those of an aside stand in
// the conversation when the aside does.
func (r *run) inject(to *aside, v *schema.Verdict) {
	for i := range v.Injections {
		in := &v.Injections[i]
		if first(in.Content) == "" {
			continue
		}
		r.loop.talk.add(to, schema.Message{Role: schema.RoleUser, Content: in.Content})
		r.sayInjection(in)
	}
	if to == nil {
		r.loop.waiting.stands(v.EventID)
	}
}

// restart begins the conversation anew: the system prompt, the query's own prompt, and
// what the verdict brings.
func (r *run) restart(v *schema.Verdict) {
	text := first(v.Restart.Content, v.Restart.Reason)
	messages := []schema.Message{{Role: schema.RoleUser, Content: r.prompt}}
	if text != "" {
		messages = append(messages, schema.Message{Role: schema.RoleUser, Content: text})
	}
	r.loop.waiting.forget(func(l lease) bool { return l.event != v.EventID })
	r.loop.begin(messages...)
	r.last = "the fabric restarted the turn" + after(": ", v.Restart.Reason)
	r.say(Chunk{Kind: RestartChunk, Text: text})
}

// after is text behind a separator, or nothing.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// iterate is one model call with what comes before and after it.
func (r *run) iterate(ctx context.Context) *ending {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	m := r.at(schema.BeforeLLMCall, nil, nil)
	if e := r.judge(ctx, m); e != nil {
		return e
	}
	switch {
	case m.verdict.Restart != nil:
		r.restart(&m.verdict)
	case m.verdict.Decision == schema.Stop:
		return r.stopped(m)
	}
	r.inject(nil, &m.verdict)
	message, e := r.call(ctx)
	if e != nil {
		return e
	}
	return r.answered(ctx, message)
}

// call calls the model.
func (r *run) call(ctx context.Context) (schema.Message, *ending) {
	l := r.loop
	waiting := l.waiting.standing()
	request := &Request{Messages: l.talk.messages(nil), Tools: cloneTools(l.opt.Tools), Iteration: r.iteration}
	message, err := guarded(ctx, "the model", func(ctx context.Context) (schema.Message, error) { return l.opt.Model.Call(ctx, request) })
	switch {
	case err != nil && ctx.Err() != nil:
		return message, cancelled(ctx)
	case err != nil:
		return message, &ending{how: ModelError, err: fmt.Errorf("%w: %w", ErrModel, err)}
	case message.Result != nil || message.Role != "" && message.Role != schema.RoleAssistant:
		return message, &ending{how: ModelError, err: fmt.Errorf("%w: it answered with a message of the role %.40q; an answer is an assistant's", ErrModel, message.Role)}
	}
	message = sound(cloneMessage(message))
	if l.opt.Fabric != nil {
		l.waiting.read(l.opt.Fabric, waiting)
	}
	return message, nil
}

// answered is what follows the model's message.
func (r *run) answered(ctx context.Context, message schema.Message) *ending {
	m := r.at(schema.AfterLLMCall, message, nil)
	if e := r.judge(ctx, m); e != nil {
		return e
	}
	if e, steered := r.steered(m); steered { // a message that is asked for again is discarded
		return e
	}
	message, _ = m.seen().(schema.Message)
	id := r.loop.talk.add(nil, message)
	if len(message.ToolCalls) == 0 {
		r.inject(nil, &m.verdict)
		return r.final(ctx, id, message)
	}
	if message.Content != "" {
		r.say(Chunk{Kind: TextChunk, Text: message.Content})
	}
	return r.tools(ctx, message.ToolCalls, &m.verdict)
}

// steered does what hooks make of a model's message instead of going on with it, and
// reports whether they did; the ending is nil where the model is asked once more.
func (r *run) steered(m *moment) (e *ending, steered bool) {
	switch {
	case m.verdict.Restart != nil:
		r.restart(&m.verdict)
		r.inject(nil, &m.verdict)
	case m.verdict.Decision == schema.Stop:
		return r.stopped(m), true
	case m.verdict.Decision == schema.Retry:
		r.again(m)
	default:
		return nil, false
	}
	return nil, true
}

// final is what comes before a message becomes the response.
func (r *run) final(ctx context.Context, id int, message schema.Message) *ending {
	m := r.at(schema.BeforeFinalResponse, message, nil)
	// What came in waits rather than put off the end for ever, or past the bound.
	m.event.Mute = r.putOff >= r.loop.opt.FinalRetries || r.iteration == r.loop.opt.MaxIterations
	if e := r.judge(ctx, m); e != nil {
		return e
	}
	if e, steered := r.steered(m); steered {
		if e == nil && m.verdict.Restart == nil && queued(&m.verdict) {
			r.putOff++
		}
		return e
	}
	message, _ = m.seen().(schema.Message)
	r.loop.talk.replace(id, message)
	r.inject(nil, &m.verdict)
	return &ending{how: Answered, message: &message}
}

// queued reports whether v brings something of the queue.
func queued(v *schema.Verdict) bool {
	for i := range v.Injections {
		if v.Injections[i].Sequence > 0 {
			return true
		}
	}
	return false
}

// again has the model asked once more, and tells it why and how often it may be.
func (r *run) again(m *moment) {
	v := &m.verdict
	r.last = fmt.Sprintf("%s asked for another attempt%s", asker(v, schema.Retry), after(": ", v.Reason))
	attempt := fmt.Sprintf("(attempt %d of %d)", r.iteration+1, r.loop.opt.MaxIterations)
	if r.iteration == r.loop.opt.MaxIterations {
		attempt = fmt.Sprintf("(%d of %d attempts were made)", r.iteration, r.loop.opt.MaxIterations)
	}
	if first(v.Reason) != "" {
		r.loop.talk.add(nil, schema.Message{Role: schema.RoleUser, Content: v.Reason + " " + attempt})
	}
	r.say(Chunk{Kind: RetryChunk, Text: first(v.Reason, "once more") + " " + attempt})
	r.inject(nil, v)
}

// asker names the hook that decided so.
func asker(v *schema.Verdict, d schema.Decision) string {
	for _, h := range v.ExecutedHooks {
		if h.Decision == d {
			return fmt.Sprintf("hook %q", h.Hook)
		}
	}
	return "the fabric"
}

// stopped ends the query with a hook's message.
func (r *run) stopped(m *moment) *ending {
	message := closing(m.message())
	r.loop.talk.add(nil, message)
	r.inject(nil, &m.verdict)
	return &ending{how: Stopped, reason: m.verdict.Reason, message: &message}
}
