package state

import (
	"context"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// watchTry is how long one attempt of a watch may take, and watchEvery the
	// pause between two.
	watchTry   = 10 * time.Second
	watchEvery = 2 * time.Millisecond
)

// An Attempt is one call of a watch, and what came of it.
type Attempt struct {
	// At is when it began, in nanoseconds of this machine's clock.
	At   int64           `json:"at"`
	Took schema.Duration `json:"took"`
	// Items are those that it brought, or put into the queue, by their places in that.
	Items []uint64 `json:"items,omitzero"`
	// Error is why it failed; empty: it did not.
	Error string `json:"error,omitzero"`
}

// ended is when it did.
func (a Attempt) ended() time.Time { return time.Unix(0, a.At).Add(a.Took.Std()) }

// watch makes one attempt after the other for so long, whatever comes of them.
func watch(ctx context.Context, long time.Duration, try func(ctx context.Context) (items []uint64, err error)) []Attempt {
	var all []Attempt
	for end := time.Now().Add(long); time.Now().Before(end) && measure.Pause(ctx, watchEvery); {
		began := time.Now()
		one, cancel := context.WithTimeout(ctx, watchTry)
		items, err := try(one)
		cancel()
		a := Attempt{At: began.UnixNano(), Took: schema.Duration(time.Since(began)), Items: items}
		if err != nil {
			a.Error = err.Error()
		}
		all = append(all, a)
	}
	return all
}
