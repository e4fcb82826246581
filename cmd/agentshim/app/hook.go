package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/dialect"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// hook is one call of `agentshim hook`.
type hook struct {
	runtime, event, agent, unreachable string
	link
	timeout time.Duration

	stdin          io.Reader
	stdout, stderr io.Writer
	dialect        dialect.Dialect
	want           schema.EventType

	began    time.Time
	given    *handing
	answered bool // something was written
	// step is told how far an answer is; only tests set it, to die there.
	step func(point string)
}

// check refuses a command line that can not work.
func (h *hook) check() (err error) {
	if h.runtime == "" {
		return program.UsageError("--runtime is missing; write --runtime generic")
	}
	if h.dialect, err = dialect.For(h.runtime); err != nil {
		return program.UsageError("%w", err)
	}
	if h.event != "" {
		if h.want, err = schema.ParseEventType(h.event); err != nil {
			return program.UsageError("--event: %w", err)
		}
	}
	if h.unreachable != "deny" && h.unreachable != "allow" {
		return program.UsageError("--unreachable is %q; write deny or allow", h.unreachable)
	}
	if h.timeout <= 0 {
		return program.UsageError("--timeout is %s; it must be longer than nothing", h.timeout)
	}
	return nil
}

// run asks and answers, whatever happens, and returns the exit code.
func (h *hook) run(ctx context.Context) (code int) {
	h.began = time.Now()
	e := &schema.Event{HookType: h.want}
	defer func() { h.given.close() }()
	defer func() {
		if p := recover(); p != nil && h.answered {
			fmt.Fprintf(h.stderr, "agentshim: the shim failed after it had answered: %v\n", p)
		} else if p != nil {
			code, _ = h.answer(e, h.unjudged(e, fmt.Errorf("the shim failed: %v", p)))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, h.timeout-schema.Margin(h.timeout))
	defer cancel()
	decoded, err := h.readInTime(ctx)
	if decoded != nil {
		e = decoded
	}
	if err != nil {
		h.handOver(ctx, e, h.unreadable(ctx, e, err))
		return program.Failed
	}
	v, err := h.ask(ctx, e, func(c *client.Client) (*schema.Verdict, error) { return c.Ask(ctx, e) })
	if err != nil {
		v = h.unjudged(e, err)
	}
	return h.handOver(ctx, e, v)
}

// handOver answers, and only then acknowledges what the answer brought.
func (h *hook) handOver(ctx context.Context, e *schema.Event, v *schema.Verdict) int {
	h.at("received")
	code, ok := h.answer(e, v)
	if ok {
		h.at("written")
		h.given.done(ctx, v.EventID, min(ackTime, time.Until(h.began.Add(h.timeout))/2))
		h.at("acknowledged")
	}
	return code
}

func (h *hook) at(point string) {
	if h.step != nil {
		h.step(point)
	}
}

// unreadable asks what to do about an event that can not be read: whether that
// call is guarded, only the fabric knows.
func (h *hook) unreadable(ctx context.Context, e *schema.Event, why error) *schema.Verdict {
	if e.HookType == "" {
		e.HookType = schema.PreToolUse // nobody said; what is guarded most counts
	}
	if h.agent == "" && e.AgentID == "" && e.SessionID == "" {
		e.AgentID = schema.UnknownAgent
	}
	h.identify(e)
	if _, err := bus.Token(e.AgentID); err != nil {
		e.AgentID = schema.UnknownAgent // nobody could be asked about that one
	}
	v, err := h.ask(ctx, e, func(c *client.Client) (*schema.Verdict, error) { return c.AskUnreadable(ctx, e, why) })
	if err != nil {
		return h.unjudged(e, errors.Join(why, err))
	}
	fmt.Fprintf(h.stderr, "agentshim: %v\n", why)
	return v
}

// readInTime reads the payload and leaves time to ask.
func (h *hook) readInTime(ctx context.Context) (*schema.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout/2)
	defer cancel()
	return h.read(ctx)
}

// read reads the payload, at most one event's worth, and not longer than there
// is time: a runtime that keeps stdin open gets its answer all the same.
func (h *hook) read(ctx context.Context) (*schema.Event, error) {
	type input struct {
		data []byte
		err  error
	}
	done := make(chan input, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(h.stdin, schema.MaxEvent+1))
		done <- input{data, err}
	}()
	select {
	case in := <-done:
		if in.err != nil {
			return nil, fmt.Errorf("reading stdin: %w", in.err)
		}
		if len(in.data) > schema.MaxEvent {
			return h.glance(in.data), fmt.Errorf("the event on stdin is larger than %d bytes", schema.MaxEvent)
		}
		e, err := h.dialect.Decode(in.data, h.want)
		if err != nil {
			return h.glance(in.data), err
		}
		h.identify(e)
		_, err = bus.Token(e.AgentID)
		return e, err
	case <-ctx.Done():
		return nil, errors.New("stdin did not end in time; write the event and close it")
	}
}

// glance is what can be seen of an event that can not be read.
func (h *hook) glance(data []byte) *schema.Event {
	e := schema.Glance(data)
	if h.want != "" {
		e.HookType = h.want
	}
	return &e
}

// identify says whose event it is.
func (h *hook) identify(e *schema.Event) {
	switch {
	case h.agent != "":
		e.AgentID = h.agent
	case e.AgentID != "":
	case e.SessionID != "":
		e.AgentID = h.runtime + "-" + e.SessionID
	default:
		e.AgentID = h.runtime
	}
	if e.Runtime == "" {
		e.Runtime = h.runtime
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = time.Now().UTC()
	}
}

// ask puts a question about e, and remembers whom, to acknowledge what comes of it.
func (h *hook) ask(ctx context.Context, e *schema.Event, question func(*client.Client) (*schema.Verdict, error)) (*schema.Verdict, error) {
	folder := h.workspaces
	if folder == "" && filepath.IsAbs(e.Cwd) {
		folder = e.Cwd
	}
	h.name = "agentshim-" + h.runtime
	g, err := h.connect(ctx, e.AgentID, folder, h.stderr)
	if err != nil {
		return nil, err
	}
	h.given = g
	return question(g.client)
}

// unjudged is the verdict when nobody judged, by --unreachable, and says so.
func (h *hook) unjudged(e *schema.Event, err error) *schema.Verdict {
	v := &schema.Verdict{HookErrors: []string{err.Error()}}
	if b := e.HookType.Blocking(); h.unreachable == "deny" && b != schema.None {
		v.Decision = b
		v.Reason = fmt.Sprintf("nobody judged this call, and --unreachable is deny: %v", err)
		if errors.Is(err, client.ErrUnreachable) {
			v.Reason += ". Start the broker, or ask who runs it."
		}
	}
	decided := "refused"
	if v.Decision == schema.None {
		decided = "allowed"
	}
	fmt.Fprintf(h.stderr, "agentshim: %s without a verdict (--unreachable %s): %v\n", decided, h.unreachable, err)
	return v
}

// answer says v as the runtime expects it, and reports whether the runtime has it.
func (h *hook) answer(e *schema.Event, v *schema.Verdict) (code int, ok bool) {
	a, err := h.dialect.Encode(e, v)
	if err == nil {
		h.answered = true
		_, err = h.stdout.Write(a.Stdout)
	}
	if err != nil {
		fmt.Fprintf(h.stderr, "agentshim: the answer could not be given: %v\n", err)
		return program.Failed, false
	}
	if a.Stderr != "" {
		fmt.Fprintln(h.stderr, a.Stderr)
	}
	return a.Exit, true
}
