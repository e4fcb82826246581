package chaos

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// TestMain lets the test program run as each of the processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "role" {
		starts := roles.All()
		maps.Copy(starts, fleet.Roles())
		if err := proc.Serve(context.Background(), starts[os.Args[2]], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	bustest.Overlap()
	os.Exit(m.Run())
}

// shipped returns the bundled chaos scenario.
func shipped(t interface{ Fatal(args ...any) }) *scenario.Scenario {
	s, err := scenario.Shipped(scenario.Chaotic)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsDrawnCanBeDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shipped(t)
		s.Seed = rapid.Uint64().Draw(t, "seed")
		s.Chaos.Together = rapid.IntRange(1, 3).Draw(t, "together")
		s.Fabric.Server = rapid.Bool().Draw(t, "server")
		s.For = schema.Duration(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
		all := Draw(s)
		if d := cmp.Diff(all, Draw(s)); d != "" {
			t.Errorf("the same seed drew something else: %s", d)
		}
		for i, f := range all {
			if wrong := f.Check(s.Members()); wrong != nil {
				t.Errorf("%+v: %v", f, wrong)
			}
			if f.At.Std()+f.For.Std() > s.For.Std()-s.Quiet() || f.For > s.Chaos.Longest {
				t.Errorf("of %v, %+v lasts too long", s.For, f)
			}
			if f.Kind.OnLink() && !s.HasLink(f.Member) {
				t.Errorf("%s has no network, and yet there is %v", f.Member, f)
			}
			at := 0
			for _, other := range all {
				if other.At <= f.At && f.At < other.At+max(other.For, 1) {
					at++
				}
			}
			if at > s.Chaos.Together {
				t.Errorf("at the beginning of fault %d there are %d at the same time", i, at)
			}
		}
	})
}

func TestAllIsDrawnOrWhatWasAskedFor(t *testing.T) {
	s := shipped(t)
	s.For = schema.Duration(time.Hour)
	kinds, members := map[faults.Kind]bool{}, map[string]bool{}
	for _, f := range Draw(s) {
		kinds[f.Kind], members[f.Member] = true, true
	}
	if len(kinds) != len(faults.Kinds()) || len(members) != len(s.Members()) {
		t.Errorf("an hour brought %v to %v", kinds, members)
	}
	s.Chaos.Kinds, s.Chaos.Members = []faults.Kind{faults.Stop}, []string{"worker-*", "broker-2"}
	for _, f := range Draw(s) {
		if f.Kind != faults.Stop || f.Member != "broker-2" && !strings.HasPrefix(f.Member, "worker-") {
			t.Errorf("nobody asked for %v", f)
		}
	}
	s.Chaos.Kinds, s.Chaos.Members = []faults.Kind{faults.Cut}, []string{"server"}
	if all := Draw(s); len(all) > 0 {
		t.Errorf("nothing can be done, and yet there is %v", all)
	}
}

// second records n calls that were due in a second, each of which took took.
func second(r *load.Recorder, began time.Time, n int, took time.Duration, failed bool) {
	for range 100 {
		due := began.Add(time.Duration(n)*time.Second + time.Millisecond)
		r.Count(load.Call{Kind: "x", Due: due, Started: due, Ended: due.Add(took), Failed: failed})
	}
}

// watched returns a run of twenty seconds in which seconds 5 and 6 are slow, and in which
// calls fail in second 12.
func watched(t *testing.T, done ...faults.Done) (*watcher, []felt) {
	t.Helper()
	began := time.Unix(1000, 0)
	r := load.NewRecorder(began)
	for n := range 20 {
		took := time.Millisecond
		if n == 5 || n == 6 {
			took = 2 * time.Second
		}
		second(r, began, n, took, n == 12)
	}
	series, cut := load.NewSeries(), r.Cut()
	series.Take(&cut)
	w := watch(&fleet.Measured{Scenario: &scenario.Scenario{For: schema.Duration(20 * time.Second)}, Series: series, Done: done, Began: began})
	return w, w.felt(done)
}

func done(f faults.Fault, from, until float64) faults.Done {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	return faults.Done{Fault: f, From: at(from), Until: at(until)}
}

func TestHowLongFaultsAreFelt(t *testing.T) {
	w, all := watched(t, done(faults.Fault{Kind: faults.Stop, Member: "broker-1"}, 5.5, 6.25), done(faults.Fault{Kind: faults.Kill, Member: "worker-2"}, 12, 12.5),
		done(faults.Fault{Kind: faults.Reset, Member: "driver-1"}, 17, 17))
	if w.calm > 0.002 {
		t.Errorf("calm seconds have a p99 of %v", w.calm)
	}
	if f := all[0]; f.back != 1.5 || f.failed != 0 || f.longest < 1.9 || f.never {
		t.Errorf("the stop was felt as %+v", f)
	}
	if f := all[1]; f.back != 1 || f.failed != 100 || f.longest > 0.1 {
		t.Errorf("the kill was felt as %+v", f)
	}
	if f := all[2]; f.back != 0 || f.never {
		t.Errorf("the reset was felt as %+v", f)
	}
	table := w.table(all)
	if len(table.Rows) != 3 || table.Rows[2][5] != "not at all" || table.Rows[1][1] != "kill -9 worker-2" {
		t.Errorf("the table is %q", table.Rows)
	}
	if names := figures(all); len(names) != 4 || names[1].Name != "felt: reset of a driver" {
		t.Errorf("the figures are %+v", names)
	}
}

func TestWhetherAllIsWellAfterTheLastFault(t *testing.T) {
	w, _ := watched(t)
	for name, c := range map[string]struct {
		last float64
		want bool
	}{
		"calls that fail much later are not excused":  {8, false},
		"those just after the last fault are":         {11, true},
		"a run without calls after it proves nothing": {19, false},
	} {
		got := w.recovered([]faults.Done{done(faults.Fault{}, 1, 2), done(faults.Fault{}, c.last, c.last)}, 2*time.Second)
		if got.OK() != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhetherAllIsWellWhereNothingGoesWrong(t *testing.T) {
	w, _ := watched(t)
	for name, c := range map[string]struct {
		from, until float64
		kind        faults.Kind
		want        bool
	}{
		"calls that fail long after a fault are not excused": {1, 8, faults.Stop, false},
		"those not as long after a cut as that lasted are":   {1, 8, faults.Deafen, true},
		"those longer after a short one are not":             {7, 8, faults.Deafen, false},
		"those just after one are":                           {7, 9.5, faults.Stop, true},
		"those just before one are":                          {13, 14, faults.Stop, true},
		"those long before one are not":                      {14, 15, faults.Stop, false},
	} {
		got := w.answered([]faults.Done{done(faults.Fault{Kind: c.kind}, c.from, c.until)})
		if got.OK() != c.want || got.Seen == 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAShortChaos checks that every answer is right during faults. It does not kill the
// agents' own processes, because the fabric would send their items again only after half a
// minute.
func TestAShortChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether answers are right while brokers and workers fail stays untested")
	}
	t.Parallel()
	s := shipped(t)
	s.Agents, s.Connections, s.Drivers, s.Rate = 20, 4, 1, 60
	s.For, s.Warm = schema.Duration(6*time.Second), schema.Duration(300*time.Millisecond)
	s.Chaos.Longest, s.Chaos.Pause = schema.Duration(400*time.Millisecond), schema.Duration(250*time.Millisecond)
	s.Chaos.Members = []string{"broker-*", "worker-*", "server"}
	d, err := Run(t.Context(), s, fleet.Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Sound(); err != nil {
		t.Error(err)
	}
	for _, c := range d.Checks {
		if !c.OK() {
			t.Errorf("%+v", c)
		}
	}
	i := slices.IndexFunc(d.Checks, func(c report.Check) bool { return c.Name == "every planned fault happened" })
	if i < 0 || d.Checks[i].Seen < 3 || len(d.Plots[0].Marks) != int(d.Checks[i].Seen) {
		t.Errorf("the faults are %+v", d.Plots[0].Marks)
	}
}
