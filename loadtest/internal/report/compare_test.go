package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// one returns the side of a comparison with one run.
func one(run *Document) []*Document { return []*Document{run} }

// documents generates runs with random figures.
func documents() *rapid.Generator[*Document] {
	return rapid.Custom(func(t *rapid.T) *Document {
		d := &Document{Scenario: "bench"}
		for i := range rapid.IntRange(1, 4).Draw(t, "figures") {
			samples := rapid.SliceOfN(rapid.Float64Range(-1, 10), 1, 6).Draw(t, "samples")
			better := rapid.SampledFrom([]Direction{Lower, Higher, Neither}).Draw(t, "better")
			d.Figures = append(d.Figures, Figured(fmt.Sprint("figure ", i), "s", better, samples))
		}
		d.Checks = []Check{{Name: "all is well", Seen: 1, Wrong: rapid.Int64Range(0, 1).Draw(t, "wrong")}}
		return d
	})
}

func TestARunIsTheSameAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := documents().Draw(t, "run")
		c := Compare(one(d), one(d), rapid.Float64Range(0, 0.1).Draw(t, "threshold"))
		if n := len(d.Figures) + len(d.Checks); c.count(Same) != n || !c.OK() || len(c.OnlyOld)+len(c.OnlyNew)+len(c.differences()) > 0 {
			t.Fatalf("%d of %d are the same: %+v", c.count(Same), n, c)
		}
	})
}

func TestTheOtherWayRoundBetterIsWorse(t *testing.T) {
	turned := map[Verdict]Verdict{Better: Worse, Worse: Better, Same: Same, Changed: Changed}
	rapid.Check(t, func(t *rapid.T) {
		a, b := documents().Draw(t, "a"), documents().Draw(t, "b")
		for i := range min(len(a.Figures), len(b.Figures)) {
			b.Figures[i].Better = a.Figures[i].Better
		}
		there, back := Compare(one(a), one(b), 0.03), Compare(one(b), one(a), 0.03)
		for i, one := range there.Changes {
			if other := back.Changes[i]; other.Verdict != turned[one.Verdict] {
				t.Fatalf("%s is %q, and %q the other way round", one.New.Name, one.Verdict, other.Verdict)
			}
		}
		if there.Checks[0].Verdict != turned[back.Checks[0].Verdict] || !slices.Equal(there.OnlyNew, back.OnlyOld) || !slices.Equal(there.OnlyOld, back.OnlyNew) {
			t.Fatalf("there it is %+v, and back %+v", there, back)
		}
	})
}

// TestAShiftIsFound moves all samples beyond their range.
func TestAShiftIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(1, 1.2), 4, 10).Draw(t, "samples")
		better := rapid.SampledFrom([]Direction{Lower, Higher}).Draw(t, "better")
		more := make([]float64, len(samples))
		for i, v := range samples {
			more[i] = 1.3 * v
		}
		run := func(samples []float64) *Document {
			return &Document{Figures: []Figure{Figured("p50", "s", better, samples)}}
		}
		want := Worse
		if better == Higher {
			want = Better
		}
		if got := Compare(one(run(samples)), one(run(more)), 0.03).Changes[0]; got.Verdict != want {
			t.Fatalf("30 %% more are %+v", got)
		}
	})
}

func TestVerdicts(t *testing.T) {
	figure := func(better Direction, samples ...float64) Figure {
		return Figured("f", "s", better, samples)
	}
	for name, c := range map[string]struct {
		old, new Figure
		want     Verdict
	}{
		"a rise within the threshold is none":      {figure(Lower, 1, 1, 1, 1), figure(Lower, 1.02, 1.02, 1.02, 1.02), Same},
		"a rise beyond it is, of a time, bad":      {figure(Lower, 1, 1, 1, 1), figure(Lower, 1.05, 1.05, 1.05, 1.05), Worse},
		"of a rate, good":                          {figure(Higher, 1, 1, 1, 1), figure(Higher, 1.05, 1.05, 1.05, 1.05), Better},
		"of what is not judged, neither":           {figure(Neither, 1, 1, 1, 1), figure(Neither, 9, 9, 9, 9), Changed},
		"samples that overlap prove nothing":       {figure(Lower, 1, 5, 9, 4), figure(Lower, 2, 6, 8, 7), Same},
		"from nothing to something is worse":       {figure(Lower, 0, 0, 0, 0), figure(Lower, 1, 2, 1, 1), Worse},
		"from nothing to nothing is the same":      {figure(Lower, 0, 0, 0, 0), figure(Lower, 0, 0, 0, 0), Same},
		"a figure below zero that falls is better": {figure(Lower, -1, -1, -1, -1), figure(Lower, -2, -2, -2, -2), Better},
		"one sample each has no verdict":           {figure(Lower, 1), figure(Lower, 2), Changed},
		"three samples each have none either":      {figure(Lower, 1, 1, 1), figure(Lower, 2, 2, 2), Changed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := changed(c.old, c.new, 0.03); got.Verdict != c.want {
				t.Errorf("the verdict is %q: %+v", got.Verdict, got)
			}
		})
	}
}

// TestAReaderSeesWhatMatters checks the printed comparison.
func TestAReaderSeesWhatMatters(t *testing.T) {
	four := func(v float64) []float64 { return []float64{v, v, v, v} }
	old := &Document{
		Scenario: "bench", Machine: Facts{OS: "linux", CPUs: 2, Go: "go1.26.1"},
		Figures: []Figure{Figured("gone", "s", Lower, []float64{1}), Figured("p50", "s", Lower, four(0.001))},
		Checks:  []Check{{Name: "denies are honoured", Seen: 9000}},
	}
	latest := &Document{
		Scenario: "fleet", Machine: Facts{OS: "linux", CPUs: 64, Go: "go1.27"},
		Figures: []Figure{Figured("p50", "s", Lower, four(0.002)), Figured("come", "s", Lower, []float64{1})},
		Checks:  []Check{{Name: "denies are honoured", Seen: 9000, Wrong: 1}},
	}
	c := Compare(one(old), one(latest), 0.03)
	if c.OK() {
		t.Error("nothing got worse")
	}
	var b bytes.Buffer
	if err := Print(&b, c.Document()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 worse", "CAREFUL: the scenario", "CAREFUL: the machine", "CAREFUL: the Go version", "in old ones: gone", "in new ones: come",
		"1 ms", "2 ms", "2 ×", "0.029", "9,000", "within 3 %", "The samples are the repetitions",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &b)
		}
	}
	if empty := Compare(one(&Document{}), one(&Document{}), 0); !strings.Contains(strings.Join(empty.Document().Notes, ""), "nothing to compare") {
		t.Errorf("without figures it says %q", empty.Document().Notes)
	}
}

// TestSeveralRuns has runs whose samples agree with each other, but not with those of other runs.
func TestSeveralRuns(t *testing.T) {
	run := func(p50 float64, wrong int64) *Document {
		return &Document{
			Figures: []Figure{Figured("p50", "s", Lower, []float64{p50, p50, p50, p50})},
			Checks:  []Check{{Name: "all is well", Seen: 10, Wrong: wrong}},
		}
	}
	runs := func(p50s ...float64) (all []*Document) {
		for _, p50 := range p50s {
			all = append(all, run(p50, 0))
		}
		return all
	}
	for name, c := range map[string]struct {
		old, new []*Document
		want     Verdict
	}{
		"one each":                              {runs(1), runs(1.2), Worse},
		"runs scatter by as much":               {runs(1, 1.2), runs(1.2, 1.1), Same},
		"runs do not scatter":                   {runs(1, 1.001), runs(1.2, 1.201), Worse},
		"one and several":                       {runs(1), runs(2, 2.001, 2.002), Worse},
		"one and several that scatter":          {runs(1), runs(1, 2), Same},
		"better":                                {runs(1.2, 1.201), runs(1, 1.001), Better},
		"figures may be 0":                      {runs(0, 0.1), runs(9, 9.1), Worse},
		"four each, the spread is that of runs": {runs(1, 1.2, 1.1, 1.3), runs(1.25, 1.15, 1.35, 1.4), Same},
		"four each that do not scatter":         {runs(1, 1.01, 1.02, 1.03), runs(1.2, 1.21, 1.22, 1.23), Worse},
	} {
		got := Compare(c.old, c.new, 0.03)
		if len(got.Changes) != 1 || got.Changes[0].Verdict != c.want || got.Checks[0].Verdict != Same {
			t.Errorf("%s: %+v", name, got)
		}
		if err := got.Document().Sound(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := run(1, 0)
	other.Figures = append(other.Figures, Figured("p99", "s", Lower, []float64{1}))
	other.Machine.CPUs, other.Interrupted = 64, "a stop sign"
	got := Compare([]*Document{run(1, 0), other}, []*Document{run(1, 0), run(1, 1)}, 0.03)
	notes := strings.Join(got.Document().Notes, "\n")
	for _, want := range []string{"2 old and 2 new runs", "in old ones: p99", "CAREFUL: the machine", "was interrupted"} {
		if !strings.Contains(notes, want) {
			t.Errorf("it does not say %q: %s", want, notes)
		}
	}
	if got.Checks[0].Verdict != Worse || got.Checks[0].New.Seen != 20 {
		t.Errorf("a run that was wrong is %+v", got.Checks)
	}
}
