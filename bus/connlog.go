package bus

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// watch are the options that report on a connection's life. NATS calls them
// one after the other.
func (o *Options) watch(name string) []nats.Option {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("connection", name)
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
			o.tellRefusal(err)
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
			case err == nil: // it left by itself
				log.Info("moving to another NATS server")
			default:
				log.Warn("the NATS connection is lost; the client reconnects", "error", err)
			}
			state(false)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			o.tellRefusal(err) // credentials are not told of at the handler above
			is := errors.Is(err, nats.ErrPermissionViolation)
			what := err.Error()
			if errors.Is(err, nats.ErrSlowConsumer) && sub != nil {
				what = sub.Subject + " " + what
			} else if !is {
				what = ""
			}
			if what == "" || denied.news(what, time.Now()) {
				report(log, sub, err)
			}
			if is && o.OnDenied != nil {
				o.OnDenied(err)
			}
		}),
	}
}

// tellRefusal tells of a connection that is not made again because of credentials or certificates.
func (o *Options) tellRefusal(err error) {
	if why := o.refusal(err); why != nil && o.OnRefused != nil {
		o.OnRefused(why)
	}
}

// A lastRefusal is what was said last of attempts that failed, so that each reason
// is said once and not at every attempt.
type lastRefusal struct{ said atomic.Pointer[string] }

func (l *lastRefusal) differs(advice string) bool {
	before := l.said.Swap(&advice)
	return before == nil || *before != advice
}

const (
	// denialEvery is how often it is said at most that the same thing is not permitted.
	denialEvery = time.Minute
	// maxDenials bounds the things that are remembered for that.
	maxDenials = 64
)

// denials are what the bus did not permit lately: who beats four times a second without
// being permitted to says that four times a second.
type denials struct {
	mu   sync.Mutex // guards said
	said map[string]time.Time
}

// news reports whether that is to be said now, and remembers that it was.
func (d *denials) news(what string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.said[what]; ok && now.Sub(at) < denialEvery {
		return false
	}
	if d.said == nil || len(d.said) >= maxDenials {
		d.said = make(map[string]time.Time)
	}
	d.said[what] = now
	return true
}

// report logs what NATS says outside of any call.
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
