package loop

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
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
	// delays counts how often new messages delayed the end.
	delays int
	// last is why the model is called again.
	last string

	mu     sync.Mutex // guards errors, and is held while a chunk is shown
	errors []string
}

// An ending is how a query ends; nil: it continues.
type ending struct {
	how     Ending
	err     error
	reason  string
	message *schema.Message
}

// event returns an event with the members that all events have.
func (r *run) event(t schema.EventType) schema.Event {
	o := &r.loop.opt
	e := schema.Event{HookType: t, AgentID: o.Agent, SessionID: o.Session, OrchestratorID: o.Orchestrator,
		Runtime: o.Runtime, Cwd: o.Cwd, Labels: o.Labels, Timestamp: time.Now(), Iteration: r.iteration}
	if id, err := uuid.NewV7(); err == nil {
		e.EventID = id.String() // without an id, the client makes one or reports why it cannot
	}
	return e
}

// ask asks the fabric about an event in its current state.
func (r *run) ask(ctx context.Context, m *moment) (*schema.Verdict, error) {
	e := m.event
	if flags := r.loop.conversation.copyFlags(); len(flags) > 0 {
		e.Flags = asJSON(flags)
	}
	ctx, cancel := context.WithTimeout(ctx, r.loop.opt.EventTimeout)
	defer cancel()
	return r.loop.opt.Fabric.Ask(ctx, &e, client.History(m.history))
}

// judge runs the hooks of an event and returns how the query ends; nil: it continues.
func (r *run) judge(ctx context.Context, m *moment) *ending {
	m.judge(ctx)
	v := &m.verdict
	r.note(v.HookErrors)
	if r.loop.opt.Verdict != nil {
		event, verdict := m.event, *v // copies, because the callback must not change anything
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

// note records errors of hooks.
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

// because adds a hook's reason to an error.
func because(err error, reason string) error {
	if reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, reason)
}

func cancelled(ctx context.Context) *ending {
	return &ending{how: Cancelled, err: fmt.Errorf("%w: %w", ErrCancelled, context.Cause(ctx))}
}

// query runs the query to its end. A panic of the model or a callback ends it, too.
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

// submit adds the prompt to the conversation, if the hooks permit.
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
	r.loop.conversation.add(nil, schema.Message{Role: schema.RoleUser, Content: r.prompt})
	r.inject(nil, &m.verdict)
	return nil
}

// inject adds injections as messages. Those of an aside reach the conversation together
// with the aside.
func (r *run) inject(to *aside, v *schema.Verdict) {
	for i := range v.Injections {
		in := &v.Injections[i]
		if first(in.Content) == "" {
			continue
		}
		r.loop.conversation.add(to, schema.Message{Role: schema.RoleUser, Content: in.Content})
		r.sayInjection(in)
	}
	if to == nil {
		r.loop.unread.markAdded(v.EventID)
	}
}

// restart starts the conversation again with the system prompt, the query's prompt, and
// the text of the restart.
func (r *run) restart(v *schema.Verdict) {
	text := first(v.Restart.Content, v.Restart.Reason)
	messages := []schema.Message{{Role: schema.RoleUser, Content: r.prompt}}
	if text != "" {
		messages = append(messages, schema.Message{Role: schema.RoleUser, Content: text})
	}
	r.loop.unread.remove(func(l lease) bool { return l.event != v.EventID })
	r.loop.begin(messages...)
	r.last = "the fabric restarted the turn" + after(": ", v.Restart.Reason)
	r.say(Chunk{Kind: RestartChunk, Text: text})
}

// after returns separator and text, or nothing if text is empty.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// iterate makes one model call and everything that depends on it.
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
		return r.stop(m)
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
	waiting := l.unread.added()
	request := &Request{Messages: l.conversation.messages(nil), Tools: cloneTools(l.opt.Tools), Iteration: r.iteration}
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
		l.unread.acknowledge(l.opt.Fabric, waiting)
	}
	return message, nil
}

// answered handles the model's message.
func (r *run) answered(ctx context.Context, message schema.Message) *ending {
	m := r.at(schema.AfterLLMCall, message, nil)
	if e := r.judge(ctx, m); e != nil {
		return e
	}
	if e, diverted := r.divert(m); diverted { // a message that is retried is not added to the conversation
		return e
	}
	message, _ = m.currentValue().(schema.Message)
	id := r.loop.conversation.add(nil, message)
	if len(message.ToolCalls) == 0 {
		r.inject(nil, &m.verdict)
		return r.final(ctx, id, message)
	}
	if message.Content != "" {
		r.say(Chunk{Kind: TextChunk, Text: message.Content})
	}
	return r.tools(ctx, message.ToolCalls, &m.verdict)
}

// divert carries out a restart, stop or retry instead of using the model's message, and
// reports whether there was one. The ending is nil if the model is called again.
func (r *run) divert(m *moment) (e *ending, diverted bool) {
	switch {
	case m.verdict.Restart != nil:
		r.restart(&m.verdict)
		r.inject(nil, &m.verdict)
	case m.verdict.Decision == schema.Stop:
		return r.stop(m), true
	case m.verdict.Decision == schema.Retry:
		r.retry(m)
	default:
		return nil, false
	}
	return nil, true
}

// final runs the hooks before a message becomes the response.
func (r *run) final(ctx context.Context, id int, message schema.Message) *ending {
	m := r.at(schema.BeforeFinalResponse, message, nil)
	// At the limit of delays, and in the last iteration, new messages stay in the queue.
	m.event.Mute = r.delays >= r.loop.opt.FinalRetries || r.iteration == r.loop.opt.MaxIterations
	if e := r.judge(ctx, m); e != nil {
		return e
	}
	if e, diverted := r.divert(m); diverted {
		if e == nil && m.verdict.Restart == nil && queued(&m.verdict) {
			r.delays++
		}
		return e
	}
	message, _ = m.currentValue().(schema.Message)
	r.loop.conversation.replace(id, message)
	r.inject(nil, &m.verdict)
	return &ending{how: Answered, message: &message}
}

// queued reports whether v delivers items of the queue.
func queued(v *schema.Verdict) bool {
	for i := range v.Injections {
		if v.Injections[i].Sequence > 0 {
			return true
		}
	}
	return false
}

// retry makes the loop call the model again. The model reads the reason and the number of
// the attempt.
func (r *run) retry(m *moment) {
	v := &m.verdict
	r.last = fmt.Sprintf("%s asked for another attempt%s", decidedBy(v, schema.Retry), after(": ", v.Reason))
	attempt := fmt.Sprintf("(attempt %d of %d)", r.iteration+1, r.loop.opt.MaxIterations)
	if r.iteration == r.loop.opt.MaxIterations {
		attempt = fmt.Sprintf("(%d of %d attempts were made)", r.iteration, r.loop.opt.MaxIterations)
	}
	if first(v.Reason) != "" {
		r.loop.conversation.add(nil, schema.Message{Role: schema.RoleUser, Content: v.Reason + " " + attempt})
	}
	r.say(Chunk{Kind: RetryChunk, Text: first(v.Reason, "once more") + " " + attempt})
	r.inject(nil, v)
}

// decidedBy names the hook with that decision.
func decidedBy(v *schema.Verdict, d schema.Decision) string {
	for _, h := range v.ExecutedHooks {
		if h.Decision == d {
			return fmt.Sprintf("hook %q", h.Hook)
		}
	}
	return "the fabric"
}

// stop ends the query with a hook's message.
func (r *run) stop(m *moment) *ending {
	message := closing(m.message())
	r.loop.conversation.add(nil, message)
	r.inject(nil, &m.verdict)
	return &ending{how: Stopped, reason: m.verdict.Reason, message: &message}
}

// end runs QueryEnd, once and after everything else.
func (r *run) end(ctx context.Context, e *ending) (Response, error) {
	out := Response{Message: e.message, Status: e.how, Reason: e.reason, Iterations: r.iteration}
	if e.message != nil {
		out.Content = e.message.Content
	}
	if e.err != nil {
		out.Error = e.err.Error()
	}
	out.HookErrors = slices.Clone(r.errors)
	ctx, cancel := outlive(ctx, r.loop.opt.EndTimeout)
	defer cancel()
	err := e.err
	func() {
		defer func() {
			if p := recover(); p != nil {
				r.note([]string{fmt.Sprintf("QueryEnd panicked: %v", p)})
			}
		}()
		out, err = r.endHooks(ctx, out, err)
	}()
	out.HookErrors = slices.Clone(r.errors)
	return out, err
}

// endHooks runs the hooks of QueryEnd and shows the end. err is why the query has no
// answer; a hook that fails the query here adds its reason.
func (r *run) endHooks(ctx context.Context, out Response, err error) (Response, error) {
	m := r.at(schema.QueryEnd, out, nil)
	m.event.Mute = true // no model reads messages any more
	e := r.judge(ctx, m)
	if next, ok := m.currentValue().(Response); ok {
		out = next
	}
	failed := e != nil && e.how == Failed
	switch {
	case failed && err != nil: // the first reason stays the ending
		err = fmt.Errorf("%w; %w", err, e.err)
		out.Error = err.Error()
	case failed:
		err, out.Status, out.Error, out.Reason = e.err, Failed, e.err.Error(), e.reason
	case e != nil:
		r.note([]string{fmt.Sprintf("at the query's end, where that is only recorded: %v", e.err)})
	}
	if m.verdict.Restart == nil { // a restart has no effect here
		r.inject(nil, &m.verdict)
	}
	if out.Content != "" && !failed {
		r.say(Chunk{Kind: TextChunk, Text: out.Content})
	}
	r.say(Chunk{Kind: EndChunk, Text: out.Error})
	return out, err
}

// outlive returns a context that continues for a grace period after ctx has ended, for
// hooks that must still run.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-t.C:
			cancel(fmt.Errorf("the query was cancelled %v ago: %w", grace, context.Cause(ctx)))
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel(nil) }
}
