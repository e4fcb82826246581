package bus

import (
	"errors"
	"log/slog"

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
	return []nats.Option{
		nats.ConnectHandler(func(nc *nats.Conn) {
			log.Debug("connected to NATS", "server", nc.ConnectedUrlRedacted())
			state(true)
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("connected to NATS again", "server", nc.ConnectedUrlRedacted())
			state(true)
		}),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if nc.IsClosed() || nc.IsDraining() {
				log.Debug("the NATS connection is closed")
			} else {
				log.Warn("the NATS connection is lost; trying again until it is back", "error", err)
			}
			state(false)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { report(log, sub, err) }),
	}
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
		log.Error("NATS does not permit this connection what it tried; check its user's permissions", "error", err)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		log.Error("NATS refuses this connection's credentials; trying again", "error", err)
	default:
		log.Warn("NATS reports an error", "error", err)
	}
}
