package builtin

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
)

// logOptions are the options of "log".
type logOptions struct {
	// Level is debug, info, warn or error; empty: info.
	Level string `json:"level"`
}

// newLog makes the hook "log": it logs the kind, agent and tool of each event, without
// its content. It has no opinion.
func newLog(logger *slog.Logger) workers.Factory {
	return func(h schema.Hook) (workers.Handler, error) {
		o, err := options[logOptions](h)
		if err != nil {
			return nil, err
		}
		level, err := logLevel(h, o.Level)
		if err != nil {
			return nil, err
		}
		return workers.HandlerFunc(func(ctx context.Context, e *schema.Event) (schema.Result, error) {
			facts := append(make([]slog.Attr, 0, 6), slog.String("hook", h.Name), slog.String("event", string(e.HookType)),
				slog.String("agent", e.AgentID), slog.String("tool", e.ToolName), slog.String("event_id", e.EventID))
			if id := trace.From(ctx).ID(); id != "" {
				facts = append(facts, slog.String("trace_id", id))
			}
			logger.LogAttrs(ctx, level, "hook event", facts...)
			return schema.Result{}, nil
		}), nil
	}
}

// logLevel parses a level.
func logLevel(h schema.Hook, name string) (slog.Level, error) {
	switch name {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("the option \"level\" of %q is %q; write debug, info, warn or error", h.Handler, name)
}
