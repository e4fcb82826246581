package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

func defaultShares() scenario.Shares { return scenario.Default().Shares }

// TestMain lets the test program run as each of the processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "role" {
		starts := roles.All()
		maps.Copy(starts, Roles())
		if err := proc.Serve(context.Background(), starts[os.Args[2]], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, os.Args[2]+":", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// brief returns a scenario of a few seconds.
func brief() *scenario.Scenario {
	s := scenario.Default()
	s.Agents, s.Connections, s.Drivers, s.Rate = 20, 3, 2, 80
	s.For, s.Warm, s.Fabric.Workers = schema.Duration(2*time.Second), schema.Duration(500*time.Millisecond), 1
	s.Shares.Deny, s.Shares.Rewrite = 0.2, 0.2
	return &s
}

// TestAFleet checks that every answer is right. It also checks that the median event does
// not take many times as long as a bare request of the same time.
func TestAFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a fleet of agents gets right answers stays untested")
	}
	s := brief()
	d, err := Run(t.Context(), s, Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}, Log: os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.OK() {
		t.Errorf("%+v\n%+v", d.Checks, d.Figures)
	}
	if err := d.Sound(); err != nil {
		t.Error(err)
	}
	bare := slices.IndexFunc(d.Figures, func(f report.Figure) bool { return f.Name == bareRatio })
	if bare < 0 || d.Figures[bare].Value <= 0 || d.Figures[bare].Budget == nil {
		t.Errorf("there is nothing to compare with: %+v", d.Figures)
	}
	if len(d.Figures) < 4 || d.Figures[0].Value <= 0 || len(d.Plots) != 3 {
		t.Errorf("%+v", d)
	}
}

// TestAFleetOfOneProcess runs broker, server and worker in one process.
func TestAFleetOfOneProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a fleet of agents gets right answers of one process stays untested")
	}
	s := brief()
	s.Fabric.Kind = field.Embedded
	if err := s.Wrong(); err != nil {
		t.Fatal(err)
	}
	x, err := Open(t.Context(), s, Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}, Log: os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	if all := x.Field().Members(); len(all) != 1 || all[0] != s.Members()[0] {
		t.Errorf("the fabric is %q, and the scenario says %q", all, s.Members())
	}
	m, err := x.Load(t.Context(), s)
	if err = x.End(m, err); err != nil {
		t.Fatal(err)
	}
	if d := m.Document(); !d.OK() || d.Check(hooksAnswered).Seen == 0 {
		t.Errorf("%+v", d.Checks)
	}
}

// TestAFleetBesideOneThatRunsAway has one agent ask fifty times as often as it may. The
// fabric must still judge the calls of all others.
func TestAFleetBesideOneThatRunsAway(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a fleet of agents bears one that runs away stays untested")
	}
	s := brief()
	s.Rate, s.Injections, s.Drivers = 20, 0, 1
	s.Runaway = scenario.Runaway{Agents: 1, Limit: 10, Times: 50}
	if err := s.Wrong(); err != nil {
		t.Fatal(err)
	}
	d, err := Run(t.Context(), s, Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}, Log: os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.OK() || d.Check(limitKept).Seen != 1 {
		t.Errorf("%+v", d.Checks)
	}
}

// TestAFleetOfWhichProcessesDie kills a worker and a driver.
func TestAFleetOfWhichProcessesDie(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a fleet of agents gets right answers while processes die stays untested")
	}
	s := brief()
	s.Injections = 0 // the fabric sends the items of a killed driver again after a lease of half a minute
	s.Fabric.Kind, s.Fabric.Workers = field.Local, 2
	short := schema.Duration(200 * time.Millisecond)
	s.Faults = []faults.Fault{
		{Kind: faults.Kill, Member: "worker-1", At: 2 * short, For: short},
		{Kind: faults.Kill, Member: "driver-1", At: 3 * short, For: short},
	}
	d, err := Run(t.Context(), s, Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}, Log: os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.OK() || len(d.Plots[0].Marks) != 2 {
		t.Errorf("%+v, marks %+v", d.Checks, d.Plots[0].Marks)
	}
}

// TestAFleetThatIsInterrupted interrupts the run when two seconds were counted, while a
// worker is stopped. The measurements until then must be right, and calls in flight must
// not count as faults.
func TestAFleetThatIsInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether an interrupted run says what was measured stays untested")
	}
	s, dir := brief(), t.TempDir()
	s.For, s.Fabric.Workers = schema.Duration(time.Minute), 2
	s.Faults = []faults.Fault{{Kind: faults.Stop, Member: "worker-1", At: schema.Duration(time.Second), For: schema.Duration(time.Minute)}}
	ctx, interrupt := context.WithCancelCause(t.Context())
	go func() {
		for load.Pause(ctx, 20*time.Millisecond) {
			if counts, _ := os.ReadFile(filepath.Join(dir, "load-1", "driver-1.counts")); strings.Contains(string(counts), `"second":2,`) {
				interrupt(errors.New("a stop sign"))
			}
		}
	}()
	d, err := Run(ctx, s, Stage{Dir: dir, Crew: &proc.Crew{Args: []string{"role"}, Log: os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Checks {
		if c.Wrong > 0 {
			t.Errorf("%+v", c)
		}
	}
	if err := d.Sound(); err != nil {
		t.Error(err)
	}
	if d.Figures[0].Value <= 0 || len(d.Plots[0].Marks) != 1 || !strings.Contains(strings.Join(d.Notes, "\n"), "The load was interrupted after ") {
		t.Errorf("%+v", d)
	}
}

func TestAFleetThatIsInterruptedAtOnceHasNothingToSay(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a run that was interrupted at once says so stays untested")
	}
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("a stop sign"))
	if _, err := Run(ctx, brief(), Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}}}); err == nil || !strings.Contains(err.Error(), "a stop sign") {
		t.Errorf("it is said: %v", err)
	}
}

// TestWhatBareRequestsBound checks that neither a load that may be too high, in any form,
// nor a load with faults has a limit.
func TestWhatBareRequestsBound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scenario.Scenario)
		want   bool
	}{
		"a fleet":         {func(*scenario.Scenario) {}, true},
		"a rate too high": {func(s *scenario.Scenario) { s.Rate = 2 * bareRate }, false},
		"a step too high": {func(s *scenario.Scenario) {
			s.Rate, s.Steps = 0, load.Curve{{For: s.For, Rate: 2 * bareRate}}
		}, false},
		"a fault":            {func(s *scenario.Scenario) { s.Faults = []faults.Fault{{Kind: faults.Kill, Member: "worker-1"}} }, false},
		"one that runs away": {func(s *scenario.Scenario) { s.Runaway.Agents = 1 }, false},
		"more than it bears": {func(s *scenario.Scenario) { s.Kind = scenario.Overload }, false},
	} {
		s := brief()
		c.change(s)
		if got := bareBudget(s) > 0; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
