package state

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/schema"
)

// at is an attempt that began so long after the kill, which is at second 100.
func at(after, took time.Duration, failure string, items ...uint64) Attempt {
	return Attempt{At: killed().Add(after).UnixNano(), Took: schema.Duration(took), Items: items, Error: failure}
}

func killed() time.Time { return time.Unix(100, 0) }

func TestAKillIsJudgedByWhatWasWatched(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	l := new(Leaderless)
	l.judge(killed(),
		[]Attempt{at(-2*s, ms, "", 11), at(-s, 2*s, "", 12), at(s, 3*s, "no leader"), at(4*s, 2*s, "", 14), at(7*s, ms, "", 15)},
		[]Attempt{at(-s, ms, ""), at(s, 2*ms, ""), at(2*s, 4*ms, "nobody answered"), at(9*s, s, "")},
		[]Attempt{at(-2*s, ms, "", 11), at(3*s, 90*ms, ""), at(6*s, 100*ms, "", 12, 14, 15)})
	want := &Leaderless{
		NoEnqueue: schema.Duration(6 * s), NoDelivery: schema.Duration(6*s + 100*ms),
		Refused: 1, RefusedAfter: schema.Duration(3 * s), Why: "no leader",
		Calm:     Calls{Count: 1, P50: schema.Duration(ms), P99: schema.Duration(ms), Most: schema.Duration(ms)},
		Idle:     Calls{Count: 2, Unanswered: 1, P50: schema.Duration(4 * ms), P99: schema.Duration(4 * ms), Most: schema.Duration(4 * ms)},
		Due:      Calls{Count: 2, P50: schema.Duration(100 * ms), P99: schema.Duration(100 * ms), Most: schema.Duration(100 * ms)},
		Accepted: 4, Delivered: 4,
	}
	if d := cmp.Diff(want, l, cmpopts.IgnoreUnexported(Leaderless{})); d != "" {
		t.Error(d)
	}
	if l.OK() {
		t.Error("a call that was not answered is fine")
	}
	if l.Idle.Unanswered = 0; !l.OK() {
		t.Error("a kill after which all came is not fine")
	}
}

func TestAnItemThatComesTwiceDoesNotMakeUpForOneThatIsLost(t *testing.T) {
	l := &Leaderless{accepted: []uint64{1, 2, 3}}
	if l.take([]Attempt{at(0, 0, "", 1, 2)}); l.OK() || l.Lost != 1 {
		t.Errorf("one of three that did not come yet is %+v", l)
	}
	if l.take([]Attempt{at(0, 0, "", 2)}); l.OK() || l.Lost != 1 || l.Again != 1 {
		t.Errorf("one that came twice is %+v", l)
	}
	l = &Leaderless{accepted: []uint64{1, 2, 3}}
	if l.take([]Attempt{at(0, 0, "", 1, 2, 3, 4)}); !l.OK() || l.Delivered != 4 {
		t.Errorf("one that was refused and came is %+v", l)
	}
}

func TestAWatchGoesOnAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		all := watch(t.Context(), 10*time.Second, func(ctx context.Context) ([]uint64, error) {
			n++
			switch n {
			case 1:
				return []uint64{5, 6}, nil
			case 2:
				return nil, errors.New("no")
			}
			<-ctx.Done() // nobody answers
			return nil, context.Cause(ctx)
		})
		if len(all) != 3 || len(all[0].Items) != 2 || all[1].Error != "no" || all[2].Took.Std() != watchTry {
			t.Errorf("the attempts are %+v", all)
		}
	})
}

func TestSpeedBecomesRatiosToABareWrite(t *testing.T) {
	seen := map[key][]Told{}
	takes := map[string]schema.Duration{
		bare: 100, plain: 50, enqueue1: 150, claim: 170, claimed: 300, claim8: 190,
	}
	for name, took := range takes {
		for _, callers := range []int{1, many} {
			f := Told{Figures: measure.Figures{Calls: 1, P50: 1000 * took, P99: 2000 * took, PerSecond: 7}}
			seen[key{"here", name, callers}] = []Told{f, f, f}
		}
	}
	r := &Report{Broadcast: &Broadcast{Agents: 3, Writes: 1, Reached: 3}, Others: &Others{}, Leaderless: []*Leaderless{{Accepted: 1, Delivered: 1}}}
	r.speeds("here", seen)
	var ratios []float64
	for _, row := range r.Rows {
		ratios = append(ratios, row.Ratio)
	}
	if d := cmp.Diff([]float64{1.2, 1.4, 1.5}, ratios); d != "" {
		t.Error(d)
	}
	if len(r.Speed) != 2*len(takes) {
		t.Errorf("there are %d figures", len(r.Speed))
	}
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"170µs (340µs)", "1.20 [1.20 1.20]", "a broadcast to 3 agents", "kill -9 number 1"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
	if !r.OK() {
		t.Error("what was promised is not ok")
	}
	if r.Broadcast.Writes = 3; r.OK() {
		t.Error("a broadcast of three writes is ok")
	}
}

func TestPartsThatAreNot(t *testing.T) {
	if err := (&Options{Only: []string{"speed", "spread"}}).Check(); err == nil || !strings.Contains(err.Error(), `"spread"`) {
		t.Errorf("the error is %v", err)
	}
}
