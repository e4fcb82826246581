package bus

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// A reply is the reply of one broker, and its delay.
type reply struct {
	after time.Duration
	err   error
}

// never is the delay of a broker that hangs.
const never = time.Hour

func TestTheFirstAnswerCounts(t *testing.T) {
	gone := errors.New("the connection is closed")
	for name, c := range map[string]struct {
		all    []reply // of one try after the other; the tries after these find no responder
		answer int     // the number of the try whose answer is returned
		err    error
		took   time.Duration
		asked  int
	}{
		"one quick answer":                     {all: []reply{{after: time.Millisecond}}, answer: 1, took: time.Millisecond, asked: 1},
		"the second answer if the first hangs": {all: []reply{{after: never}, {after: time.Millisecond}}, answer: 2, took: 101 * time.Millisecond, asked: 2},
		"the first answer if it is sooner":     {all: []reply{{after: 140 * time.Millisecond}, {after: never}}, answer: 1, took: 140 * time.Millisecond, asked: 2},
		"the fourth answer if three hang":      {all: []reply{{after: never}, {after: never}, {after: never}, {}}, answer: 4, took: 300 * time.Millisecond, asked: 4},
		"one slow answer, then no responders":  {all: []reply{{after: 950 * time.Millisecond}}, answer: 1, took: 950 * time.Millisecond, asked: 10},
		"no responders":                        {err: nats.ErrNoResponders, asked: 1},
		"no responders after a while":          {all: []reply{{after: 150 * time.Millisecond, err: nats.ErrNoResponders}}, err: nats.ErrNoResponders, took: 150 * time.Millisecond, asked: 2},
		"another error is returned at once":    {all: []reply{{after: never}, {err: gone}}, err: gone, took: 100 * time.Millisecond, asked: 2},
		"all of them hang":                     {all: slices.Repeat([]reply{{after: never}}, 100), err: context.DeadlineExceeded, took: 3 * time.Second, asked: maxTries},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				var asked atomic.Int32
				answers := make([]*nats.Msg, len(c.all))
				for i := range answers {
					answers[i] = &nats.Msg{}
				}
				start := time.Now()
				m, err := first(ctx, 100*time.Millisecond, func(ctx context.Context) (*nats.Msg, error) {
					i := int(asked.Add(1)) - 1
					if i >= len(c.all) {
						return nil, nats.ErrNoResponders
					}
					select {
					case <-time.After(c.all[i].after):
						return answers[i], c.all[i].err
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				})
				if took := time.Since(start); !errors.Is(err, c.err) || took != c.took || int(asked.Load()) != c.asked {
					t.Errorf("%v after %v and %d tries", err, took, asked.Load())
				}
				if err == nil && m != answers[c.answer-1] {
					t.Error("it is the answer to another try")
				}
			})
		})
	}
}
