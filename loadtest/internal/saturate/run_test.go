package saturate

import (
	"context"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
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
	os.Exit(m.Run())
}

// TestASearchOnARealFabric checks that every answer is right at each load and that the
// report has all loads. It does not check how high the knee is.
func TestASearchOnARealFabric(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a fabric under growing load answers right stays untested")
	}
	s, err := scenario.Shipped(scenario.Saturate)
	if err != nil {
		t.Fatal(err)
	}
	s.Agents, s.Connections, s.Warm, s.Shares.Rewrite = 20, 2, 0, 0.3
	second := schema.Duration(time.Second)
	s.Knee.From, s.Knee.Most, s.Knee.Step = 40, 40, second
	s.Knee.Floor, s.Knee.Answered = 10*second, 0.5 // a busy machine is no fault
	d, err := Run(t.Context(), s, fleet.Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.OK() || len(d.Checks) == 0 {
		t.Errorf("%+v", d.Checks)
	}
	if err := d.Sound(); err != nil {
		t.Error(err)
	}
	if len(d.Tables[0].Rows) != firsts || d.Figures[0].Value != 40 {
		t.Errorf("%+v, %+v", d.Figures, d.Tables)
	}
}

// TestTheRateOfARunIsThatOfItsKnee gets the knee for another kind of run.
func TestTheRateOfARunIsThatOfItsKnee(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a run finds the knee that it is to keep below stays untested")
	}
	s, err := scenario.Shipped(scenario.Soaking)
	if err != nil {
		t.Fatal(err)
	}
	s.Agents, s.Connections, s.Warm = 20, 2, 0
	second := schema.Duration(time.Second)
	s.Knee.From, s.Knee.Most, s.Knee.Step = 40, 40, second
	s.Knee.Floor, s.Knee.Answered = 10*second, 0.5 // a busy machine is no fault
	rate, err := Rate(t.Context(), s, fleet.Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}}})
	if err != nil || rate != 40 || s.Kind != scenario.Soaking {
		t.Errorf("the rate is %v, %v", rate, err)
	}
}
