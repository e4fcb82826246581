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

// patience is how long one call may take before it counts as unanswered.
const patience = 10 * time.Second

// A Call asks once and checks the answer: an error is a wrong answer or none,
// and ends the whole window. It must be safe for many goroutines.
type Call func(ctx context.Context) error

// A Window says how to measure. The zero Window measures nothing.
type Window struct {
	// Callers is how many goroutines ask at the same time.
	Callers int `json:"callers"`
	// Warm runs before the window and is not counted.
	Warm schema.Duration `json:"warm"`
	// Long is the window itself.
	Long schema.Duration `json:"long"`
	// Rate is how many calls a second all callers together begin, at even distances,
	// as long as they are answered soon enough for that: what a call waits for the one
	// before is in its own time. 0: each begins its next one at once.
	Rate float64 `json:"rate,omitzero"`
}

// Figures are what a window showed.
type Figures struct {
	// Calls ended inside the window.
	Calls int64 `json:"calls"`
	// P50, P99 and P999 are quantiles of how long a call took.
	P50  schema.Duration `json:"p50"`
	P99  schema.Duration `json:"p99"`
	P999 schema.Duration `json:"p999,omitzero"`
	// Most is how long the longest took.
	Most schema.Duration `json:"most"`
	// PerSecond is the throughput of all callers together.
	PerSecond float64 `json:"per_second"`
	// Asked are all calls that were made, before and behind the window too, and
	// Used is what they took of the process that asked.
	Asked int64 `json:"asked"`
	Used  Used  `json:"used"`
}

// Run keeps w.Callers asking for w.Warm and w.Long. The garbage of what was
// measured before is collected first, so that nobody pays for others.
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

// Calls has callers make n calls together, for what cannot be asked for ever:
// the i-th call, counted from 0, is told its i.
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

// Together makes n calls, all at the same time, however long they take: the i-th,
// counted from 0, is told its i. It says how long each of them took.
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

// figures are what callers found together in so much time.
func figures(callers []*caller, took time.Duration) Figures {
	all, asked := histogram(), int64(0)
	for _, c := range callers {
		all.Merge(c.took)
		asked += c.asked
	}
	return read(all, asked, took)
}

// read reads the figures from what was counted of so many calls in so much time.
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

// histogram counts nanoseconds with an error below 0.1 %.
func histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(2*patience), 3) }

// caller is one goroutine's loop; what it found is read after it ended.
type caller struct {
	took  *hdrhistogram.Histogram
	last  time.Time // when its last counted call ended
	asked int64     // all calls, counted or not
	// every is how far apart its calls begin; 0: each follows the one before. due is
	// when the next one does.
	every time.Duration
	due   time.Time
}

// paced waits until the next call is due, and says since when it counts: since it was
// due, if the one before had not ended by then, or else since the timer, whose own
// lateness is nobody's answer.
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

// loop asks until the window ends, and on until one call was counted: a window
// that is shorter than a call, on a busy machine, becomes as long as that.
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

// record counts a call; what was due longer ago than can be counted counts as that.
func (c *caller) record(took time.Duration) error {
	if err := c.took.RecordValue(int64(min(took, 2*patience))); err != nil {
		return fmt.Errorf("a call took %v: %w", took, err)
	}
	return nil
}

// once gives every kind of call the same deadline, as a real caller would, so
// that what a context costs is in all figures alike.
func once(ctx context.Context, call Call) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return call(ctx)
}

// Pause waits, and reports whether ctx is still on.
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
