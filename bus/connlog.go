package bus

import (
	"cmp"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// watch returns the options that report the state of a connection. NATS never calls two of
// these handlers at the same time.
func (o *Options) watch(name string) []nats.Option {
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler)).With("connection", name)
	state := o.OnState
	if state == nil {
		state = func(bool) {}
	}
	leaving := o.OnLeaving
	if leaving == nil {
		leaving = func(*nats.Conn) {}
	}
	var refused lastRefusal
	var denied denials
	return []nats.Option{
		nats.LameDuckModeHandler(leaving),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			o.reportRefusal(err)
			if advice := o.advice(err); advice != "" && refused.differs(advice) {
				log.Error("NATS still cannot be reached; the client keeps trying", "error", err, "advice", advice)
			}
		}),
		nats.ConnectHandler(func(nc *nats.Conn) {
			log.Debug("connected to NATS", "server", nc.ConnectedUrlRedacted())
			state(true)
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("connected to NATS again", "server", nc.ConnectedUrlRedacted())
			state(true)
		}),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			switch {
			case nc.IsClosed() || nc.IsDraining():
				log.Debug("the NATS connection is closed")
			case err == nil: // the client left by itself
				log.Info("moving to another NATS server")
			default:
				log.Warn("the NATS connection is lost; the client reconnects", "error", err)
			}
			state(false)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			o.reportRefusal(err) // the handler above does not get errors of credentials
			is := errors.Is(err, nats.ErrPermissionViolation)
			what := err.Error()
			if errors.Is(err, nats.ErrSlowConsumer) && sub != nil {
				what = sub.Subject + " " + what
			} else if !is {
				what = ""
			}
			if what == "" || denied.isNew(what, time.Now()) {
				report(log, sub, err)
			}
			if is && o.OnDenied != nil {
				o.OnDenied(err)
			}
		}),
	}
}

// reportRefusal calls OnRefused if reconnecting failed because of credentials or certificates.
func (o *Options) reportRefusal(err error) {
	if why := o.refusal(err); why != nil && o.OnRefused != nil {
		o.OnRefused(why)
	}
}

// A lastRefusal holds the last advice that was logged, so that repeated failures with the same
// cause are logged once.
type lastRefusal struct{ logged atomic.Pointer[string] }

func (l *lastRefusal) differs(advice string) bool {
	before := l.logged.Swap(&advice)
	return before == nil || *before != advice
}

const (
	// denialEvery is the least interval between log lines about the same denial.
	denialEvery = time.Minute
	// maxDenials bounds the denials that are remembered.
	maxDenials = 64
)

// denials are the recent denials. A worker without permission would otherwise log each of its
// heartbeats, four in a second.
type denials struct {
	mu     sync.Mutex // guards logged
	logged map[string]time.Time
}

// isNew reports whether a denial is to be logged now, and records that it was.
func (d *denials) isNew(what string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.logged[what]; ok && now.Sub(at) < denialEvery {
		return false
	}
	if d.logged == nil || len(d.logged) >= maxDenials {
		d.logged = make(map[string]time.Time)
	}
	d.logged[what] = now
	return true
}

// report logs an error that NATS reports outside a call.
func report(log *slog.Logger, sub *nats.Subscription, err error) {
	if sub != nil {
		log = log.With("subject", sub.Subject)
	}
	switch {
	case errors.Is(err, nats.ErrSlowConsumer):
		dropped := 0
		if sub != nil {
			dropped, _ = sub.Dropped()
		}
		log.Warn("a subscription is too slow and loses messages", "dropped", dropped)
	case errors.Is(err, nats.ErrPermissionViolation):
		log.Error("NATS denied this connection an operation; check the permissions of its user", "error", err)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		log.Error("NATS refuses this connection's credentials; the client tries again", "error", err)
	default:
		log.Warn("NATS reports an error", "error", err)
	}
}
