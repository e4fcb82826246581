package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

func TestACallWithoutADeadlineUsesTheDefault(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 58500 * time.Millisecond, 10 * time.Second: 9750 * time.Millisecond} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, client.Options{Timeout: timeout})
				f.serve(beatFor(time.Hour))
				start := time.Now()
				_, err := f.client.Ask(t.Context(), event())
				if took := time.Since(start); !errors.Is(err, client.ErrUnanswered) || took != want {
					t.Errorf("%v after %v, want %v", err, took, want)
				}
			})
		})
	}
}

// beatFor sends beats to a call for a while, then answers it.
func beatFor(d time.Duration) func(*question) {
	return func(q *question) {
		var beat func()
		beat = func() {
			switch since := time.Since(q.at); {
			case since >= time.Minute: // the call has ended
			case since >= d:
				q.answer(schema.Allow, "at last")
			default:
				q.beat()
				time.AfterFunc(schema.BeatEvery, beat)
			}
		}
		time.AfterFunc(schema.BeatEvery, beat)
	}
}

func TestAskReturnsBeforeTheDeadline(t *testing.T) {
	for _, left := range []time.Duration{time.Millisecond, 30 * time.Millisecond, time.Second, time.Minute} {
		t.Run(left.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, client.Options{})
				f.serve(beatFor(time.Hour))
				start := time.Now()
				_, err := f.ask(left)
				if took := time.Since(start); !errors.Is(err, client.ErrUnanswered) || took >= left || took < left/2 {
					t.Errorf("%v after %v", err, took)
				}
				if n := len(f.questions()); n != 1 {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

func TestAFloodOfAnswersDoesNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) {
			for range 100 {
				q.beat()
				_ = q.m.RespondMsg(&nats.Msg{})
			}
			for range 100 {
				q.answer(schema.Deny, "no")
			}
		})
		for range 3 {
			if v, err := f.ask(time.Minute); err != nil || v.Decision != schema.Deny {
				t.Errorf("%+v, %v", v, err)
			}
		}
	})
}

func TestACancelledContextEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(beatFor(time.Hour))
		why := errors.New("changed its mind")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(why) })
		start := time.Now()
		if _, err := f.client.Ask(ctx, event()); !errors.Is(err, why) || !errors.Is(err, client.ErrUnanswered) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := f.client.Ask(ctx, event()); !errors.Is(err, why) || len(f.questions()) != 1 {
			t.Errorf("with a context that is over: %v", err)
		}
	})
}

func TestCloseEndsCallsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(beatFor(time.Hour))
		time.AfterFunc(3*time.Second, f.client.Close)
		start := time.Now()
		for range 2 {
			if _, err := f.ask(time.Minute); !errors.Is(err, client.ErrUnreachable) || time.Since(start) > 3100*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
	})
}

// An answer that arrives after its call has ended is counted, and is not used for another
// call.
func TestLateAnswersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) {
			if q.Attempt == 1 {
				time.AfterFunc(10*time.Second, func() { q.answer(schema.Allow, "late") })
			}
			for i := range 100 {
				time.AfterFunc(time.Duration(i)*schema.BeatEvery, q.beat)
			}
		})
		if v, err := f.ask(time.Second); !errors.Is(err, client.ErrUnanswered) {
			t.Errorf("%+v, %v", v, err)
		}
		if n := f.client.Late(); n != 0 {
			t.Errorf("%d came late before any came", n)
		}
		<-time.After(30 * time.Second)
		if n := f.client.Late(); n != 1 {
			t.Errorf("%d came late", n)
		}
	})
}
