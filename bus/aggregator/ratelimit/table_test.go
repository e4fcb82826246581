package ratelimit_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
)

func TestABurstPassesAndThenTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := ratelimit.NewTable(ratelimit.Limits{Rate: 10, Burst: 3})
		key := table.Key(0, "a")
		enter := func() (ratelimit.Verdict, time.Duration) {
			v, wait := table.Enter(key, time.Now())
			if v == ratelimit.Pass {
				table.Leave(key)
			}
			return v, wait
		}
		for range 3 {
			if v, _ := enter(); v != ratelimit.Pass {
				t.Fatalf("the burst: %v", v)
			}
		}
		v, wait := enter()
		if v != ratelimit.OverRate || wait != 100*time.Millisecond {
			t.Fatalf("after the burst: %v, wait %v", v, wait)
		}
		<-time.After(wait - 1)
		if v, wait = enter(); v != ratelimit.OverRate || wait != 1 {
			t.Fatalf("a nanosecond too early: %v, wait %v", v, wait)
		}
		<-time.After(wait)
		if v, _ = enter(); v != ratelimit.Pass {
			t.Fatalf("after the announced time: %v", v)
		}
		if v, _ := table.Enter(table.Key(0, "b"), time.Now()); v != ratelimit.Pass {
			t.Errorf("another agent: %v", v)
		}
		if v, _ := table.Enter(table.Key(1, "a"), time.Now()); v != ratelimit.Pass {
			t.Errorf("another kind of the same agent: %v", v)
		}
		<-time.After(time.Hour)
		n := 0
		for v, _ := enter(); v == ratelimit.Pass; v, _ = enter() {
			n++
		}
		if n != 3 {
			t.Errorf("%d pass at once after an hour, the burst is 3", n)
		}
	})
}

func TestCallsUnderWayAreBoundedUntilTheyLeave(t *testing.T) {
	table := ratelimit.NewTable(ratelimit.Limits{Calls: 2})
	key, now := table.Key(0, "a"), time.Now()
	for i, want := range []ratelimit.Verdict{ratelimit.Pass, ratelimit.Pass, ratelimit.OverCalls, ratelimit.OverCalls} {
		if v, wait := table.Enter(key, now); v != want || wait != 0 {
			t.Fatalf("call %d: %v, wait %v; want %v", i, v, wait, want)
		}
	}
	table.Leave(key)
	if v, _ := table.Enter(key, now); v != ratelimit.Pass {
		t.Errorf("after one left: %v", v)
	}
	if v, _ := table.Enter(key, now); v != ratelimit.OverCalls {
		t.Errorf("one left, two came: %v", v)
	}
}

// TestNeverMoreThanTheBurstAndTheRatePass checks that no interval admits more events than the burst
// and what the rate gives in it. An agent that stays below that is never refused.
func TestNeverMoreThanTheBurstAndTheRatePass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.1, 10_000).Draw(t, "rate")
		burst := rapid.IntRange(1, 50).Draw(t, "burst")
		table := ratelimit.NewTable(ratelimit.Limits{Rate: rate, Burst: burst})
		key, now := table.Key(0, "a"), time.Now()
		var passed []time.Time
		tokens, last := float64(burst), now
		for _, pause := range rapid.SliceOfN(rapid.Float64Range(0, 5), 1, 200).Draw(t, "pauses, in intervals") {
			now = now.Add(time.Duration(pause / rate * float64(time.Second)))
			tokens = min(float64(burst), tokens+now.Sub(last).Seconds()*rate)
			last = now
			v, wait := table.Enter(key, now)
			const much = 1e-3 // the error of rounding to nanoseconds
			switch {
			case v == ratelimit.Pass:
				table.Leave(key)
				passed = append(passed, now)
				tokens--
			case tokens > 1+much:
				t.Fatalf("refused with %v tokens", tokens)
			case wait <= 0:
				t.Fatalf("refused, and may come again after %v", wait)
			}
		}
		for i := range passed {
			for j := i; j < len(passed); j++ {
				if most := float64(burst) + passed[j].Sub(passed[i]).Seconds()*rate; float64(j-i+1) > most+1e-6 {
					t.Fatalf("%d passed within %v; the burst is %d, the rate %v", j-i+1, passed[j].Sub(passed[i]), burst, rate)
				}
			}
		}
	})
}

// TestMadeUpNamesGetNobodyForgottenWhoIsOverALimit checks that a flood of invented names takes no
// more memory, and does not displace an agent that is over its limits.
func TestMadeUpNamesGetNobodyForgottenWhoIsOverALimit(t *testing.T) {
	table := ratelimit.NewTable(ratelimit.Limits{Rate: 1, Burst: 100, Calls: 100})
	began := time.Now()
	now := began.Add(time.Hour)
	over, busy := table.Key(0, "over"), table.Key(0, "busy")
	for range 100 {
		table.Enter(over, now)
		table.Leave(over)
	}
	for range 100 {
		table.Enter(busy, began)
	}
	i := 0
	flood := func() {
		key := table.Key(0, fmt.Sprint("made up ", i))
		table.Enter(key, now)
		table.Leave(key)
		i++
	}
	if grown := testing.AllocsPerRun(200_000, flood); grown > 3 { // the names themselves
		t.Errorf("each made-up name allocates %v times", grown)
	}
	if v, _ := table.Enter(over, now); v != ratelimit.OverRate {
		t.Errorf("who was over its rate: %v", v)
	}
	// A hundred calls need not be remembered for a rate that they are long within.
	if v, _ := table.Enter(busy, now); v == ratelimit.Pass {
		t.Error("who had too many calls under way was forgotten")
	}
}

func TestLimitsThatMakeNoSenseAreSaid(t *testing.T) {
	for want, l := range map[string]ratelimit.Limits{
		"use 0.001 to":         {Rate: -1},
		"to 1000000":           {Rate: 1e9},
		"use 1 to 1000000":     {Rate: 1, Burst: -1},
		"without --agent-rate": {Burst: 5},
		"0 for no limit":       {Calls: -1},
	} {
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", l, err, want)
		}
	}
	for _, l := range []ratelimit.Limits{{}, {Rate: 0.5}, {Rate: 20, Burst: 1, Calls: 3}} {
		if err := l.Check(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if ratelimit.NewTable(ratelimit.Limits{}) != nil {
		t.Error("limits that bound nothing need no table")
	}
}

func TestManyMayEnterAtOnce(t *testing.T) {
	table := ratelimit.NewTable(ratelimit.Limits{Calls: 3})
	key := table.Key(0, "a")
	var wg sync.WaitGroup
	var mu sync.Mutex
	under, passed := 0, 0
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				if v, _ := table.Enter(key, time.Now()); v != ratelimit.Pass {
					continue
				}
				mu.Lock()
				if under, passed = under+1, passed+1; under > 3 {
					t.Error("more than three are under way")
				}
				under--
				mu.Unlock()
				table.Leave(key)
			}
		})
	}
	wg.Wait()
	if passed == 0 {
		t.Error("no call passed")
	}
}

func BenchmarkEnterAndLeave(b *testing.B) {
	for _, agents := range []int{1, 10_000} {
		b.Run(fmt.Sprint(agents, " agents"), func(b *testing.B) {
			table := ratelimit.NewTable(ratelimit.Limits{Rate: 1e6, Burst: 1e6, Calls: 1000})
			names := make([]string, agents)
			for i := range names {
				names[i] = fmt.Sprint("claude-", i, "-0199f3c1-6d1f-7e8a")
			}
			b.ReportAllocs()
			now, i := time.Now(), 0
			for b.Loop() {
				key := table.Key(0, names[i%len(names)])
				if v, _ := table.Enter(key, now); v == ratelimit.Pass {
					table.Leave(key)
				}
				i++
			}
		})
	}
}
