package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// breathFor is about how long a client waits before its next question after an aggregator
// stayed silent. Agents that give up ask again at once. Thousands of them would keep an
// aggregator that has just come back busy with questions that have ended.
const breathFor = time.Second

// A breath is the pause of a client between an unanswered question and the next.
type breath struct{ due atomic.Bool }

// after notes what came of a question.
func (b *breath) after(err error) {
	switch {
	case err == nil:
		if b.due.Load() {
			b.due.Store(false)
		}
	case errors.Is(err, errSilent):
		b.due.Store(true)
	}
}

// take waits, if that is due: at random, so that not all ask at the same moment, and for a
// quarter of the time that is left at most.
func (b *breath) take(ctx context.Context, left time.Duration) {
	if !b.due.Load() {
		return
	}
	t := time.NewTimer(min(breathFor/2+rand.N(breathFor), left/4))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
