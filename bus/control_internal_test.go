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

// A saying is what somebody who is asked says, and how long after that.
type saying struct {
	after time.Duration
	err   error
}

// never is after how long who hangs answers.
const never = time.Hour

func TestTheFirstAnswerCountsWhoeverWasAsked(t *testing.T) {
	gone := errors.New("the connection is closed")
	for name, c := range map[string]struct {
		all   []saying // of one after the other, and then of nobody any more
		whose int      // is the answer
		err   error
		took  time.Duration
		asked int
	}{
		"one that is quick":                         {all: []saying{{after: time.Millisecond}}, whose: 1, took: time.Millisecond, asked: 1},
		"the second, where one hangs":               {all: []saying{{after: never}, {after: time.Millisecond}}, whose: 2, took: 101 * time.Millisecond, asked: 2},
		"the first, if it is sooner":                {all: []saying{{after: 140 * time.Millisecond}, {after: never}}, whose: 1, took: 140 * time.Millisecond, asked: 2},
		"the fourth, after three that hang":         {all: []saying{{after: never}, {after: never}, {after: never}, {}}, whose: 4, took: 300 * time.Millisecond, asked: 4},
		"a slow one of whom nobody else would know": {all: []saying{{after: 950 * time.Millisecond}}, whose: 1, took: 950 * time.Millisecond, asked: 10},
		"nobody, where nobody is":                   {err: nats.ErrNoResponders, asked: 1},
		"nobody, where nobody is any more":          {all: []saying{{after: 150 * time.Millisecond, err: nats.ErrNoResponders}}, err: nats.ErrNoResponders, took: 150 * time.Millisecond, asked: 2},
		"an error, which is not waited out":         {all: []saying{{after: never}, {err: gone}}, err: gone, took: 100 * time.Millisecond, asked: 2},
		"nobody, where all of them hang":            {all: slices.Repeat([]saying{{after: never}}, 100), err: context.DeadlineExceeded, took: 3 * time.Second, asked: mostTries},
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
					t.Errorf("%v after %v, with %d asked", err, took, asked.Load())
				}
				if err == nil && m != answers[c.whose-1] {
					t.Error("it is the answer of another one")
				}
			})
		})
	}
}
