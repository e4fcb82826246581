package aggregator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// checkStorableEvery is the interval at which a change of the configuration checks whether the
// store accepts writes.
const checkStorableEvery = time.Second

// whileStorable returns a context that ends when the store accepts no writes. A server with a full
// disk does not answer writes, and a change of the configuration would retry for a minute.
func (a *Aggregator) whileStorable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	a.life.beside(func() {
		for kv.Rest(ctx, checkStorableEvery) == nil {
			if a.opt.Unstorable() != nil {
				cancel()
			}
		}
	})
	return ctx, cancel
}

// explained adds to an error of a request that could not store something why the store takes no
// writes, if that is known.
func (a *Aggregator) explained(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !kv.Full(err) {
		return err
	}
	why := a.opt.Unstorable()
	if why == nil {
		return err
	}
	return &schema.ControlError{Code: schema.CodeUnavailable, Message: fmt.Sprintf("%v (%v)", why, err)}
}
