package python

import (
	"errors"
	"time"
)

// callMonitor watches a call: it reports a slow host to the pool, and checks that the
// host's event loop still runs.
type callMonitor struct {
	host  *host
	call  *call
	timer *time.Timer
	pong  <-chan answer // the answer of the event loop to a ping
	slow  bool
}

// errBlocked is why a shared host is killed before the deadlines of its calls.
var errBlocked = errors.New("its event loop did not answer, because a coroutine blocked it; await slow operations, or use asyncio.to_thread")

func newCallMonitor(h *host, c *call) *callMonitor {
	return &callMonitor{host: h, call: c, timer: time.NewTimer(h.pool.runner.wait.slow)}
}

// tick runs after the call became slow, and then at each interval of stall.
func (v *callMonitor) tick() {
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
		v.host.pool.runner.log.Warn("coroutine function blocks its event loop, so each of its calls now gets a host of its own; await slow operations, or use asyncio.to_thread",
			"handler", f.handler)
	}
}
