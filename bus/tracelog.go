package bus

import (
	"log/slog"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// InTrace returns log with the id of the trace, so that a reader finds the trace from a line.
// Without a trace it returns log itself.
func InTrace(log *slog.Logger, at *trace.Context) *slog.Logger {
	if id := at.ID(); id != "" {
		return log.With("trace_id", id)
	}
	return log
}
