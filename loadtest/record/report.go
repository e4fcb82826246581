package record

import (
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

// budget is what the facts may cost: of the time of half of the calls.
const budget = 1.05

// judge makes figures of what was measured: each window against that of the broker
// without a record in the same round.
func judge(d *result.Document, stands []*stand, rate float64) {
	table := result.Table{Title: "What a call takes", Columns: []string{"record", "calls", "p50", "p99", "CPU of the broker per call", "calls per second"}}
	base := stands[0]
	for _, s := range stands {
		table.Rows = append(table.Rows, []string{
			s.name, fmt.Sprint(s.asked), units.Value(median(s, latency), "s"), units.Value(median(s, tail), "s"),
			units.Value(median(s, cpu), "s"), fmt.Sprintf("%.0f", median(s, pace)),
		})
		if s == base || s.bytes != "" {
			continue
		}
		p50 := result.Figured("p50 with "+s.name+" : "+base.name, "ratio", result.Lower, ratios(s, base, latency))
		if s.name == facts {
			p50 = p50.Within(budget)
		}
		d.Figures = append(d.Figures, p50,
			result.Figured("CPU of the broker per call with "+s.name+" : "+base.name, "ratio", result.Lower, ratios(s, base, cpu)),
			result.Figured("CPU of the broker per call with "+s.name+", added", "s", result.Lower, added(s, base, cpu)))
	}
	d.Tables = []result.Table{table}
	for _, name := range []string{complete, bounded, newest, silent, nothing} {
		d.Check(name).Least = 1
	}
	d.Notes = []string{
		fmt.Sprintf("Each broker is asked %.0f times a second, with three hooks inside it; one after the other, in an order that is drawn for each repetition.", rate),
		"A call is answered before it is written down: what writing takes of the processor shows in its time only where the processor is busy with it.",
		"The CPU of the broker is all of it, off the path of calls too: making lines, hashing inputs, and the embedded server's writing to the disk.",
	}
}

func latency(s sample) float64 { return s.p50 }
func tail(s sample) float64    { return s.p99 }
func cpu(s sample) float64     { return s.cpu }
func pace(s sample) float64    { return s.rate }

func median(s *stand, of func(sample) float64) float64 {
	var all []float64
	for _, x := range s.samples {
		all = append(all, of(x))
	}
	return stats.Median(all)
}

// ratios are those of two brokers, repetition by repetition.
func ratios(s, base *stand, of func(sample) float64) (all []float64) {
	for i := range s.samples {
		all = append(all, of(s.samples[i])/of(base.samples[i]))
	}
	return all
}

// added is what one broker takes more than another one.
func added(s, base *stand, of func(sample) float64) (all []float64) {
	for i := range s.samples {
		all = append(all, of(s.samples[i])-of(base.samples[i]))
	}
	return all
}
