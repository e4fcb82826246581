package aggregator

import "context"

// spare is how many idle goroutines a crew keeps.
const spare = 64

// crew runs calls on goroutines that stay for the next one. A call's stack is
// deep, and growing it anew each time costs a good part of a short call.
type crew struct {
	ctx  context.Context //nolint:containedctx // the crew's life
	work chan func()
	idle chan struct{} // one for each goroutine that waits for work
}

func newCrew(ctx context.Context) *crew {
	return &crew{ctx: ctx, work: make(chan func()), idle: make(chan struct{}, spare)}
}

// do runs f on a goroutine of its own.
func (c *crew) do(f func()) {
	select {
	case c.work <- f:
	default:
		go c.serve(f)
	}
}

// serve runs f, and then what comes, as long as the crew needs it.
func (c *crew) serve(f func()) {
	for {
		f()
		select {
		case c.idle <- struct{}{}:
		default:
			return
		}
		select {
		case f = <-c.work:
			<-c.idle
		case <-c.ctx.Done():
			return
		}
	}
}
