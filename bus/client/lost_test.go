package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

func TestACallWithBeatsIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(beatFor(10 * time.Second))
		start := time.Now()
		v, err := f.ask(time.Minute)
		if err != nil || v.Reason != "at last" || len(f.questions()) != 1 || time.Since(start) < 10*time.Second {
			t.Errorf("%+v, %v, asked %d times, after %v", v, err, len(f.questions()), time.Since(start))
		}
	})
}

func TestACallIsRepeatedAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) {
			if q.Attempt == 2 {
				q.answer(schema.Deny, "the second one")
			}
		})
		v, err := f.ask(time.Minute)
		if err != nil || v.Reason != "the second one" {
			t.Fatalf("%+v, %v", v, err)
		}
		q := f.questions()
		if len(q) != 2 || q[0].Attempt != 1 || q[1].Attempt != 2 || q[0].ID != q[1].ID || q[0].Tool != q[1].Tool || string(q[0].Body) != string(q[1].Body) {
			t.Errorf("%+v", q)
		}
		if wait := q[1].at.Sub(q[0].at); wait != schema.Missed*schema.BeatEvery {
			t.Errorf("asked again after %v", wait)
		}
		if left := q[1].Left; left >= q[0].Left-700*time.Millisecond {
			t.Errorf("the second attempt has %v left, the first time %v", left, q[0].Left)
		}
	})
}

func TestACallIsRepeatedWhenBeatsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) {
			if q.Attempt == 2 {
				q.answer(schema.Allow, "")
				return
			}
			for i := range 4 {
				time.AfterFunc(time.Duration(i+1)*schema.BeatEvery, q.beat)
			}
		})
		if _, err := f.ask(time.Minute); err != nil {
			t.Fatal(err)
		}
		q := f.questions()
		if wait := q[1].at.Sub(q[0].at); wait != 1750*time.Millisecond {
			t.Errorf("asked again after %v", wait)
		}
	})
}

func TestSilenceTwiceIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(*question) {})
		start := time.Now()
		_, err := f.ask(time.Minute)
		if took := time.Since(start); !errors.Is(err, client.ErrUnanswered) || took != 1500*time.Millisecond || len(f.questions()) != 2 {
			t.Errorf("%v after %v, asked %d times", err, took, len(f.questions()))
		}
	})
}

func TestTheFirstAttemptsAnswerCountsAfterTheSecondWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) {
			if q.Attempt == 1 {
				time.AfterFunc(time.Second, func() { q.answer(schema.Deny, "the slow one") })
			}
		})
		if v, err := f.ask(time.Minute); err != nil || v.Reason != "the slow one" {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

func TestACallIsRepeatedAtOnceAfterALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) {
			if q.Attempt == 2 {
				q.answer(schema.Allow, "")
				return
			}
			f.link.cut(0)
		})
		if _, err := f.ask(time.Minute); err != nil {
			t.Fatal(err)
		}
		q := f.questions()
		if wait := q[1].at.Sub(q[0].at); len(q) != 2 || q[0].ID != q[1].ID || wait > 500*time.Millisecond {
			t.Errorf("asked %d times, again after %v", len(q), wait)
		}
	})
}

func TestALongOutageIsErrUnreachable(t *testing.T) {
	for name, asked := range map[string]bool{"before it was asked": false, "after it was asked": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, client.Options{})
				f.serve(func(*question) { f.link.cut(time.Minute) })
				if !asked {
					f.link.cut(time.Minute)
					synctest.Wait()
				}
				start := time.Now()
				_, err := f.ask(30 * time.Second)
				if took := time.Since(start); !errors.Is(err, client.ErrUnreachable) || took != 5*time.Second {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// During a long outage, calls of a long-lived process do not wait.
func TestCallsDoNotWaitDuringALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) { q.answer(schema.Allow, "") })
		f.link.cut(time.Minute)
		synctest.Wait()
		<-time.After(4 * time.Second)
		// The rest of the patience, the time of one reconnect, and nothing.
		for _, want := range []time.Duration{time.Second, 150 * time.Millisecond, 0} {
			start := time.Now()
			if _, err := f.ask(30 * time.Second); !errors.Is(err, client.ErrUnreachable) || time.Since(start) != want {
				t.Errorf("%v after %v, not %v", err, time.Since(start), want)
			}
		}
		<-time.After(time.Minute)
		if _, err := f.ask(30 * time.Second); err != nil {
			t.Errorf("with the connection back: %v", err)
		}
	})
}

// After a long outage, the first call after the connection is back is judged.
func TestTheFirstCallAfterAnOutageIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) { q.answer(schema.Allow, "") })
		for range 10 { // the pauses are random
			f.link.cut(time.Minute)
			synctest.Wait()
			<-time.After(time.Minute + time.Millisecond)
			if _, err := f.ask(30 * time.Second); err != nil {
				t.Errorf("the connection is back, and the call is not judged: %v", err)
				<-time.After(10 * time.Second)
			}
		}
	})
}

func TestACallWaitsForTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) { q.answer(schema.Allow, "") })
		f.link.cut(3 * time.Second)
		synctest.Wait()
		if _, err := f.ask(time.Minute); err != nil || f.questions()[0].Attempt != 1 {
			t.Errorf("%v, %+v", err, f.questions())
		}
	})
}

func TestACallWaitsForAnAggregator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		start := time.Now()
		_, err := f.ask(time.Minute)
		if took := time.Since(start); !errors.Is(err, client.ErrUnreachable) || took < 5*time.Second || took > 5100*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		time.AfterFunc(3*time.Second, func() { f.serve(func(q *question) { q.answer(schema.Allow, "") }) })
		start = time.Now()
		if _, err := f.ask(time.Minute); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 3*time.Second || took > 3100*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		if q := f.questions(); len(q) != 1 || q[0].Attempt != 1 || q[0].Left > 54200*time.Millisecond {
			t.Errorf("%+v", q)
		}
	})
}

func TestAShortCallKeepsItsDeadlineWithoutAnAggregator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		if _, err := f.ask(time.Second); !errors.Is(err, client.ErrUnreachable) {
			t.Error(err)
		}
	})
}

func TestConnectWithoutAServerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, err := client.Connect(t.Context(), client.Options{InProcess: &link{down: true}}); !errors.Is(err, client.ErrUnreachable) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := client.Connect(ctx, client.Options{}); !errors.Is(err, client.ErrUnreachable) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
