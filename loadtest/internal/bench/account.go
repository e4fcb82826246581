package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/internal/account"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

// caller and total are the last rows of an account. The work of the caller is not divided, because half of it is
// the measurement.
const (
	caller = "the caller, all purposes"
	total  = "all"
)

// accounted lists the rows of the command account: the floors and the calls that are compared with them.
func accounted() []row {
	names := []string{floorIn, noHook, inBroker(1), inBroker(8), floorOut, inPool(1), inPool(8)}
	var all []row
	for _, name := range names {
		i := slices.IndexFunc(calls(), func(r row) bool { return r.name == name })
		all = append(all, calls()[i])
	}
	return all
}

// Account measures what the processor time of a call is for, with many callers, by CPU profiles of the
// processes that answer.
func Account(ctx context.Context, o Options) (*Report, error) {
	r := &Report{EventBytes: roles.EventSize, Window: o.Milliseconds(2000, 400), Warm: o.Milliseconds(100, 20), Repetitions: o.Times(5, 1)}
	o.Crew = o.Crew.Like(roles.KeepPages)
	f, err := o.Start(ctx, "fabric", callHooks(), roles.BrokerConfig{Record: o.Record}, answering()...)
	if err != nil {
		return nil, err
	}
	f.account = true
	return r, errors.Join(o.account(ctx, f, r), f.Stop())
}

func (o *Options) account(ctx context.Context, f *Fabric, r *Report) error {
	if err := f.Ask(ctx); err != nil {
		return err
	}
	var all []Contender
	for _, row := range accounted() {
		all = append(all, Contender{Name: row.name, Measure: func(ctx context.Context, callers int) (Sample, error) {
			return f.Measure(ctx, row.target, load.Window{Callers: callers, Warm: r.Warm, Long: r.Window})
		}})
	}
	samples, err := o.Repeat(ctx, r.Repetitions, []int{Many}, all)
	if err != nil {
		return err
	}
	t := report.Table{
		Title: fmt.Sprintf("CPU time of a call by purpose, %d callers, in µs", Many), Columns: []string{""},
		Note: "Each process's time is divided like the samples of its CPU profile. The profile itself takes some of the time.",
	}
	for _, c := range all {
		t.Columns = append(t.Columns, c.Name)
	}
	line := func(name string, value func(Sample) float64) {
		cells := []string{name}
		for _, c := range all {
			median := report.Median(values(samples[c.Name], Many, value))
			cells = append(cells, fmt.Sprintf("%.1f", 1e6*median))
			r.Figures = append(r.Figures, report.Figured(fmt.Sprintf("%s, %s", c.Name, name), "s", report.Lower, samples.Of(c.Name, Many, value)))
		}
		t.Rows = append(t.Rows, cells)
	}
	for _, p := range account.Purposes() {
		line(string(p), func(s Sample) float64 { return s.Purposes[p] })
	}
	line(caller, CPUOf(roles.Requester))
	line(total, func(s Sample) float64 {
		sum := CPUOf(roles.Requester)(s)
		for _, p := range account.Purposes() { // in one order: sums of floats depend on it
			sum += s.Purposes[p]
		}
		return sum
	})
	r.Tables = append(r.Tables, t)
	return nil
}
