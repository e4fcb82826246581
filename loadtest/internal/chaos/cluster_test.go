package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/audit"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/freeze"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// clustered returns the bundled scenario of a cluster, with one part.
func clustered(t *testing.T, p scenario.Part) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Shipped("cluster")
	if err != nil {
		t.Fatal(err)
	}
	s.Cluster.Parts = []scenario.Part{p}
	return s
}

// TestOneBrokerIsKilledAndCutOff kills the broker that leads the queue, and then cuts off
// its next leader. It runs in its own network.
func TestOneBrokerIsKilledAndCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("short: what becomes of a cluster that loses a broker stays untested")
	}
	t.Parallel()
	if err := faults.HostsMissing(); err != nil {
		t.Skipf("A BROKER THAT IS CUT OFF FROM ITS CLUSTER IS NOT TESTED: %v", err)
	}
	if !faults.IsAlone() {
		code, err := faults.Alone(t.Context(), []string{"-test.run=^" + t.Name() + "$", "-test.v"}, t.Output(), t.Output())
		if err != nil || code != 0 {
			t.Errorf("in its own network it ended with exit code %d, %v", code, err)
		}
		return
	}
	s := clustered(t, scenario.Part{Name: "brief", Faults: []faults.Kind{faults.Kill, faults.Part}})
	s.Rate, s.Cluster.Away = 40, schema.Duration(2*time.Second)
	if err := s.Wrong(); err != nil {
		t.Fatal(err)
	}
	hosts, err := faults.OpenHosts(s.Fabric.Brokers)
	if err != nil {
		t.Fatal(err)
	}
	d, err := RunCluster(t.Context(), s, fleet.Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}}, Hosts: hosts})
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
	if c := d.Check("every accepted message was delivered"); c.Seen < 500 {
		t.Errorf("producers at all brokers sent little: %+v", *c)
	}
	if rows := d.Tables[0].Rows; len(rows) != 2 || !strings.HasSuffix(rows[0][2], "*") || !strings.HasSuffix(rows[1][2], "*") || len(d.Plots[0].Marks) != 2 {
		t.Errorf("the faults are %q, the marks %v", rows, d.Plots[0].Marks)
	}
}

// at returns a time, in seconds after a fixed moment.
func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestHowLongNothingIsAccepted(t *testing.T) {
	did := func(broker int, from, until float64, accepted, lost bool) audit.Attempt {
		return audit.Attempt{Broker: broker, Asked: at(from), Answered: at(until), Accepted: accepted, Lost: lost}
	}
	all := []audit.Attempt{
		did(2, -2, -1, true, false), // before
		did(2, 0.1, 0.2, true, false),
		did(1, 0.1, 0.5, true, false),
		did(3, 0.3, 4.3, false, false),
		did(2, 0.5, 5.2, true, false),
		did(1, 1, 6.5, false, true),
		did(3, 5, 5.5, true, false),
		did(2, 9, 9.5, true, false), // after
	}
	got := stalled(all, 1, at(0), at(7))
	want := stall{there: 6500 * time.Millisecond, elsewhere: 5 * time.Second, answer: 4700 * time.Millisecond, accepted: 4, rejected: 1, lost: 1}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Only a living broker must answer.
	silent := []audit.Attempt{did(1, 1, 13, false, true), did(2, 1, 13.5, false, true)}
	if got := stalled(silent, 1, at(0), at(20)); got.lost != 2 || got.answer != 12500*time.Millisecond {
		t.Errorf("a living broker that did not answer is %+v", got)
	}
}

func TestABrokerThatLacksSomethingIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		last step
		fine bool
	}{
		"all have everything": {step{whole: time.Second}, true},
		"one does not":        {step{lacking: true}, false},
		"interrupted":         {step{Done: faults.Done{Until: at(100)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			load := scenario.Default()
			one := &partLoad{Part: scenario.Part{Name: "kill"}, load: 1, steps: []step{{whole: time.Second}, c.last}, measured: &fleet.Measured{Scenario: &load, Early: name == "interrupted"}}
			d := &report.Document{}
			one.judge(d)
			for _, got := range d.Checks {
				if one.measured.Early && !got.OK() {
					t.Errorf("%+v", got)
				}
			}
			if got := d.Check(wholeAgain); (got.Wrong == 0) != c.fine || got.Seen == 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAFreezeThatIsNotObeyedIsFound(t *testing.T) {
	f := frozen{brokers: 3, cut: 1, asked: at(10), answered: at(20), probes: []freeze.Call{
		{Shim: 0, Asked: at(9), Answered: at(9.1)},
		{Shim: 0, Asked: at(11), Answered: at(12)},
		{Shim: 0, Asked: at(15), Answered: at(21), Err: context.DeadlineExceeded},
		{Shim: 0, Asked: at(25), Answered: at(26), Refused: true},
		{Shim: 1, Asked: at(11), Answered: at(11.5), Refused: true},
		{Shim: 2, Asked: at(11), Answered: at(11.5), Refused: true},
	}}
	var kept report.Check
	f.judge(&kept, false)
	want := probedBroker{passed: 1, last: 2 * time.Second, unanswered: 1, refused: 1, first: 16 * time.Second}
	if got := f.through(1); got != want || kept.Wrong != 0 {
		t.Errorf("%+v, want %+v; %+v", got, want, kept)
	}
	f.probes = append(f.probes[:3], f.probes[4:]...)
	var early report.Check
	if f.judge(&early, true); early.Wrong != 0 {
		t.Errorf("the cut is not over yet: %+v", early)
	}
	f.probes, f.missing = append(f.probes,
		freeze.Call{Shim: 1, Asked: at(19), Answered: at(20.5)},
		freeze.Call{Shim: 1, Asked: at(19), Answered: at(21.5)},
		freeze.Call{Shim: 2, Asked: at(21), Answered: at(22)}), []string{"broker-2"}
	f.judge(&kept, false)
	want = probedBroker{passed: 2, last: 11500 * time.Millisecond, confirmed: 1, refused: 1, first: 1500 * time.Millisecond}
	if got := f.through(2); got != want || kept.Wrong != 4 {
		t.Errorf("two calls passed, one broker never refused any, and one did not confirm it, and yet: %+v, want %+v; %+v", got, want, kept)
	}
}

func TestEachPartHasItsFaults(t *testing.T) {
	s, err := scenario.Shipped("cluster")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]int{"rolling": {3, 1}, "change": {3, 1}, "kill": {3, 1}, "stop": {3, 1}, "part": {3, 1}, "one-way": {6, 2}, "freeze": {1, 1}}
	r := &cluster{scenario: s}
	for _, p := range s.Cluster.Parts {
		once := p
		once.Each = false
		if got := [2]int{len(r.steps(p)), len(r.steps(once))}; got != want[p.Name] {
			t.Errorf("%s has %v faults, want %v", p.Name, got, want[p.Name])
		}
		delete(want, p.Name)
		for _, f := range slices.Concat(r.steps(p), r.steps(once)) {
			f.Member = cmp.Or(f.Member, "broker-1")
			if wrong := f.Check([]string{"broker-1", "broker-2", "broker-3"}); wrong != nil {
				t.Errorf("%s: %+v: %v", p.Name, f, wrong)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("there is no part %v", want)
	}
}

func TestWhatNoClusterCanBe(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*scenario.Scenario)
		want  string
	}{
		"brokers that are none":         {func(s *scenario.Scenario) { s.Fabric.Cluster = false }, "need a cluster"},
		"too few brokers":               {func(s *scenario.Scenario) { s.Fabric.Brokers = 2 }, "need a cluster"},
		"another program's brokers":     {func(s *scenario.Scenario) { s.Fabric.Kind = field.External }, "need a cluster"},
		"a fault that does not last":    {func(s *scenario.Scenario) { s.Cluster.Away = 0 }, "out of range"},
		"a fault that outlasts a lease": {func(s *scenario.Scenario) { s.Cluster.Away = schema.Duration(time.Minute) }, "out of range"},
		"a part without faults":         {func(s *scenario.Scenario) { s.Cluster.Parts[0].Faults = nil }, "has no faults"},
		"a fault that nobody knows":     {func(s *scenario.Scenario) { s.Cluster.Parts[0].Faults = []faults.Kind{"flood"} }, "unknown kind of fault"},
		"a rate that is not a number":   {func(s *scenario.Scenario) { s.Rate = math.NaN() }, "out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clustered(t, scenario.Part{Name: "kill", Faults: []faults.Kind{faults.Kill}})
			if err := s.Wrong(); err != nil {
				t.Fatal(err)
			}
			c.spoil(s)
			if got := fmt.Sprint(s.Wrong()); !strings.Contains(got, c.want) {
				t.Errorf("it says %s", got)
			}
		})
	}
	s := clustered(t, scenario.Part{Name: "kill", Faults: []faults.Kind{faults.Kill}})
	if err := s.Cluster.Only([]string{"weather"}); err == nil || !strings.Contains(err.Error(), "write one or more of kill") {
		t.Errorf("an unknown part gave %v", err)
	}
}
