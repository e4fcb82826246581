package chaos

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
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
func watch(m *fleet.Measured) *watcher {
	w := &watcher{series: m.Series, began: m.Began, long: int(m.Scenario.For.Std() / time.Second)}
	var calm []float64
	for second := range w.long {
		if disturbed(m.Done, w.at(second)) {
			continue
		}
		if k := w.second(second); k.Latency.Count() > 0 {
			calm = append(calm, k.Latency.At(0.99))
		}
	}
	w.calm = report.Median(calm)
	return w
}

// second returns the counts of a second, which begins at that time.
func (w *watcher) second(n int) load.Kind  { return w.series.Between(n, n+1) }
func (w *watcher) at(second int) time.Time { return w.began.Add(time.Duration(second) * time.Second) }

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
func (w *watcher) felt(done []faults.Done) (all []felt) {
	for i, d := range done {
		f := felt{Done: d, from: d.From.Sub(w.began).Seconds(), until: d.Until.Sub(w.began).Seconds()}
		end := w.long
		if n := slices.IndexFunc(done[i+1:], func(next faults.Done) bool { return next.From.After(d.Until) }); n >= 0 {
			end = min(end, int(done[i+1+n].From.Sub(w.began).Seconds()))
		}
		w.look(&f, end)
		all = append(all, f)
	}
	return all
}

// look evaluates the seconds from a fault's beginning to the end.
func (w *watcher) look(f *felt, end int) {
	last := -1
	for second := max(int(f.from), 0); second < end; second++ {
		k := w.second(second)
		f.longest = max(f.longest, k.Latency.At(1))
		f.failed += k.Missed()
		if k.Missed() > 0 || k.Latency.At(0.99) > w.bound() {
			last = second
		}
	}
	if last >= 0 {
		f.back = max(float64(last+1)-f.from, 0)
		f.never = last == end-1
	}
}

// table returns the table of the impact of all faults.
func (w *watcher) table(all []felt) report.Table {
	if len(all) > mostRows {
		return tableByKind(all)
	}
	t := report.Table{
		Title:   "Impact of each fault",
		Columns: []string{"at", "fault", "lasted", "longest wait", "without an answer", "felt for"},
		Note: fmt.Sprintf("The impact lasts from the start of the fault to the end of the last second in which a call got no answer or p99 exceeded %s. This limit is %d × the p99 of calm seconds, and at least %s. A kill lasts until a new process is ready. A call without an answer counts as waiting until its deadline.",
			report.Value(w.bound(), "s"), feltFactor, report.Value(feltLeast.Seconds(), "s")),
	}
	for _, f := range all {
		back := "not at all"
		switch {
		case f.never:
			back = "until the next fault or the end"
		case f.back > 0:
			back = report.Value(f.back, "s")
		}
		t.Rows = append(t.Rows, []string{
			report.Value(f.from, "s"), f.Fault.String(), report.Value(f.until-f.from, "s"),
			report.Value(f.longest, "s"), fmt.Sprint(f.failed), back,
		})
	}
	return t
}

// mostRows is the highest number of faults for a table with one row each.
const mostRows = 200

// tableByKind returns the impact of many faults, by their kind and the kind of their
// process.
func tableByKind(all []felt) report.Table {
	t := report.Table{Title: "Impact of the faults", Columns: []string{"fault", "times", "longest wait", "without an answer", "felt for at most"}}
	by := map[string][]felt{}
	for _, f := range all {
		by[f.What()] = append(by[f.What()], f)
	}
	for _, what := range slices.Sorted(maps.Keys(by)) {
		var longest, back float64
		var failed int64
		for _, f := range by[what] {
			longest, back, failed = max(longest, f.longest), max(back, f.back), failed+f.failed
		}
		t.Rows = append(t.Rows, []string{what, fmt.Sprint(len(by[what])), report.Value(longest, "s"), fmt.Sprint(failed), report.Value(back, "s")})
	}
	return t
}

// figures returns how long faults of each kind had an impact.
func figures(all []felt) []report.Figure {
	by := map[string][]float64{}
	longest := 0.0
	for _, f := range all {
		by[f.What()] = append(by[f.What()], f.back)
		longest = max(longest, f.longest)
	}
	var figures []report.Figure
	for _, what := range slices.Sorted(maps.Keys(by)) {
		figures = append(figures, report.Figured("felt: "+what, "s", report.Lower, by[what]))
	}
	return append(figures, report.Figured("longest wait under faults", "s", report.Lower, []float64{longest}))
}

// answered returns the check that calls get answers in calm seconds. It leaves out a second
// before one that is not calm.
func (w *watcher) answered(done []faults.Done) report.Check {
	c := report.Check{Name: fmt.Sprintf("every call was answered from %v after each fault on; after a cut, from as long as it had lasted", calmAfter)}
	for second := range w.long - 1 {
		if !disturbed(done, w.at(second)) && !disturbed(done, w.at(second+1)) {
			w.held(&c, second)
		}
	}
	return c
}

// held adds the calls that were due in a second to the check.
func (w *watcher) held(c *report.Check, second int) {
	k := w.second(second)
	c.Seen += k.Offered
	for range k.Missed() {
		c.Fail(fmt.Sprintf("a call that was due in second %d", second))
	}
}

// recovered returns the check that the fabric is normal again within a time after the last
// fault.
func (w *watcher) recovered(done []faults.Done, within time.Duration) report.Check {
	c := report.Check{Name: fmt.Sprintf("from %s after the last fault every call was answered", report.Value(within.Seconds(), "s")), Least: 1}
	over := 0.0
	for _, d := range done {
		over = max(over, d.Until.Add(within).Sub(w.began).Seconds())
	}
	for second := int(math.Ceil(over)); second < w.long; second++ {
		w.held(&c, second)
	}
	return c
}
