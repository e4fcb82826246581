package python

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
)

// tries is how often a call is attempted if its host ended before the call began.
const tries = 3

// call is a call of a function about an event.
type call struct {
	function *function
	event    []byte
	alone    bool // it has its host to itself
	spent    bool // after it, its host must be replaced
}

// call calls a function, in a host of its own or in a shared one. It calls the function
// again, in a host of its own, if a shared host was lost or ran out of memory, or if the
// host was lost before the call began.
func (p *pool) call(ctx context.Context, c *call) (answer, error) {
	c.alone = c.alone || !c.function.async.Load() || c.function.blocks.Load()
	for try := 1; ; try++ {
		shared := !c.alone
		a, err := p.once(ctx, c)
		lost, ok := errors.AsType[*lostError](err)
		again := ok && (shared || !lost.sent) || err == nil && shared && a.Spent
		if !again || try == tries || ctx.Err() != nil {
			return a, err
		}
		c.alone, c.spent = true, false
	}
}

func (p *pool) once(ctx context.Context, c *call) (a answer, err error) {
	h, err := p.take(ctx, c)
	if err != nil {
		return a, fmt.Errorf("was not called: %w", err)
	}
	defer func() { p.give(h, c) }()
	if !p.knows(h, c.function) {
		if err := h.load(ctx, c.function); err != nil {
			return a, unloaded(fmt.Errorf("could not be imported again: %w", err))
		}
	}
	return h.call(ctx, c)
}

// unloaded marks err as the error of a function that cannot be imported any more. The
// loss of a host is not such an error.
func unloaded(err error) error {
	if _, lost := errors.AsType[*lostError](err); lost {
		return err
	}
	return &workers.UnloadedError{Err: err}
}

// ask sends a request that a host must answer before ctx ends. It kills the host
// otherwise, with late as the cause.
func (h *host) ask(ctx context.Context, body []byte, late error) (answer, error) {
	_, got, err := h.send(timeLeft(ctx), body)
	if err != nil {
		return answer{}, err
	}
	select {
	case a := <-got:
		return a, a.fault()
	case <-ctx.Done():
		h.stop(late)
		a := <-got
		return a, a.fault()
	}
}

// call calls a function in h, in which c has a seat.
func (h *host) call(ctx context.Context, c *call) (answer, error) {
	within := timeLeft(ctx)
	if !c.alone { // a call that has little time left must not break the pipe of others
		within = 2 * h.pool.runner.wait.stall
	}
	h.mu.Lock()
	h.called = true
	h.mu.Unlock()
	number, got, err := h.send(within, calling(c.function, c.event, trace.From(ctx))...)
	if err != nil {
		return answer{}, err
	}
	v := newCallMonitor(h, c)
	defer v.timer.Stop()
	for {
		select {
		case a := <-got:
			c.spent = a.Spent
			return a, a.lost
		case <-ctx.Done():
			return answer{}, h.abandon(ctx, c, number, got)
		case <-v.timer.C:
			v.tick()
		case <-v.pong:
			v.pong = nil
			v.timer.Reset(h.pool.runner.wait.stall)
		}
	}
}

// timeLeft returns the time until the deadline of ctx, or 0 if it has none.
func timeLeft(ctx context.Context) time.Duration {
	until, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(until), 1)
}

// abandon ends a call at its deadline. It cancels a coroutine. If the coroutine does not
// end, or the function is not one, it kills the host.
func (h *host) abandon(ctx context.Context, c *call, number uint32, got <-chan answer) error {
	why := context.Cause(ctx)
	if c.function.async.Load() && h.cancel(c, number, got) {
		return fmt.Errorf("was cancelled: %w", why)
	}
	h.stop(fmt.Errorf("a call in it did not end in time: %w", why))
	<-h.done
	return fmt.Errorf("was killed with its host process: %w", why)
}

// cancel cancels a coroutine, and reports whether it has ended.
func (h *host) cancel(c *call, number uint32, got <-chan answer) bool {
	grace := h.pool.runner.wait.grace
	if h.write(grace, frame(number, []byte(cancelling))) != nil {
		return false
	}
	select {
	case a := <-got:
		c.spent = a.Spent
		return a.lost == nil
	case <-time.After(grace):
		return false
	}
}

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

const (
	// headSize is the length of the JSON and the number of the request, four
	// bytes each.
	headSize = 8
	// maxAnswer is the largest answer of a host in bytes: a result, or the message and
	// the traceback of an exception.
	maxAnswer = schema.MaxResult + 256<<10
)

// frame returns a request in the form that a host reads.
func frame(number uint32, body ...[]byte) []byte {
	size := 0
	for _, b := range body {
		size += len(b)
	}
	out := make([]byte, headSize, headSize+size)
	binary.BigEndian.PutUint32(out, uint32(size))
	binary.BigEndian.PutUint32(out[4:], number)
	for _, b := range body {
		out = append(out, b...)
	}
	return out
}

// readFrame reads one frame of a host. The end of the pipe is io.EOF between frames,
// and io.ErrUnexpectedEOF within one.
func readFrame(r *bufio.Reader) (number uint32, body []byte, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxAnswer {
		return 0, nil, fmt.Errorf("it wrote data into the answer pipe that is not an answer, or an answer of more than %d bytes", maxAnswer)
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return binary.BigEndian.Uint32(head[4:]), body, nil
}
