package bus

import (
	"log/slog"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// InTrace is log for lines about what has that place in a trace: they say which trace
// that is, so that whoever reads one finds the other. Where none is kept it is log as it is.
func InTrace(log *slog.Logger, at *trace.Context) *slog.Logger {
	if id := at.ID(); id != "" {
		return log.With("trace_id", id)
	}
	return log
}
