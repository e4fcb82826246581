package notice

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// Losses returns the names of the losses.
func Losses() []string {
	var names []string
	for _, l := range losses() {
		names = append(names, l.name)
	}
	return names
}

// Run causes each loss several times, in a fabric of its own.
func Run(ctx context.Context, o bench.Options) (*report.Document, error) {
	d := &report.Document{Notes: notes()}
	var parts []bench.Part
	for _, l := range losses() {
		parts = append(parts, bench.Part{Name: l.name, Run: func(ctx context.Context) error {
			samples, err := lose(ctx, &o, l)
			if err == nil || ctx.Err() != nil && len(samples) > 0 {
				judge(&o, d, l, samples)
			}
			return err
		}})
	}
	return d, o.Run(ctx, d, parts)
}

// lose causes one loss. An interrupted run returns the samples until then.
func lose(ctx context.Context, o *bench.Options, l loss) (samples []sample, err error) {
	s, err := open(ctx, o, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for n := range o.Times(10, 2) {
		if err := s.ready(ctx); err != nil {
			return samples, err
		}
		got, err := l.happen(s, ctx)
		if err != nil {
			return samples, fmt.Errorf("%s: %w", l.title, err)
		}
		samples = append(samples, got)
		o.Say("%s: %d of %d", l.title, n+1, o.Times(10, 2))
	}
	return samples, nil
}
