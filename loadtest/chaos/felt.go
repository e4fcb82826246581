package chaos

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

const (
	// feltFactor is how many times the p99 of calm seconds a second's p99 must be to show
	// an impact. feltLeast is the lowest such p99.
	feltFactor = 3
	feltLeast  = 20 * time.Millisecond
	// calmAfter is the least time after a fault until seconds count as calm again.
	calmAfter = 3 * time.Second
)

// felt is the impact of one fault on the calls.
type felt struct {
	faults.Done
	from, until float64 // in seconds since measuring began
	longest     float64 // the longest wait of a call that was due from then on, in seconds
	failed      int64   // calls without an answer
	back        float64 // seconds until normal; 0: no impact
	never       bool    // not normal before the next fault, or the end
}

// watcher evaluates the measurement.
type watcher struct {
	series *load.Series
	began  time.Time
	long   int // seconds
	calm   float64
}

// watch determines the normal p99: the median of all seconds without a fault. A single
// second may be slow because of other load on the machine.
func watch(series *load.Series, done []faults.Done, began time.Time, long time.Duration) (*watcher, error) {
	w := &watcher{series: series, began: began, long: int(long / time.Second)}
	var calm []float64
	for second := range w.long {
		if disturbed(done, began.Add(time.Duration(second)*time.Second)) {
			continue
		}
		k, err := series.Between(second, second+1)
		if err != nil {
			return nil, err
		}
		if k.Latency.Count() > 0 {
			calm = append(calm, k.Latency.At(0.99))
		}
	}
	w.calm = stats.Median(calm)
	return w, nil
}

// disturbed reports whether a fault may affect the second that begins then.
func disturbed(done []faults.Done, second time.Time) bool {
	return slices.ContainsFunc(done, func(d faults.Done) bool {
		return d.From.Before(second.Add(time.Second)) && calmFrom(&d).After(second)
	})
}

// calmFrom returns the time from which on seconds after a fault count as calm. TCP sends
// again at doubling intervals after a cut, and the last interval may be as long as the cut.
func calmFrom(d *faults.Done) time.Time {
	after := calmAfter
	if d.Fault.Kind.OnWire() {
		after = max(after, d.Until.Sub(d.From))
	}
	return d.Until.Add(after)
}

// bound returns the p99 from which on a second is affected.
func (w *watcher) bound() float64 { return Felt(w.calm) }

// Felt returns the p99 from which on a second is affected, given the p99 of calm seconds.
func Felt(calm float64) float64 { return max(feltFactor*calm, feltLeast.Seconds()) }

// felt returns the impact of each fault. A fault is charged for what happens until the next
// fault that began after its end.
func (w *watcher) felt(done []faults.Done) ([]felt, error) {
	var all []felt
	for i, d := range done {
		f := felt{Done: d, from: d.From.Sub(w.began).Seconds(), until: d.Until.Sub(w.began).Seconds()}
		end := float64(w.long)
		for _, next := range done[i+1:] {
			if next.From.After(d.Until) {
				end = min(end, next.From.Sub(w.began).Seconds())
				break
			}
		}
		if err := w.look(&f, int(end)); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// look evaluates the seconds from a fault's beginning to the end.
func (w *watcher) look(f *felt, end int) error {
	last := -1
	for second := max(int(f.from), 0); second < end; second++ {
		k, err := w.series.Between(second, second+1)
		if err != nil {
			return err
		}
		f.longest = max(f.longest, k.Latency.At(1))
		f.failed += k.Failed + k.Unsent
		if k.Failed+k.Unsent > 0 || k.Latency.At(0.99) > w.bound() {
			last = second
		}
	}
	if last >= 0 {
		f.back = max(float64(last+1)-f.from, 0)
		f.never = last == end-1
	}
	return nil
}

// what returns the fault with the kind of its member.
func (f felt) what() string { return fmt.Sprintf("%s of a %s", f.Fault.Kind, KindOf(f.Fault.Member)) }

// table returns the table of the impact of all faults.
func (w *watcher) table(all []felt) result.Table {
	if len(all) > mostRows {
		return tableByKind(all)
	}
	t := result.Table{
		Title:   "Impact of each fault",
		Columns: []string{"at", "fault", "lasted", "longest wait", "without an answer", "felt for"},
		Note: fmt.Sprintf("The impact lasts from the start of the fault to the end of the last second in which a call got no answer or p99 exceeded %s. This limit is %d × the p99 of calm seconds, and at least %s. A kill lasts until a new process is ready. A call without an answer counts as waiting until its deadline.",
			units.Value(w.bound(), "s"), feltFactor, units.Value(feltLeast.Seconds(), "s")),
	}
	for _, f := range all {
		back := "not at all"
		switch {
		case f.never:
			back = "until the next fault or the end"
		case f.back > 0:
			back = units.Value(f.back, "s")
		}
		t.Rows = append(t.Rows, []string{
			units.Value(f.from, "s"), f.Fault.String(), units.Value(f.until-f.from, "s"),
			units.Value(f.longest, "s"), fmt.Sprint(f.failed), back,
		})
	}
	return t
}

// mostRows is the highest number of faults for a table with one row each.
const mostRows = 200

// tableByKind returns the impact of many faults, by their kind and the kind of their
// process.
func tableByKind(all []felt) result.Table {
	t := result.Table{Title: "Impact of the faults", Columns: []string{"fault", "times", "longest wait", "without an answer", "felt for at most"}}
	by := map[string][]felt{}
	for _, f := range all {
		by[f.what()] = append(by[f.what()], f)
	}
	for _, what := range slices.Sorted(maps.Keys(by)) {
		var longest, back float64
		var failed int64
		for _, f := range by[what] {
			longest, back, failed = max(longest, f.longest), max(back, f.back), failed+f.failed
		}
		t.Rows = append(t.Rows, []string{what, fmt.Sprint(len(by[what])), units.Value(longest, "s"), fmt.Sprint(failed), units.Value(back, "s")})
	}
	return t
}

// figures returns how long faults of each kind had an impact.
func figures(all []felt) []result.Figure {
	by := map[string][]float64{}
	longest := 0.0
	for _, f := range all {
		by[f.what()] = append(by[f.what()], f.back)
		longest = max(longest, f.longest)
	}
	var figures []result.Figure
	for _, what := range slices.Sorted(maps.Keys(by)) {
		figures = append(figures, result.Figured("felt: "+what, "s", result.Lower, by[what]))
	}
	return append(figures, result.Figured("longest wait under faults", "s", result.Lower, []float64{longest}))
}

// answered returns the check that calls get answers in calm seconds. It leaves out a second
// before one that is not calm.
func (w *watcher) answered(done []faults.Done) (result.Check, error) {
	c := result.Check{Name: fmt.Sprintf("every call was answered from %v after each fault on; after a cut, from as long as it had lasted", calmAfter)}
	for second := range w.long - 1 {
		if at := w.began.Add(time.Duration(second) * time.Second); disturbed(done, at) || disturbed(done, at.Add(time.Second)) {
			continue
		}
		if err := w.held(&c, second); err != nil {
			return c, err
		}
	}
	return c, nil
}

// held adds the calls that were due in a second to the check.
func (w *watcher) held(c *result.Check, second int) error {
	k, err := w.series.Between(second, second+1)
	if err != nil {
		return err
	}
	c.Seen += k.Offered
	for range k.Failed + k.Unsent {
		c.Fail(fmt.Sprintf("a call that was due in second %d", second))
	}
	return nil
}

// recovered returns the check that the fabric is normal again within a time after the last
// fault.
func (w *watcher) recovered(done []faults.Done, within time.Duration) (result.Check, error) {
	c := result.Check{Name: fmt.Sprintf("from %s after the last fault every call was answered", units.Value(within.Seconds(), "s")), Least: 1}
	over := 0.0
	for _, d := range done {
		over = max(over, d.Until.Add(within).Sub(w.began).Seconds())
	}
	for second := int(math.Ceil(over)); second < w.long; second++ {
		if err := w.held(&c, second); err != nil {
			return c, err
		}
	}
	return c, nil
}
