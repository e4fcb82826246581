package aggregator

import (
	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// maxVerbs bounds the bytes of such requests under way; each counts for
	// verbShare at least.
	maxVerbs  = 64 << 20
	verbShare = 64 << 10
	// maxKeeps bounds the requests that bring parts of conversations, so that acknowledgements and
	// messages always find room beside them.
	maxKeeps = maxVerbs / 2
	// maxAnswers bounds the bytes of large answers that are made or being sent. Each counts for
	// largeAnswer: a part of an object and the same part as JSON. A client that requests a large
	// answer waits for its share.
	maxAnswers  = 32 << 20
	largeAnswer = objects.MaxPart * 7 / 3
)

// budgets bound the bytes of the control requests under way.
type budgets struct {
	agents    *semaphore.Weighted // requests of agents and workers
	operators *semaphore.Weighted // requests of operators and orchestrators
	parts     *semaphore.Weighted // requests of agents that bring parts of conversations
	answers   *semaphore.Weighted // large answers
}

func newBudgets() budgets {
	return budgets{
		agents: semaphore.NewWeighted(maxVerbs), operators: semaphore.NewWeighted(maxVerbs),
		parts: semaphore.NewWeighted(maxKeeps), answers: semaphore.NewWeighted(maxAnswers),
	}
}

// take reserves size bytes for a request until the caller calls release. Operators and
// orchestrators (others) have a budget of their own.
func (b *budgets) take(name string, others bool, size int64) (release func(), err error) {
	if others {
		if !b.operators.TryAcquire(size) {
			return nil, unavailable("too many requests are already under way; try again")
		}
		return func() { b.operators.Release(size) }, nil
	}
	keeps := name == schema.VerbKeep
	if keeps && !b.parts.TryAcquire(size) {
		return nil, unavailable("too many parts of conversations are already under way; try again")
	}
	if !b.agents.TryAcquire(size) {
		if keeps {
			b.parts.Release(size)
		}
		return nil, unavailable("too many requests are already under way; try again")
	}
	return func() {
		b.agents.Release(size)
		if keeps {
			b.parts.Release(size)
		}
	}, nil
}
