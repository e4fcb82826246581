package state

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// A Report is what a run showed. What was not measured is absent.
type Report struct {
	result.Document
	// Rows are the ratios, judged.
	Rows []bench.Row `json:"rows"`
	// Speed are absolute figures: true for this machine in that hour.
	Speed []Speed `json:"speed,omitzero"`
	// Others is what items cost that wait for others.
	Others *Others `json:"others,omitzero"`
	// Given is what calls wrote that were given items.
	Given []*Given `json:"given,omitzero"`
	// Broadcast is what one item for all agents came to.
	Broadcast *Broadcast `json:"broadcast,omitzero"`
	// Leaderless is what happened after each kill of a leader.
	Leaderless []*Leaderless `json:"leaderless,omitzero"`
	// Failures are parts that could not be measured, and why.
	Failures []string `json:"failures,omitzero"`
	// Repetitions and Window are how it was measured.
	Repetitions int             `json:"repetitions"`
	Window      schema.Duration `json:"window"`
}

// OK reports whether every budget was kept, and every promise.
func (r *Report) OK() bool {
	return len(r.Failures) == 0 && !slices.ContainsFunc(r.Rows, func(r bench.Row) bool { return !r.OK }) &&
		!slices.ContainsFunc(r.Given, func(g *Given) bool { return !g.OK() }) &&
		(r.Broadcast == nil || r.Broadcast.OK()) &&
		!slices.ContainsFunc(r.Leaderless, func(l *Leaderless) bool { return !l.OK() })
}

// legible drops the digits of nanoseconds that mean nothing.
func legible(ns float64) schema.Duration {
	return schema.Duration(time.Duration(ns).Round(time.Microsecond))
}

// Print writes r as tables for people.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	r.printSpeed(t)
	r.printRows(t)
	if r.Others != nil {
		r.Others.write(t)
	}
	for _, g := range r.Given {
		fmt.Fprintf(t, "\n%d calls that deliver %d items each\t%d writes\t%s\n", g.Calls, g.Items, g.Writes, verdict(g.OK()))
	}
	if b := r.Broadcast; b != nil {
		fmt.Fprintf(t, "\na broadcast to %d agents\t%d writes, %d bytes, delivered to %d agents after %d calls of each\t%s\n",
			b.Agents, b.Writes, b.Bytes, b.Reached, b.Passes, verdict(b.OK()))
	}
	for i, l := range r.Leaderless {
		l.write(t, i+1)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(t, "\nnot measured: %s\n", f)
	}
	fmt.Fprintf(t, "\n%d repetitions; %v\n", r.Repetitions, r.Machine)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "NOT AS PROMISED"
}

// printSpeed writes one line per thing, one caller and many beside each other.
func (r *Report) printSpeed(w io.Writer) {
	site := ""
	for i, one := range r.Speed {
		if one.Callers > 1 {
			continue // it stands beside the one before
		}
		if one.Site != site {
			site = one.Site
			fmt.Fprintf(w, "%s%s\tp50, 1 caller (p99)\tper second\tp50, %d callers (p99)\tper second\n", gap(i), site, many)
		}
		fmt.Fprintf(w, "  %s%s", one.Name, one.cells())
		if next := i + 1; next < len(r.Speed) && r.Speed[next].Callers > 1 {
			fmt.Fprint(w, r.Speed[next].cells())
		}
		fmt.Fprintln(w)
	}
}

// cells are the figures of a line, and which part of the calls went on without
// what waited.
func (s *Speed) cells() string {
	late := ""
	if s.Late > 0 {
		late = fmt.Sprintf("; %.1f %% too late", 100*s.Late)
	}
	return fmt.Sprintf("\t%v (%v)\t%.0f%s", s.P50, s.P99, s.PerSecond, late)
}

func gap(i int) string {
	if i == 0 {
		return ""
	}
	return "\n"
}

func (r *Report) printRows(w io.Writer) {
	if len(r.Rows) > 0 {
		fmt.Fprintf(w, "\nratio [95 %%] budget\tp50\n")
	}
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%s, %d callers\t%s\n", row.Name, row.Callers, row.Cell())
	}
}

func (t *Others) write(w io.Writer) {
	fmt.Fprintf(w, "\n%d items wait for %d other agents\n", t.Items, t.Agents)
	fmt.Fprintf(w, "  a call with them, without; 1 and %d callers\t%v, %v\n", many, t.With, t.Without)
	fmt.Fprintf(w, "  each takes\t%.0f bytes of heap, %.0f of the machine's memory\n", t.HeapPerItem, t.MemoryPerItem)
	fmt.Fprintf(w, "  the broker is ready after\t%v; after a kill -9 %v; without items %v\n", t.Start, t.StartAfterKill, t.StartEmpty)
}

func (l *Leaderless) write(w io.Writer, n int) {
	led := "the items' stream"
	if l.BothLed {
		led = "both streams"
	}
	fmt.Fprintf(w, "\nkill -9 number %d, of the leader of %s\t%s\n", n, led, verdict(l.OK()))
	fmt.Fprintf(w, "  nothing accepted for, nothing delivered for\t%v, %v\n", l.NoEnqueue, l.NoDelivery)
	fmt.Fprintf(w, "  rejected items\t%d, after at most %v: %s\n", l.Refused, l.RefusedAfter, l.Why)
	for _, c := range []struct {
		name  string
		calls Calls
	}{{"calls before", l.Calm}, {"calls without a leader, nothing waits", l.Idle}, {"calls without a leader, an item waits", l.Due}} {
		fmt.Fprintf(w, "  %s\t%d, %d unanswered, p50 %v, p99 %v, at most %v\n", c.name, c.calls.Count, c.calls.Unanswered, c.calls.P50, c.calls.P99, c.calls.Most)
	}
	fmt.Fprintf(w, "  accepted, delivered, lost, delivered again\t%d, %d, %d, %d\n", l.Accepted, l.Delivered, l.Lost, l.Again)
}
