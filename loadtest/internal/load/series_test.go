package load

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

// travelled returns a cut as another process decodes it.
func travelled(t rapid.TB, c Cut) *Cut {
	t.Helper()
	line, err := schema.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Cut
	if err := schema.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	return &back
}

// TestManyRecordersAreOne checks that several recorders, cut at any moment, count the same
// as one recorder.
func TestManyRecordersAreOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Unix(1000, 0)
		one := NewRecorder(begin)
		several := []*Recorder{NewRecorder(begin), NewRecorder(begin), NewRecorder(begin)}
		apart, together := NewSeries(), NewSeries()
		take := func(s *Series, r *Recorder) {
			s.Take(travelled(t, r.Cut()))
		}
		for range rapid.IntRange(0, 60).Draw(t, "calls") {
			due := begin.Add(time.Duration(rapid.Int64Range(-2000, 5000).Draw(t, "due")) * time.Millisecond)
			c := Call{Kind: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "kind"), Due: due,
				Failed: rapid.Bool().Draw(t, "failed"), Unsent: rapid.Bool().Draw(t, "unsent")}
			c.Started = due.Add(time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "late")))
			c.Ended = c.Started.Add(time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "took")))
			one.Count(c)
			r := rapid.SampledFrom(several).Draw(t, "recorder")
			r.Count(c)
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				take(apart, r)
			}
		}
		take(together, one)
		for _, r := range several {
			take(apart, r)
		}
		if d := cmp.Diff(together.Rows(), apart.Rows()); d != "" {
			t.Error(d)
		}
		a := apart.Between(0, 100)
		b := together.Between(0, 100)
		same(t, &a.Latency, &b.Latency)
		same(t, &apart.Service, &together.Service)
		same(t, &apart.Late, &together.Late)
		for name, k := range together.Kinds() {
			same(t, &k.Latency, &apart.Kinds()[name].Latency)
		}
	})
}

func same(t *rapid.T, a, b *Histogram) {
	t.Helper()
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		if a.Count() != b.Count() || a.At(q) != b.At(q) {
			t.Errorf("%d calls with %v at %v, and %d with %v", a.Count(), a.At(q), q, b.Count(), b.At(q))
		}
	}
}

func TestWhatIsBeforeTheBeginningIsLeftOut(t *testing.T) {
	begin := time.Unix(1000, 0)
	r := NewRecorder(begin)
	for _, ms := range []int{-1500, -1, 0, 999} {
		due := begin.Add(time.Duration(ms) * time.Millisecond)
		r.Count(Call{Kind: "a", Due: due, Started: due, Ended: due.Add(time.Millisecond)})
	}
	s, cut := NewSeries(), r.Cut()
	s.Take(&cut)
	// The call of a millisecond earlier was answered in the first moment.
	want := []Row{{0, Counts{Offered: 2, Answered: 2}}, {1, Counts{Answered: 1}}}
	if d := cmp.Diff(want, s.Rows()); d != "" {
		t.Error(d)
	}
	if s.Service.Count() != 2 || s.Kinds()["a"].Offered != 2 {
		t.Errorf("%d calls were counted", s.Service.Count())
	}
}

func TestNothingLastsLongerThanCanBeCounted(t *testing.T) {
	var h Histogram
	h.Record(time.Hour)
	h.Record(-time.Second)
	if h.Count() != 2 || h.At(1) < 119 || h.At(1) > 121 || h.At(0) > 0.001 {
		t.Errorf("%d durations from %vs to %vs", h.Count(), h.At(0), h.At(1))
	}
}
