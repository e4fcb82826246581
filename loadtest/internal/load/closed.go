package load

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/schema"
)

// patience limits how long one call of a closed loop may take.
const patience = 10 * time.Second

// A Window says how to measure. The zero Window has no calls.
type Window struct {
	// Callers is how many goroutines ask at the same time.
	Callers int `json:"callers"`
	// Warm runs before the window and is not counted.
	Warm schema.Duration `json:"warm"`
	// Long is the length of the window.
	Long schema.Duration `json:"long"`
	// Rate is how many calls a second all callers together begin, at equal intervals. If
	// answers are late, the wait for the previous call counts as part of a call. 0: each
	// caller begins its next call at once.
	Rate float64 `json:"rate,omitzero"`
}

// Figures are the results of a window.
type Figures struct {
	// Calls ended inside the window.
	Calls int64 `json:"calls"`
	// P50, P99 and P999 are quantiles of the calls' durations, Most is the longest one.
	P50  schema.Duration `json:"p50"`
	P99  schema.Duration `json:"p99"`
	P999 schema.Duration `json:"p999,omitzero"`
	Most schema.Duration `json:"most"`
	// PerSecond is the throughput of all callers together.
	PerSecond float64 `json:"per_second"`
	// Asked is the number of all calls, including those before and after the window. Used
	// is what they used in the process that asked.
	Asked int64 `json:"asked"`
	Used  Used  `json:"used"`
}

// caller is the state of one goroutine. Its results are read after it has ended.
type caller struct {
	took  []time.Duration // of counted calls
	last  time.Time       // when its last counted call ended
	asked int64           // all calls, counted or not
	// every is the interval between its calls; 0: each follows the one before. due is when
	// the next one begins.
	every time.Duration
	due   time.Time
}

// Run makes w.Callers call for w.Warm and w.Long. call asks once and checks the answer; an
// error ends the whole window. Garbage of earlier work is collected first, so that this
// measurement does not pay for it.
func Run(ctx context.Context, w Window, call func(context.Context) error) (Figures, error) {
	runtime.GC()
	from := time.Now().Add(w.Warm.Std())
	until := from.Add(w.Long.Std())
	callers, used, err := together(ctx, w.Callers, func(ctx context.Context, i int, c *caller) error {
		if w.Rate > 0 {
			c.every = time.Duration(float64(w.Callers) / w.Rate * float64(time.Second))
			c.due = time.Now().Add(c.every * time.Duration(i) / time.Duration(w.Callers))
		}
		return c.loop(ctx, call, from, until)
	})
	for _, c := range callers {
		if c.last.After(until) {
			until = c.last
		}
	}
	return figures(callers, until.Sub(from), used), err
}

// Calls makes n calls with the given number of concurrent callers, for measurements with a
// limited number of calls. Call i, counted from 0, gets its i.
func Calls(ctx context.Context, callers, n int, call func(ctx context.Context, i int) error) (Figures, error) {
	runtime.GC()
	var next atomic.Int64
	began := time.Now()
	all, used, err := together(ctx, callers, func(ctx context.Context, _ int, c *caller) error {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			start := time.Now()
			if err := once(ctx, func(ctx context.Context) error { return call(ctx, i) }); err != nil {
				return err
			}
			c.asked, c.took = c.asked+1, append(c.took, time.Since(start))
		}
		return nil
	})
	return figures(all, time.Since(began), used), err
}

// together runs n callers, and returns them and what they used.
func together(ctx context.Context, n int, run func(ctx context.Context, i int, c *caller) error) ([]*caller, Used, error) {
	before, all := SoFar(), make([]*caller, n)
	g, ctx := errgroup.WithContext(ctx)
	for i := range all {
		all[i] = new(caller)
		g.Go(func() error { return run(ctx, i, all[i]) })
	}
	err := g.Wait()
	return all, SoFar().Since(before), err
}

// figures returns the combined results of callers in the given time.
func figures(callers []*caller, took time.Duration, used Used) Figures {
	f := Figures{Used: used}
	var all []time.Duration
	for _, c := range callers {
		f.Asked += c.asked
		all = append(all, c.took...)
	}
	if len(all) == 0 {
		return f
	}
	slices.Sort(all)
	at := func(q float64) schema.Duration { return schema.Duration(all[int(math.Ceil(q*float64(len(all))))-1]) }
	f.Calls, f.PerSecond = int64(len(all)), float64(len(all))/took.Seconds()
	f.P50, f.P99, f.P999, f.Most = at(0.5), at(0.99), at(0.999), at(1)
	return f
}

// paced waits until the next call is due, and returns the time from which it counts. If the
// call before ended too late, that is the due time. Otherwise it is the time of the timer,
// because a late timer is not part of the answer.
func (c *caller) paced(ctx context.Context, start time.Time) time.Time {
	if c.every == 0 {
		return start
	}
	due := c.due
	c.due = due.Add(c.every)
	if left := due.Sub(start); left > 0 {
		Pause(ctx, left)
		return time.Now()
	}
	return due
}

// loop asks until the window ends and one call was counted. On a busy machine a window may
// be shorter than a call; the window is then as long as that call.
func (c *caller) loop(ctx context.Context, call func(context.Context) error, from, until time.Time) error {
	for start := time.Now(); start.Before(until) || c.last.IsZero(); {
		start = c.paced(ctx, start)
		if err := once(ctx, call); err != nil {
			return err
		}
		end := time.Now()
		c.asked++
		if end.After(from) && (!end.After(until) || c.last.IsZero()) {
			c.took, c.last = append(c.took, end.Sub(start)), end
		}
		start = end
	}
	return nil
}

// once gives every kind of call the same deadline, as a real caller would, so that all
// figures include the cost of a context.
func once(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return call(ctx)
}

// Pause waits, and reports whether ctx has not ended.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Until calls try every so often until it returns nil. When ctx ends first, it returns the
// cause of that with the last error of try.
func Until(ctx context.Context, every time.Duration, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if !Pause(ctx, every) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
