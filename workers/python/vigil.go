package python

import (
	"errors"
	"time"
)

// vigil is what is looked after while a call is under way: that it does not
// hold up others, and that the event loop of its host still turns.
type vigil struct {
	host  *host
	call  *call
	timer *time.Timer
	pong  <-chan answer // the answer of an event loop that was asked
	slow  bool
}

// errBlocked is why the host of coroutines is killed though none is over time.
var errBlocked = errors.New("its event loop did not answer, as some coroutine blocked it; await what takes time, or use asyncio.to_thread")

func newVigil(h *host, c *call) *vigil {
	return &vigil{host: h, call: c, timer: time.NewTimer(h.pool.runner.wait.slow)}
}

// tick is called when the call has taken a while, and a while again.
func (v *vigil) tick() {
	stall := v.host.pool.runner.wait.stall
	switch f := v.call.function; {
	case !v.slow:
		v.slow = true
		v.host.pool.slow(v.host)
		if f.async.Load() && !f.blocks.Load() {
			v.timer.Reset(stall)
		}
	case v.pong == nil:
		_, v.pong, _ = v.host.send(stall, []byte(pinging))
		v.timer.Reset(stall)
	case !v.call.alone:
		v.host.stop(errBlocked)
	case f.blocks.CompareAndSwap(false, true):
		v.host.pool.runner.log.Warn("coroutine function blocks its event loop: its calls get a host each from here on; await what takes time, or use asyncio.to_thread",
			"handler", f.handler)
	}
}
