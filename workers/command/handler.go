package command

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// blockExit is the exit code with which a program blocks.
const blockExit = 2

// handler is a hook whose program was found.
type handler struct {
	runner *Runner
	hook   string // the hook's name
	name   string // the program as the configuration calls it
	argv   []string
	dir    string
	env    environ
}

// Handle runs the program once. It returns after the program's process has ended.
func (h *handler) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	if err := h.runner.enter(ctx); err != nil {
		return schema.Result{}, fmt.Errorf("%q %w", h.name, err)
	}
	defer h.runner.running.Done()
	stdin, err := encode(e)
	if err != nil {
		return schema.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.runner.life, func() { cancel(context.Cause(h.runner.life)) })()

	p, err := start(ctx, h, h.env.of(e, trace.From(ctx)))
	if err != nil {
		return schema.Result{}, fmt.Errorf("%q did not start: %w", h.name, err)
	}
	return h.judge(ctx, e.HookType, p.finish(ctx, stdin))
}

// judge turns the end of a program into its answer.
func (h *handler) judge(ctx context.Context, t schema.EventType, end ending) (schema.Result, error) {
	switch {
	case end.cause != nil:
		return schema.Result{}, fmt.Errorf("the worker killed %q and all processes that it started: %w", h.name, end.cause)
	case end.flooded:
		return schema.Result{}, fmt.Errorf("%q printed more than %d bytes, the limit of an answer", h.name, schema.MaxResult)
	case end.err != nil:
		return schema.Result{}, fmt.Errorf("%q was lost: %w", h.name, end.err)
	}
	switch code := end.state.ExitCode(); code {
	case 0:
		h.note(ctx, end.stderr)
		return h.answer(t, end)
	case blockExit:
		return schema.Blocked(t, h.reason(end.stderr)), nil
	case -1:
		return schema.Result{}, fmt.Errorf("%q was ended by a signal (%v)%s", h.name, end.state, child.LastWords(end.stderr))
	default:
		return schema.Result{}, fmt.Errorf("%q exited with code %d%s", h.name, code, child.LastWords(end.stderr))
	}
}

// answer reads the output of a program that exited with 0.
func (h *handler) answer(t schema.EventType, end ending) (schema.Result, error) {
	out := bytes.TrimSpace(end.stdout)
	if len(out) == 0 && end.held {
		return schema.Result{}, fmt.Errorf("%q exited while a process that it started kept its standard output open, so the answer is incomplete; wait for that process, or start it with >/dev/null", h.name)
	}
	if len(out) == 0 {
		return schema.Result{}, nil
	}
	res, err := schema.DecodeResult(t, out)
	if err != nil {
		return schema.Result{}, fmt.Errorf("%q: %w", h.name, err)
	}
	return res, nil
}

// reason returns why a program blocks: its standard error.
func (h *handler) reason(stderr []byte) string {
	if s := child.Readable(stderr); s != "" {
		return s
	}
	return fmt.Sprintf("blocked by the hook %q, which gave no reason", h.hook)
}

// note logs the standard error of a successful program.
func (h *handler) note(ctx context.Context, stderr []byte) {
	if len(stderr) > 0 && h.runner.log.Enabled(ctx, slog.LevelDebug) {
		h.runner.log.DebugContext(ctx, "the hook wrote to its standard error", "hook", h.hook, "stderr", child.Readable(stderr))
	}
}
