package saturate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
)

// fabric simulates a fabric that answers a number of calls per second, each in a
// millisecond. The time grows above that number.
type fabric struct {
	capacity float64
	// slow is the rate from which on p99 is too long, although all calls are answered.
	slow float64
	// hiccups are rates whose first measurement is disturbed.
	hiccups map[int]bool
	// luck are rates whose first measurement is too good.
	luck  map[int]bool
	tried []float64
}

func (f *fabric) measure(_ context.Context, rate float64) (point, error) {
	f.tried = append(f.tried, rate)
	p := point{rate: rate}
	p.Offered = int64(rate)
	p.Answered = int64(min(rate, f.capacity))
	took := time.Millisecond
	if f.luck[int(rate)] {
		delete(f.luck, int(rate))
		p.Answered = p.Offered
	}
	switch {
	case f.hiccups[int(rate)]:
		delete(f.hiccups, int(rate))
		took = time.Minute
	case f.slow > 0 && rate > f.slow:
		took = time.Second
	}
	for range 100 {
		p.Latency.Record(took)
	}
	return p, nil
}

func searching(f *fabric) *search {
	s := scenario.Default()
	s.Knee.From, s.Knee.Most = 100, 10_000
	return &search{scenario: &s, measure: f.measure}
}

func TestTheKneeIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		fabric fabric
		knee   float64
	}{
		"where answers lack":                        {fabric{capacity: 1234}, 1234},
		"where answers are late":                    {fabric{capacity: 9000, slow: 700}, 700},
		"in spite of a moment's trouble":            {fabric{capacity: 1234, hiccups: map[int]bool{200: true, 800: true}}, 1234},
		"not beyond what was to be tried":           {fabric{capacity: 1e6}, 10_000},
		"at the first rate if that is just enough":  {fabric{capacity: 101}, 103},
		"in spite of trouble at the very beginning": {fabric{capacity: 500, hiccups: map[int]bool{100: true}}, 500},
		"and no luck makes it higher":               {fabric{capacity: 1234, luck: map[int]bool{1600: true, 1300: true}}, 1234},
	} {
		t.Run(name, func(t *testing.T) {
			s := searching(&c.fabric)
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			knee, beyond := s.knee, s.beyond
			if knee > c.knee*1.03 || knee < c.knee*0.93 {
				t.Errorf("the knee is %v, want %v", knee, c.knee)
			}
			if knee < 10_000 && (beyond < knee || beyond > knee*near) {
				t.Errorf("beyond the knee %v is %v", knee, beyond)
			}
			var d report.Document
			s.document(&d, false)
			if err := d.Sound(); err != nil {
				t.Error(err)
			}
			if got := len(d.Tables[0].Rows); got != len(c.fabric.tried) {
				t.Errorf("%d of %d loads are told of", got, len(c.fabric.tried))
			}
		})
	}
}

func TestAFabricThatKeepsUpWithNothingHasNoKnee(t *testing.T) {
	err := searching(&fabric{capacity: 7}).run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "does not keep up with the lowest rate, 100 tool calls per second: 7.0 % of the calls") {
		t.Errorf("it is said: %v", err)
	}
}

func TestAnErrorEndsTheSearch(t *testing.T) {
	s := searching(&fabric{})
	gone := errors.New("gone")
	s.measure = func(context.Context, float64) (point, error) { return point{}, gone }
	if err := s.run(t.Context()); !errors.Is(err, gone) {
		t.Errorf("it is said: %v", err)
	}
}

// TestASearchThatIsInterruptedTellsOfItsLoads interrupts the search at the rate of 400.
func TestASearchThatIsInterruptedTellsOfItsLoads(t *testing.T) {
	f := &fabric{capacity: 1e6}
	s := searching(f)
	s.measure = func(ctx context.Context, rate float64) (point, error) {
		if rate == 400 {
			return point{}, context.Canceled
		}
		return f.measure(ctx, rate)
	}
	if err := s.run(t.Context()); !errors.Is(err, context.Canceled) || s.knee != 200 || s.beyond != 0 {
		t.Errorf("from %v to %v, %v", s.knee, s.beyond, err)
	}
	var d report.Document
	s.document(&d, true)
	if len(d.Figures) > 0 || len(d.Tables[0].Rows) != firsts+agree || !strings.Contains(d.Notes[0], "kept up with 200") {
		t.Errorf("it is told as %+v", d)
	}
}

func TestAnOverloadIsTwiceTheKneeWithRestAround(t *testing.T) {
	c := phases(2000, time.Minute)
	if c.Long() != time.Minute+calm+restful || c[0].Rate != 500 || c[1].Rate != 2000 || c[2].Rate != 500 {
		t.Errorf("%+v", c)
	}
	if want := 2000.0*60 + 500*(calm+restful).Seconds(); c.Calls() != want {
		t.Errorf("%v calls, want %v", c.Calls(), want)
	}
}

// TestTheFabricIsBackOnlyWhereCallsShowIt has one slow second after the overload. A later
// second without any calls must not count as recovered.
func TestTheFabricIsBackOnlyWhereCallsShowIt(t *testing.T) {
	const end = 2 * time.Second
	for name, c := range map[string]struct {
		silent, slow int
		want         float64
	}{
		"all is well at once":       {silent: -1, slow: -1},
		"a slow second":             {silent: -1, slow: 4, want: 3},
		"a second without calls":    {silent: 9, slow: 4, want: 8},
		"nobody calls at the end":   {silent: 21, slow: -1, want: restful.Seconds()},
		"no call before the end":    {silent: 1, slow: -1},
		"a slow one before the end": {silent: -1, slow: 1},
	} {
		began := time.Unix(1000, 0)
		r, m := load.NewRecorder(began), &fleet.Measured{Series: load.NewSeries(), Bare: load.NewSeries()}
		for n := range int((end + restful) / time.Second) {
			took, due := time.Millisecond, began.Add(time.Duration(n)*time.Second)
			if n == c.slow {
				took = 3 * time.Second
			}
			if n != c.silent {
				r.Count(load.Call{Kind: "x", Due: due, Started: due, Ended: due.Add(took)})
			}
		}
		cut := r.Cut()
		m.Series.Take(&cut)
		if got := recovery(m, end, 0.02); got != c.want {
			t.Errorf("%s: it was back after %v s, want %v", name, got, c.want)
		}
	}
}
