package bench

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// TestEveryRowIsAFigure holds the figures, which other runs are compared with, to
// the rows.
func TestEveryRowIsAFigure(t *testing.T) {
	o := Thorough()
	o.Slack = 1.3
	r := judged(o, steady(map[string]time.Duration{noMatch: 50 * time.Microsecond}))
	if err := r.Sound(); err != nil {
		t.Fatal(err)
	}
	if len(r.Figures) != len(r.Rows) {
		t.Fatalf("there are %d figures of %d rows", len(r.Figures), len(r.Rows))
	}
	for i, f := range r.Figures {
		row := r.Rows[i]
		if rounded(f.Value) != row.Ratio || (f.Budget == nil) != (row.Budget == nil) || f.OK() != row.OK || len(f.Samples) != 10 || (f.Better == result.Higher) != (row.Metric == throughput) {
			t.Errorf("the figure of %+v is %+v", row, f)
		}
	}
	if f := r.Figures[0]; f.Name != "no hook matches, p50, 1 caller" || f.Value != 0.5 {
		t.Errorf("the first figure is %+v", f)
	}
}

// TestRatiosAreDrawnByHooks holds the plots to the rows that they are of.
func TestRatiosAreDrawnByHooks(t *testing.T) {
	r := judged(Thorough(), steady(map[string]time.Duration{inPool(8): 200 * time.Microsecond}))
	if len(r.Plots) != 3 { // one for each of the cells
		t.Fatalf("there are %d plots", len(r.Plots))
	}
	for _, p := range r.Plots {
		if len(p.Lines) != 4 {
			t.Errorf("%s has %d lines", p.Title, len(p.Lines))
		}
		for _, l := range p.Lines {
			if len(l.X) != len(counts()) || l.X[2] != 8 {
				t.Errorf("%s has the line %+v", p.Title, l)
			}
		}
	}
	if l := r.Plots[0].Lines[1]; l.Y[0] != 1 || l.Y[2] != 2 || l.Low[2] != 2 || l.High[2] != 2 {
		t.Errorf("the remote pool's line is %+v", l)
	}
	only := Thorough()
	only.Only = byWebhook(3)
	if r := judged(only, map[string][]sample{raw: steady(nil)[raw]}); len(r.Plots) != 0 {
		t.Errorf("of nothing there are the plots %+v", r.Plots)
	}
}
