// Package measure runs closed loops for a short time: each caller sends its next call when
// the previous one was answered. A call counts in the window in which it ended. So calls
// that were in progress at the start replace those that the end cuts off, and slow calls count as
// fairly as fast ones.
package measure

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/schema"
)

// patience limits how long one call may take.
const patience = 10 * time.Second

// A Call asks once and checks the answer. An error is a wrong answer or no answer, and ends
// the whole window. It must be safe for concurrent use.
type Call func(ctx context.Context) error

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
	// P50, P99 and P999 are quantiles of the calls' durations.
	P50  schema.Duration `json:"p50"`
	P99  schema.Duration `json:"p99"`
	P999 schema.Duration `json:"p999,omitzero"`
	// Most is the longest duration of a call.
	Most schema.Duration `json:"most"`
	// PerSecond is the throughput of all callers together.
	PerSecond float64 `json:"per_second"`
	// Asked is the number of all calls, including those before and after the window. Used
	// is what they used in the process that asked.
	Asked int64 `json:"asked"`
	Used  Used  `json:"used"`
}

// Run makes w.Callers ask for w.Warm and w.Long. It first collects the garbage of earlier
// work, so that this measurement does not pay for it.
func Run(ctx context.Context, w Window, call Call) (Figures, error) {
	callers := make([]*caller, w.Callers)
	for i := range callers {
		callers[i] = &caller{took: histogram()}
	}
	runtime.GC()
	before := SoFar()
	from := time.Now().Add(w.Warm.Std())
	until := from.Add(w.Long.Std())
	g, ctx := errgroup.WithContext(ctx)
	for i, c := range callers {
		if w.Rate > 0 {
			c.every = time.Duration(float64(w.Callers) / w.Rate * float64(time.Second))
			c.due = time.Now().Add(c.every * time.Duration(i) / time.Duration(w.Callers))
		}
		g.Go(func() error { return c.loop(ctx, call, from, until) })
	}
	if err := g.Wait(); err != nil {
		return Figures{}, err
	}
	for _, c := range callers {
		if c.last.After(until) {
			until = c.last
		}
	}
	f := figures(callers, until.Sub(from))
	f.Used = SoFar().Since(before)
	return f, nil
}

// Calls makes n calls with the given number of concurrent callers, for measurements with a
// limited number of calls. Call i, counted from 0, gets its i.
func Calls(ctx context.Context, callers, n int, call func(ctx context.Context, i int) error) (Figures, error) {
	all := make([]*caller, callers)
	var next atomic.Int64
	runtime.GC()
	before := SoFar()
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i := range all {
		all[i] = &caller{took: histogram()}
		c := all[i]
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				start := time.Now()
				if err := once(ctx, func(ctx context.Context) error { return call(ctx, i) }); err != nil {
					return err
				}
				c.asked++
				if err := c.record(time.Since(start)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Figures{}, err
	}
	f := figures(all, time.Since(began))
	f.Used = SoFar().Since(before)
	return f, nil
}

// Together makes n calls at the same time, without a time limit. Call i, counted from 0,
// gets its i. It returns how long each of them took.
func Together(ctx context.Context, n int, call func(ctx context.Context, i int) error) (Figures, error) {
	if n == 0 {
		return Figures{}, nil
	}
	took := make([]time.Duration, n)
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(func() error {
			defer func() { took[i] = time.Since(began) }()
			return call(ctx, i)
		})
	}
	if err := g.Wait(); err != nil {
		return Figures{}, err
	}
	all := hdrhistogram.New(1, max(int64(slices.Max(took)), 2), 3)
	for _, d := range took {
		if err := all.RecordValue(int64(d)); err != nil {
			return Figures{}, fmt.Errorf("a call took %v: %w", d, err)
		}
	}
	return read(all, int64(n), time.Since(began)), nil
}

// figures returns the combined results of callers in the given time.
func figures(callers []*caller, took time.Duration) Figures {
	all, asked := histogram(), int64(0)
	for _, c := range callers {
		all.Merge(c.took)
		asked += c.asked
	}
	return read(all, asked, took)
}

// read returns the figures of a histogram.
func read(all *hdrhistogram.Histogram, asked int64, took time.Duration) Figures {
	return Figures{
		Asked:     asked,
		Calls:     all.TotalCount(),
		P50:       schema.Duration(all.ValueAtQuantile(50)),
		P99:       schema.Duration(all.ValueAtQuantile(99)),
		P999:      schema.Duration(all.ValueAtQuantile(99.9)),
		Most:      schema.Duration(all.Max()),
		PerSecond: float64(all.TotalCount()) / took.Seconds(),
	}
}

// histogram returns a histogram of nanoseconds with an error below 0.1 %.
func histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(2*patience), 3) }

// caller is the state of one goroutine. Its results are read after it has ended.
type caller struct {
	took  *hdrhistogram.Histogram
	last  time.Time // when its last counted call ended
	asked int64     // all calls, counted or not
	// every is the interval between its calls; 0: each follows the one before. due is when
	// the next one begins.
	every time.Duration
	due   time.Time
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
func (c *caller) loop(ctx context.Context, call Call, from, until time.Time) error {
	for start := time.Now(); start.Before(until) || c.last.IsZero(); {
		start = c.paced(ctx, start)
		if err := once(ctx, call); err != nil {
			return err
		}
		end := time.Now()
		c.asked++
		if end.After(from) && (!end.After(until) || c.last.IsZero()) {
			if err := c.record(end.Sub(start)); err != nil {
				return err
			}
			c.last = end
		}
		start = end
	}
	return nil
}

// record counts a call. It counts a call above the histogram's limit as that limit.
func (c *caller) record(took time.Duration) error {
	if err := c.took.RecordValue(int64(min(took, 2*patience))); err != nil {
		return fmt.Errorf("a call took %v: %w", took, err)
	}
	return nil
}

// once gives every kind of call the same deadline, as a real caller would, so that all
// figures include the cost of a context.
func once(ctx context.Context, call Call) error {
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
