package rounds_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func open(t testing.TB, js jetstream.JetStream, o rounds.Options) *rounds.Rounds {
	t.Helper()
	r, err := rounds.Open(t.Context(), js, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func dur(d time.Duration) *schema.Duration { return new(schema.Duration(d)) }

func start(t testing.TB, r *rounds.Rounds, agent string, req schema.RoundRequest) schema.Round {
	t.Helper()
	round, err := r.Start(t.Context(), agent, &req)
	if err != nil {
		t.Fatal(err)
	}
	return round
}

// wantRound compares a known round, without its start.
func wantRound(t testing.TB, r *rounds.Rounds, agent string, want schema.Round) {
	t.Helper()
	synctest.Wait()
	got, ok := r.Get(agent)
	want.Agent, want.Start = agent, got.Start
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

const minute = schema.Duration(time.Minute)

func TestARoundFromStartToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, bustest.JetStream(t, bustest.Start(t)), rounds.Options{})
		if _, ok := r.Get("a"); ok || r.Ready() != nil || len(r.SoftDue()) > 0 {
			t.Errorf("there is a round, or no mirror: %v", r.Ready())
		}
		first := start(t, r, "a", schema.RoundRequest{Initial: dur(10 * time.Minute), Subsequent: dur(5 * time.Minute)})
		want := schema.Round{Initial: dur(10 * time.Minute), Subsequent: dur(5 * time.Minute), Grace: 2 * minute}
		wantRound(t, r, "a", want)
		<-time.After(10*time.Minute - time.Second)
		if due := r.SoftDue(); len(due) > 0 {
			t.Errorf("due too early: %v", due)
		}
		<-time.After(time.Second)
		want.Elapsed = 10 * minute
		wantRound(t, r, "a", want)
		if due := r.SoftDue(); len(due) != 1 || due[0].Start != first.Start {
			t.Errorf("due: %v", due)
		}
		<-time.After(time.Minute)
		for range 2 { // the second time changes nothing
			if err := r.Warned(t.Context(), "a", first.Start); err != nil {
				t.Fatal(err)
			}
			want.Elapsed, want.Warned = want.Elapsed+minute, true
			wantRound(t, r, "a", want)
			<-time.After(time.Minute)
			want.Since += minute
		}
		want.Elapsed += minute
		wantRound(t, r, "a", want)
		if round, _ := r.Get("a"); !round.Blocked() || len(r.SoftDue()) > 0 {
			t.Errorf("after the grace: %+v; due: %v", round, r.SoftDue())
		}
		second := start(t, r, "a", schema.RoundRequest{})
		wantRound(t, r, "a", schema.Round{Number: 1, Initial: want.Initial, Subsequent: want.Subsequent, Grace: want.Grace})
		if err := r.Warned(t.Context(), "a", first.Start); err != nil || second.Start <= first.Start {
			t.Errorf("%v; rounds began at %d and %d", err, first.Start, second.Start)
		}
		wantRound(t, r, "a", schema.Round{Number: 1, Initial: want.Initial, Subsequent: want.Subsequent, Grace: want.Grace})
	})
}

func TestTenDenialsInARowEndTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, bustest.JetStream(t, bustest.Start(t)), rounds.Options{})
		s := start(t, r, "a", schema.RoundRequest{}).Start
		deny := func(start uint64, event string, denials int, terminate bool) {
			t.Helper()
			got, err := r.Denied(t.Context(), "a", start, event)
			if err != nil || got.Denials != denials || got.Terminate != terminate {
				t.Errorf("%s: %d denials, terminate %v, %v; want %d, %v", event, got.Denials, got.Terminate, err, denials, terminate)
			}
		}
		for i := range 9 {
			deny(s, fmt.Sprint("e", i), i+1, false)
			deny(s, fmt.Sprint("e", i), i+1, false) // the same call once more
		}
		if err := r.Passed(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		for i := range 10 {
			deny(s, fmt.Sprint("f", i), i+1, i == 9)
		}
		deny(s, "f10", 10, true)
		if err := r.Passed(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		wantRound(t, r, "a", schema.Round{Grace: 2 * minute, Terminate: true})
		next := start(t, r, "a", schema.RoundRequest{Number: new(7)}).Start
		wantRound(t, r, "a", schema.Round{Number: 7, Grace: 2 * minute})
		deny(s, "late", 0, false)
		deny(next, "e0", 1, false)
		if _, err := r.Denied(t.Context(), "b", next, "e"); !errors.Is(err, rounds.ErrNone) {
			t.Errorf("without a round: %v", err)
		}
	})
}

func TestWrapUpNeedsNoRoundAndNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, bustest.JetStream(t, bustest.Start(t)), rounds.Options{})
		wrap := func(agent string, req schema.RoundRequest, want bool) {
			t.Helper()
			if _, asked, err := r.WrapUp(t.Context(), agent, &req); asked != want || err != nil {
				t.Errorf("%s: %v, %v", agent, asked, err)
			}
		}
		wrap("none", schema.RoundRequest{Initial: dur(time.Hour)}, true)
		wrap("none", schema.RoundRequest{}, false)
		start(t, r, "one", schema.RoundRequest{Initial: dur(time.Hour)})
		wrap("one", schema.RoundRequest{Grace: dur(0)}, true)
		wantRound(t, r, "none", schema.Round{Grace: 2 * minute, WrapUp: true})
		wantRound(t, r, "one", schema.Round{Initial: dur(time.Hour), WrapUp: true})
		due := map[string]uint64{}
		for _, round := range r.SoftDue() {
			due[round.Agent] = round.Start
		}
		if got := slices.Sorted(maps.Keys(due)); !slices.Equal(got, []string{"none", "one"}) {
			t.Errorf("due: %v", got)
		}
		if err := r.Warned(t.Context(), "one", due["one"]); err != nil {
			t.Error(err)
		}
		if round, _ := r.Get("one"); !round.Blocked() {
			t.Errorf("warned, without a grace: %+v", round)
		}
		start(t, r, "one", schema.RoundRequest{})
		wrap("one", schema.RoundRequest{}, true)
	})
}

func TestALimitOfZeroIsDueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, bustest.JetStream(t, bustest.Start(t)), rounds.Options{})
		start(t, r, "a", schema.RoundRequest{Initial: dur(0)})
		if due := r.SoftDue(); len(due) != 1 {
			t.Errorf("due: %v", due)
		}
	})
}

func TestRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, bustest.JetStream(t, bustest.Start(t)), rounds.Options{})
		for says, req := range map[string]schema.RoundRequest{
			"initial is -1ns":    {Initial: dur(-1)},
			"subsequent is -1ns": {Subsequent: dur(-1)},
			"grace is -1ns":      {Grace: dur(-1)},
			"number is -1":       {Number: new(-1)},
		} {
			_, err := r.Start(t.Context(), "a", &req)
			_, _, werr := r.WrapUp(t.Context(), "a", &req)
			if !errors.Is(err, rounds.ErrInvalid) || !strings.Contains(err.Error(), says) || !errors.Is(werr, rounds.ErrInvalid) {
				t.Errorf("%v, %v", err, werr)
			}
		}
		if _, err := r.Start(t.Context(), "", &schema.RoundRequest{}); !errors.Is(err, rounds.ErrInvalid) {
			t.Errorf("without an agent: %v", err)
		}
		if _, ok := r.Get("a"); ok {
			t.Error("there is a round")
		}
	})
}

// TestManyRaceForOneAgent has brokers race, each with callers that race.
func TestManyRaceForOneAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		var starts, warned, denied, conflicts atomic.Int64
		var brokers []*rounds.Rounds
		for range 8 {
			brokers = append(brokers, open(t, bustest.JetStream(t, srv), rounds.Options{
				Conflict: func() { conflicts.Add(1) },
				Step: func(s rounds.Step) error {
					switch s {
					case rounds.StepStartStored:
						starts.Add(1)
					case rounds.StepWarnedStored:
						warned.Add(1)
					case rounds.StepDenialStored:
						denied.Add(1)
					}
					return nil
				},
			}))
		}
		race := func(what func(r *rounds.Rounds, i int) error) {
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					if err := what(brokers[i%len(brokers)], i); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		var seen sync.Map
		race(func(r *rounds.Rounds, _ int) error {
			round, err := r.Start(t.Context(), "a", &schema.RoundRequest{})
			if _, twice := seen.LoadOrStore(round.Number, round.Start); twice {
				t.Errorf("two rounds have the number %d", round.Number)
			}
			return err
		})
		wantRound(t, brokers[0], "a", schema.Round{Number: 63, Grace: 2 * minute, Elapsed: elapsed(brokers[0])})
		last, _ := brokers[0].Get("a")
		race(func(r *rounds.Rounds, _ int) error { return r.Warned(t.Context(), "a", last.Start) })
		race(func(r *rounds.Rounds, i int) error {
			_, err := r.Denied(t.Context(), "a", last.Start, fmt.Sprint("e", i%7))
			return err
		})
		for i, r := range brokers {
			synctest.Wait()
			if got, _ := r.Get("a"); got.Denials != 7 || got.Terminate || !got.Warned || got.Start != last.Start {
				t.Errorf("broker %d: %+v", i, got)
			}
		}
		if starts.Load() != 64 || warned.Load() != 1 || denied.Load() != 7 || conflicts.Load() == 0 {
			t.Errorf("stored: %d starts, %d warnings, %d denials; %d conflicts", starts.Load(), warned.Load(), denied.Load(), conflicts.Load())
		}
	})
}

func elapsed(r *rounds.Rounds) schema.Duration {
	synctest.Wait()
	round, _ := r.Get("a")
	return round.Elapsed
}

// TestWorkEndsAtAStep holds what is stored when a process dies at each step.
func TestWorkEndsAtAStep(t *testing.T) {
	for step, want := range map[rounds.Step]schema.Round{
		rounds.StepStartStored:  {Number: 1, Grace: 2 * minute},
		rounds.StepWarnedBegun:  {Grace: 2 * minute},
		rounds.StepWarnedStored: {Grace: 2 * minute, Warned: true},
		rounds.StepDenialBegun:  {Grace: 2 * minute},
		rounds.StepDenialStored: {Grace: 2 * minute, Denials: 1},
	} {
		t.Run(string(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js, died, on := bustest.JetStream(t, bustest.Start(t)), errors.New("died"), false
				r := open(t, js, rounds.Options{Step: func(s rounds.Step) error {
					if on && s == step {
						return died
					}
					return nil
				}})
				s := start(t, r, "a", schema.RoundRequest{}).Start
				on = true
				var err error
				switch step {
				case rounds.StepStartStored:
					_, err = r.Start(t.Context(), "a", &schema.RoundRequest{})
				case rounds.StepWarnedBegun, rounds.StepWarnedStored:
					err = r.Warned(t.Context(), "a", s)
				default:
					_, err = r.Denied(t.Context(), "a", s, "e")
				}
				if !errors.Is(err, died) {
					t.Errorf("error %v", err)
				}
				wantRound(t, open(t, js, rounds.Options{}), "a", want)
			})
		})
	}
}

func TestRoundsOutliveProcessesAndAreSeenByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		one, other := open(t, bustest.JetStream(t, srv), rounds.Options{}), open(t, bustest.JetStream(t, srv), rounds.Options{})
		s := start(t, one, "an agent", schema.RoundRequest{Initial: dur(time.Hour)}).Start
		<-time.After(time.Minute)
		if err := other.Warned(t.Context(), "an agent", s); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if _, err := one.Denied(t.Context(), "an agent", s, "e"); err != nil {
			t.Fatal(err)
		}
		want := schema.Round{Initial: dur(time.Hour), Grace: 2 * minute, Elapsed: 2 * minute, Warned: true, Since: minute, Denials: 1}
		for _, r := range []*rounds.Rounds{one, other, open(t, bustest.JetStream(t, srv), rounds.Options{})} {
			wantRound(t, r, "an agent", want)
		}
	})
}

// TestARoundThatNothingHappensToLapses also holds that it is gone where the
// marker of its end was missed: a file store in a bubble keeps none.
func TestARoundThatNothingHappensToLapses(t *testing.T) {
	for _, storage := range []jetstream.StorageType{jetstream.FileStorage, jetstream.MemoryStorage} {
		t.Run(storage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js := bustest.JetStream(t, bustest.Start(t))
				// A bucket that is there keeps its own limits; 30 days would take too long.
				_, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
					Bucket: rounds.Bucket, TTL: 5 * time.Minute, LimitMarkerTTL: time.Minute, Storage: storage})
				if err != nil {
					t.Fatal(err)
				}
				r := open(t, js, rounds.Options{})
				start(t, r, "a", schema.RoundRequest{Number: new(5), Subsequent: dur(0)})
				<-time.After(4 * time.Minute)
				if len(r.SoftDue()) != 1 {
					t.Error("it lapsed too early")
				}
				<-time.After(time.Minute + 30*time.Second)
				synctest.Wait()
				if round, ok := r.Get("a"); ok || len(r.SoftDue()) > 0 {
					t.Errorf("there still is %+v", round)
				}
				start(t, r, "a", schema.RoundRequest{})
				wantRound(t, r, "a", schema.Round{Grace: 2 * minute})
			})
		})
	}
}

func TestLatestReadsRoundsThatTheMirrorDoesNotHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		behind, other := open(t, js, rounds.Options{}), open(t, js, rounds.Options{})
		if r, ok, err := behind.Latest(t.Context(), "a"); ok || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
		if err := behind.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := start(t, other, "a", schema.RoundRequest{})
		if r, ok := behind.Get("a"); ok {
			t.Errorf("it has heard of %+v", r)
		}
		for range 2 { // the second time it knows itself
			if r, ok, err := behind.Latest(t.Context(), "a"); !ok || err != nil || r.Start != first.Start {
				t.Errorf("%+v, %v", r, err)
			}
		}
		if r, ok := behind.Get("a"); !ok || r.Start != first.Start {
			t.Errorf("it forgot %+v", r)
		}
	})
}

func TestAStoppedServerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		r := open(t, js, rounds.Options{})
		s := start(t, r, "a", schema.RoundRequest{}).Start
		if _, err := r.Denied(t.Context(), "a", s, "e"); err != nil {
			t.Fatal(err)
		}
		js.Conn().Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, serr := r.Start(ctx, "a", &schema.RoundRequest{})
		_, _, wrap := r.WrapUp(ctx, "a", &schema.RoundRequest{})
		_, derr := r.Denied(ctx, "a", s, "f")
		_, _, lerr := r.Latest(ctx, "a")
		for i, err := range []error{serr, wrap, derr, lerr, r.Warned(ctx, "a", s), r.Passed(ctx, "a")} {
			if !errors.Is(err, rounds.ErrUnavailable) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		<-time.After(5 * time.Second)
		if r.Ready() == nil {
			t.Error("it says that it is ready")
		}
		wantRound(t, r, "a", schema.Round{Grace: 2 * minute, Denials: 1, Elapsed: elapsed(r)})
	})
}

// Two brokers want to bring the soft warning with verdicts at the same moment.
func TestOneVerdictAtATimeBringsTheSoftWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		brokers := []*rounds.Rounds{open(t, bustest.JetStream(t, srv), rounds.Options{}), open(t, bustest.JetStream(t, srv), rounds.Options{})}
		round := start(t, brokers[0], "a", schema.RoundRequest{Initial: dur(0), Grace: dur(time.Minute)})
		synctest.Wait()
		bring := func(events ...string) (may []string, first int) {
			t.Helper()
			var mu sync.Mutex
			var all sync.WaitGroup
			for i, event := range events {
				all.Go(func() {
					ok, new, err := brokers[i%2].Warn(t.Context(), "a", rounds.Warning{Start: round.Start, Event: event, Lease: 30 * time.Second})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					if ok {
						may = append(may, event)
					}
					if new {
						first++
					}
				})
			}
			all.Wait()
			synctest.Wait()
			return may, first
		}
		may, first := bring("1", "2", "3", "4")
		if len(may) != 1 || first != 1 {
			t.Fatalf("%q, %d of them first", may, first)
		}
		won := may[0]
		if event, _ := brokers[1].Warning("a"); event != won {
			t.Errorf("the other broker knows of %q", event)
		}
		if may, first := bring("5", won); !slices.Equal(may, []string{won}) || first > 0 {
			t.Errorf("within the lease: %q, %d first", may, first)
		}
		<-time.After(30 * time.Second)
		if may, first := bring("6"); len(may) != 1 || first > 0 {
			t.Errorf("after it: %q, %d first", may, first)
		}
		if err := brokers[1].Acked(t.Context(), "a", []string{won, "other"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r, _ := brokers[0].Get("a"); r.Warned {
			t.Errorf("an event that does not bring it any more was acknowledged: %+v", r)
		}
		if err := brokers[1].Acked(t.Context(), "a", []string{"other", "6"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r, _ := brokers[0].Get("a"); !r.Warned {
			t.Errorf("%+v", r)
		}
		if may, _ := bring("7"); len(may) > 0 {
			t.Errorf("after it was handed over: %q", may)
		}
		next := start(t, brokers[0], "a", schema.RoundRequest{})
		synctest.Wait()
		if event, _ := brokers[1].Warning("a"); event != "" || next.Start == round.Start {
			t.Errorf("%q brought the warning of another round", event)
		}
		if may, _ := bring("8"); len(may) > 0 {
			t.Errorf("it was of the round before: %q", may)
		}
	})
}
