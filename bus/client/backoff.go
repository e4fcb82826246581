package client

import (
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
	if silent := errors.Is(err, errSilent); (err == nil || silent) && b.due.Load() != silent {
		b.due.Store(silent)
	}
}

// pause returns how long to wait: a random time, so that clients do not ask at the same moment,
// and at most a quarter of the time left; 0 if the last call was answered.
func (b *backoff) pause(left time.Duration) time.Duration {
	if !b.due.Load() {
		return 0
	}
	return min(backoffFor/2+rand.N(backoffFor), left/4)
}
