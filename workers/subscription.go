package workers

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// A subscription can be ended without losing received messages, whose senders would wait
// until their deadline.
type subscription struct {
	*nats.Subscription
	closed chan struct{}
}

func newSubscription(sub *nats.Subscription) subscription {
	s := subscription{sub, make(chan struct{})}
	sub.SetClosedHandler(func(string) { close(s.closed) })
	return s
}

// end handles all messages that were sent so far, and no later ones.
func (s subscription) end(ctx context.Context) {
	if !s.IsValid() || s.Drain() != nil {
		return // its connection is closed
	}
	select {
	case <-s.closed:
	case <-ctx.Done():
	}
}

// end ends subscriptions. Without a connection they receive nothing.
func (s *Service) end(ctx context.Context, subs []subscription) {
	if !s.nc.IsConnected() {
		return
	}
	var all sync.WaitGroup
	for _, sub := range subs {
		all.Go(func() { sub.end(ctx) })
	}
	all.Wait()
}
