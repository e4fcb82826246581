package aggregator

import (
	"log/slog"
	"sync/atomic"
)

// outage says once that something cannot be reached, and once that it can be
// again, however many calls meet it.
type outage struct {
	log  *slog.Logger
	what string
	on   atomic.Bool
}

func (o *outage) begun(err error) {
	if !o.on.Swap(true) {
		o.log.Warn(o.what+" cannot be reached; calls continue without", "error", err)
	}
}

func (o *outage) over() {
	if o.on.Load() && o.on.Swap(false) {
		o.log.Info(o.what + " can be reached again")
	}
}
