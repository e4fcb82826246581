package cluster

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/lan"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
)

// The test program is the processes, too, and runs in a network of its own where it
// can have one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "role" {
		starts := roles.All()
		maps.Copy(starts, fleet.Roles())
		if err := proc.Serve(context.Background(), starts[os.Args[2]], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	if lan.IsAlone() || lan.Possible() != nil {
		os.Exit(m.Run())
	}
	code, err := lan.Alone(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestOneBrokerIsKilledAndCutOff kills the broker that leads the queue, and cuts off the
// one that leads it then.
func TestOneBrokerIsKilledAndCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("short: what becomes of a cluster that loses a broker stays untested")
	}
	if err := lan.Possible(); err != nil {
		t.Skipf("A BROKER THAT IS CUT OFF FROM ITS CLUSTER IS NOT TESTED: %v", err)
	}
	l, err := lan.Open(Brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	o := Quick()
	o.Only, o.Away, o.Rate = []string{brief}, 2*time.Second, 40
	o.Dir, o.Crew, o.Lan, o.Progress = t.TempDir(), &proc.Crew{Args: []string{"role"}}, l, t.Output()
	d, err := Run(t.Context(), o)
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
	if rows := d.Tables[0].Rows; len(rows) != 2 || !strings.HasSuffix(rows[0][2], "*") || !strings.HasSuffix(rows[1][2], "*") || len(d.Plots[0].Marks) != 2 {
		t.Errorf("the faults are %q, the marks %v", rows, d.Plots[0].Marks)
	}
}

// at is so many seconds after some moment.
func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestHowLongNothingIsAccepted(t *testing.T) {
	did := func(broker int, from, until float64, accepted, lost bool) attempt {
		return attempt{broker: broker, asked: at(from), answered: at(until), accepted: accepted, lost: lost}
	}
	all := []attempt{
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
	want := stall{there: 6500 * time.Millisecond, elsewhere: 5 * time.Second, answer: 4700 * time.Millisecond, accepted: 4, refused: 1, lost: 1}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Of the one that is dead nobody can expect an answer; of another one everybody does.
	silent := []attempt{did(1, 1, 13, false, true), did(2, 1, 13.5, false, true)}
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
			one := &shown{part: kill, load: 1, steps: []step{{whole: time.Second}, c.last}, measured: &fleet.Measured{Scenario: &load, Early: name == "interrupted"}}
			d := &result.Document{}
			(&run{}).judge(d, one)
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
	f := frozen{cut: 1, asked: at(10), answered: at(20), probes: []probe{
		{broker: 1, asked: at(9), answered: at(9.1), passed: true},
		{broker: 1, asked: at(11), answered: at(12), passed: true},
		{broker: 1, asked: at(15), answered: at(21)},
		{broker: 1, asked: at(25), answered: at(26), refused: true},
		{broker: 2, asked: at(11), answered: at(11.5), refused: true},
		{broker: 3, asked: at(11), answered: at(11.5), refused: true},
	}}
	var kept result.Check
	f.judge(&kept, false)
	want := thawed{broker: 1, passed: 1, last: 2 * time.Second, unanswered: 1, refused: 1, first: 16 * time.Second}
	if got := f.of(1); got != want || kept.Wrong != 0 {
		t.Errorf("%+v, want %+v; %+v", got, want, kept)
	}
	f.probes = append(f.probes[:3], f.probes[4:]...)
	var early result.Check
	if f.judge(&early, true); early.Wrong != 0 {
		t.Errorf("the cut is not over yet: %+v", early)
	}
	f.probes, f.missing = append(f.probes,
		probe{broker: 2, asked: at(19), answered: at(20.5), passed: true},
		probe{broker: 2, asked: at(19), answered: at(21.5), passed: true},
		probe{broker: 3, asked: at(21), answered: at(22), passed: true}), []string{"broker-2"}
	f.judge(&kept, false)
	want = thawed{broker: 2, passed: 2, last: 11500 * time.Millisecond, confirmed: 1, refused: 1, first: 1500 * time.Millisecond}
	if got := f.of(2); got != want || kept.Wrong != 4 {
		t.Errorf("two calls passed, one broker never refused any, and one did not confirm it, and yet: %+v, want %+v; %+v", got, want, kept)
	}
}

func TestEachPartHasItsFaults(t *testing.T) {
	all, quick := run{Options: &Options{All: true, Away: time.Second}}, run{Options: &Options{Away: time.Second}}
	for part, want := range map[string][2]int{rolling: {3, 3}, change: {3, 3}, kill: {3, 1}, stop: {3, 1}, part: {3, 1}, oneWay: {6, 2}, freeze: {0, 0}} {
		if got := [2]int{len(all.steps(part)), len(quick.steps(part))}; got != want {
			t.Errorf("%s has %v faults, want %v", part, got, want)
		}
		for _, f := range slices.Concat(all.steps(part), quick.steps(part)) {
			if f.Member == "" {
				f.Member = "broker-1"
			}
			if wrong := f.Check([]string{"broker-1", "broker-2", "broker-3"}); wrong != nil || !slices.Contains(faults.Clustered(), f.Kind) {
				t.Errorf("%s: %+v: %v", part, f, wrong)
			}
		}
	}
	for _, o := range []Options{{Only: []string{"weather"}, Rate: 1, Away: time.Second}, {Away: time.Second}, {Rate: math.NaN(), Away: time.Second}, {Rate: 1}, {Rate: 1, Away: time.Minute}} {
		if o.Check() == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
