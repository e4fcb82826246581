package record

import (
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

// budget is what the facts may cost: of the time of half of the calls, at the rate.
const budget = 1.05

// A load is one of the two ways in which brokers are asked.
type load struct {
	// title is of its table, suffix of its figures.
	title, suffix string
	of            func(*stand) []sample
}

func loads(rate float64) (steady, busy load) {
	return load{fmt.Sprintf("Call with %d hooks, %.0f times a second", steadyHooks, rate), fmt.Sprintf(", %.0f times a second", rate), func(s *stand) []sample { return s.steady }},
		load{fmt.Sprintf("Call with %d hooks, %d callers flat out", busyHooks, flatOut), fmt.Sprintf(", %d callers flat out", flatOut), func(s *stand) []sample { return s.busy }}
}

// judge makes figures of what was measured: each window against that of the broker
// without a record in the same round.
func judge(d *result.Document, stands []*stand, rate float64) {
	steady, busy := loads(rate)
	d.Tables = []result.Table{steady.table(stands), busy.table(stands)}
	for _, s := range stands[1:] {
		if s.bytes != "" {
			continue
		}
		p50 := steady.ratio("p50", s, stands[0], result.Lower, latency)
		if s.name == facts {
			p50 = p50.Within(budget)
		}
		d.Figures = append(d.Figures, p50,
			steady.ratio("CPU of the broker per call", s, stands[0], result.Lower, cpu), steady.added(s, stands[0]),
			busy.ratio("throughput", s, stands[0], result.Higher, pace), busy.ratio("p50", s, stands[0], result.Lower, latency), busy.added(s, stands[0]))
	}
	for _, name := range []string{complete, bounded, newest, silent, nothing} {
		d.Check(name).Least = 1
	}
	d.Notes = []string{
		"The hooks run inside the broker. Each repetition measures the brokers in random order, and compares them with the one without a record.",
		"The broker answers a call before it records it, so recording affects latency only if the CPUs are busy. The budget holds at the given rate; at full speed, callers, broker and record share the CPUs.",
		"The CPU of the broker includes work after the answer: encoding lines, hashing inputs, and writes to the disk by the embedded server.",
	}
}

// table is what each broker showed.
func (l load) table(stands []*stand) result.Table {
	t := result.Table{Title: l.title, Columns: []string{"record", "p50", "p99", "CPU of the broker per call", "calls per second"}}
	for _, s := range stands {
		middle := func(of func(sample) float64) float64 {
			var all []float64
			for _, x := range l.of(s) {
				all = append(all, of(x))
			}
			return stats.Median(all)
		}
		t.Rows = append(t.Rows, []string{
			s.name, units.Value(middle(latency), "s"), units.Value(middle(tail), "s"), units.Value(middle(cpu), "s"), fmt.Sprintf("%.0f", middle(pace)),
		})
	}
	return t
}

func latency(s sample) float64 { return s.p50 }
func tail(s sample) float64    { return s.p99 }
func cpu(s sample) float64     { return s.cpu }
func pace(s sample) float64    { return s.rate }

// ratio compares two brokers, repetition by repetition.
func (l load) ratio(what string, s, base *stand, better result.Better, of func(sample) float64) result.Figure {
	var all []float64
	for i, x := range l.of(s) {
		all = append(all, of(x)/of(l.of(base)[i]))
	}
	return result.Figured(what+" with "+s.name+" : "+base.name+l.suffix, "ratio", better, all)
}

// added is what one broker takes of processors more than another one.
func (l load) added(s, base *stand) result.Figure {
	var all []float64
	for i, x := range l.of(s) {
		all = append(all, x.cpu-l.of(base)[i].cpu)
	}
	return result.Figured("CPU of the broker per call, added by "+s.name+l.suffix, "s", result.Lower, all)
}
