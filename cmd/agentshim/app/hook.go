package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/dialect"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// hook is one call of `agentshim hook`.
type hook struct {
	runtime, event, agent, nats, creds, unreachable string
	timeout                                         time.Duration

	stdin          io.Reader
	stdout, stderr io.Writer
	dialect        dialect.Dialect
	want           schema.EventType
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
	e := &schema.Event{HookType: h.want}
	defer func() {
		if p := recover(); p != nil {
			code = h.answer(e, h.unjudged(e, fmt.Errorf("the shim failed: %v", p)))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, h.timeout-schema.Margin(h.timeout))
	defer cancel()
	decoded, err := h.readInTime(ctx)
	if decoded != nil {
		e = decoded
	}
	if err != nil {
		h.answer(e, h.unreadable(ctx, e, err))
		return program.Failed
	}
	v, err := h.ask(ctx, func(c *client.Client) (*schema.Verdict, error) { return c.Ask(ctx, e) })
	if err != nil {
		v = h.unjudged(e, err)
	}
	return h.answer(e, v)
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
	v, err := h.ask(ctx, func(c *client.Client) (*schema.Verdict, error) { return c.AskUnreadable(ctx, e, why) })
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
		return e, nil
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

func (h *hook) ask(ctx context.Context, question func(*client.Client) (*schema.Verdict, error)) (*schema.Verdict, error) {
	c, err := client.Connect(ctx, client.Options{
		URL: h.nats, Creds: h.creds, Name: "agentshim-" + h.runtime,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return question(c)
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

// answer says v as the runtime expects it.
func (h *hook) answer(e *schema.Event, v *schema.Verdict) int {
	a, err := h.dialect.Encode(e, v)
	if err == nil {
		_, err = h.stdout.Write(a.Stdout)
	}
	if err != nil {
		fmt.Fprintf(h.stderr, "agentshim: the answer could not be given: %v\n", err)
		return program.Failed
	}
	if a.Stderr != "" {
		fmt.Fprintln(h.stderr, a.Stderr)
	}
	return a.Exit
}
