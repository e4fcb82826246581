package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
)

// ground records its faults and their times.
type ground struct {
	members []string
	refuses string // the member at which faults fail

	mu    sync.Mutex // guards what follows
	began time.Time
	log   []string
	under map[string]int // the number of current faults by member
}

func newGround(members ...string) *ground {
	return &ground{members: members, began: time.Now(), under: map[string]int{}}
}

func (g *ground) Members() []string { return g.members }

func (g *ground) Fault(ctx context.Context, f Fault) error {
	if f.Member == g.refuses {
		return errors.New("not to me")
	}
	g.note("%v", f)
	g.mu.Lock()
	g.under[f.Member]++
	if g.under[f.Member] > 1 {
		g.log = append(g.log, "two faults at once to "+f.Member)
	}
	g.mu.Unlock()
	load.Pause(ctx, f.For.Std())
	g.mu.Lock()
	g.under[f.Member]--
	g.mu.Unlock()
	if f.For > 0 {
		g.note("end of %v", f)
	}
	return nil
}

func (g *ground) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = append(g.log, fmt.Sprintf("%v: ", time.Since(g.began))+fmt.Sprintf(format, args...))
}

func TestFaultsAreDoneOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGround("a", "b")
		s := &Schedule{For: 10 * time.Second, Faults: []Fault{
			{Kind: Cut, Member: "b", At: seconds(8), For: seconds(5)},
			{Kind: Kill, Member: "a", At: seconds(4)},
			{Kind: Kill, Member: "a", At: seconds(1)},
			{Kind: Kill, Member: "b", At: seconds(10)},
		}}
		done, err := s.Run(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"1s: kill -9 a", "4s: kill -9 a", "8s: cut b", "10s: end of cut b"}
		if d := cmp.Diff(want, g.log); d != "" {
			t.Error(d)
		}
		marks := Marks(done, g.began)
		if len(marks) != 3 || marks[2].X != 8 || marks[2].Until != 10 || marks[2].Label != "cut b" || marks[2].Group != "cut of a b" {
			t.Errorf("the marks are %+v", marks)
		}
	})
}

func TestFaultsToOneMemberWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGround("a", "b")
		s := &Schedule{Faults: []Fault{
			{Kind: Stop, Member: "a", At: seconds(1), For: seconds(3)},
			{Kind: Stop, Member: "b", At: seconds(2), For: seconds(1)},
			{Kind: Kill, Member: "a", At: seconds(2)},
		}}
		done, err := s.Run(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"1s: stop a", "2s: stop b", "3s: end of stop b", "4s: end of stop a", "4s: kill -9 a"}
		if d := cmp.Diff(want, g.log); d != "" {
			t.Error(d)
		}
		if last := done[len(done)-1]; last.From.Sub(g.began) != 4*time.Second {
			t.Errorf("the kill is said to have been at %v", last.From.Sub(g.began))
		}
	})
}

func TestTheSameSeedDrawsTheSameMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drawn := func(seed uint64) string {
			g := newGround("w-1", "w-2", "w-3")
			s := &Schedule{Seed: seed}
			for i := range 20 {
				s.Faults = append(s.Faults, Fault{Kind: Kill, Member: "w-*", At: seconds(float64(i))})
			}
			if _, err := s.Run(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			return strings.Join(g.log, "\n")
		}
		if first := drawn(7); first != drawn(7) {
			t.Error("two runs of one seed differ")
		}
		if drawn(7) == drawn(8) {
			t.Error("two seeds draw the same members twenty times")
		}
	})
}

func TestAContextThatEndsUndoesWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGround("a")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		s := &Schedule{Faults: []Fault{{Kind: Cut, Member: "a", At: seconds(1), For: seconds(60)}}}
		if _, err := s.Run(ctx, g); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"1s: cut a", "2s: end of cut a"}, g.log); d != "" {
			t.Error(d)
		}
	})
}

func TestAFaultThatCanNotBeDoneEndsTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGround("a", "b")
		g.refuses = "b"
		s := &Schedule{Faults: []Fault{
			{Kind: Cut, Member: "a", For: seconds(60)},
			{Kind: Kill, Member: "b", At: seconds(1)},
			{Kind: Kill, Member: "a", At: seconds(90)},
		}}
		_, err := s.Run(t.Context(), g)
		if err == nil || !strings.Contains(err.Error(), "kill -9 b: not to me") {
			t.Errorf("the error is %v", err)
		}
		if !slices.Equal(g.log, []string{"0s: cut a", "1s: end of cut a"}) {
			t.Errorf("what was done is %q", g.log)
		}
		if _, err := (&Schedule{Faults: []Fault{{Kind: Kill, Member: "c"}}}).Run(t.Context(), g); err == nil {
			t.Error("a fault to nobody went well")
		}
	})
}
