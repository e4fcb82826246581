package aggregator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/schema"
)

// TestManyAgentsWhoseTimeIsOverAreWarnedOnceEach checks that an idle agent gets one warning, with
// any number of agents.
func TestManyAgentsWhoseTimeIsOverAreWarnedOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const agents = 20_000
		m := newMemory()
		startWith(t, aggregator.Options{Memory: stores.Memory{Queue: quickQueue{m}, Rounds: manyRounds{fakeRounds{m}, agents}}, Stages: stages},
			library{}, stage(schema.RoundTimeoutPost, schema.PostToolUse))
		<-time.After(10 * time.Second)
		if got := len(m.recorded("enqueue")); got != agents {
			t.Errorf("%d warnings for %d agents", got, agents)
		}
	})
}

// quickQueue takes all that comes.
type quickQueue struct{ *memory }

func (q quickQueue) Enqueue(ctx context.Context, it *schema.Item) (schema.Receipt, error) {
	return schema.Receipt{}, q.called(ctx, "enqueue %v", it.Scope)
}

// manyRounds simulates the rounds of many idle agents whose time is over.
type manyRounds struct {
	fakeRounds
	agents int
}

func (m manyRounds) SoftDue() []schema.Round {
	all := make([]schema.Round, m.agents)
	for i := range all {
		all[i] = schema.Round{Agent: fmt.Sprint("agent-", i), Start: uint64(i + 1), WrapUp: true}
	}
	return all
}
