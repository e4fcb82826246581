package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// backoffFor is about how long a client waits before its next event after an aggregator
// stayed silent. Agents that give up ask again at once. Thousands of them would keep a
// restarted aggregator busy with events whose calls have ended.
const backoffFor = time.Second

// A backoff delays the event after an unanswered one.
type backoff struct{ due atomic.Bool }

// after records the result of a call.
func (b *backoff) after(err error) {
	switch {
	case err == nil:
		if b.due.Load() {
			b.due.Store(false)
		}
	case errors.Is(err, errSilent):
		b.due.Store(true)
	}
}

// wait waits if the last call was unanswered. The time is random, so that clients do not
// ask at the same moment, and at most a quarter of the time left.
func (b *backoff) wait(ctx context.Context, left time.Duration) {
	if !b.due.Load() {
		return
	}
	t := time.NewTimer(min(backoffFor/2+rand.N(backoffFor), left/4))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
