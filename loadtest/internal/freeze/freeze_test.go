package freeze

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

// TestMain lets the test program run as each of the processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "role" {
		if err := proc.Serve(context.Background(), roles.All()[os.Args[2]], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestAFreezeReachesAll checks that every shim is reached. It does not check how soon.
func TestAFreezeReachesAll(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a freeze reaches shims of several brokers stays untested")
	}
	o := bench.Options{Quick: true, Shims: 20, Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}, Log: os.Stderr}, Progress: io.Discard}
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	d.Scenario, d.Title = "freeze", "How long a freeze takes"
	if err := d.Sound(); err != nil {
		t.Error(err)
	}
	for _, c := range d.Checks {
		if !c.OK() {
			t.Errorf("%+v", c)
		}
	}
	if len(d.Figures) < 4 {
		t.Errorf("the figures are %+v", d.Figures)
	}
}

func TestWhatPassesAFreezeIsSeen(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	one := func(shim, asked, answered int, refused bool) Call {
		return Call{Shim: shim, Asked: at(asked), Answered: at(answered), Refused: refused}
	}
	right := change{began: began, done: at(30), brokers: 2, calls: []Call{
		one(0, -5, 2, false), one(1, 5, 8, false), one(0, 10, 12, true), one(1, 40, 45, true), one(1, 50, 55, true),
	}}
	want := times{first: 12 * time.Millisecond, every: 45 * time.Millisecond, last: 8 * time.Millisecond, confirmed: 30 * time.Millisecond}
	if got := timed(&right, true); got != want {
		t.Errorf("%+v", got)
	}
	for name, c := range map[string]struct {
		more   Call
		broken string
	}{
		"all is well":                       {one(0, 60, 61, true), ""},
		"one that passed before is no harm": {one(0, 20, 29, false), ""},
		"one that passed after it":          {one(0, 31, 35, false), refused},
		"one without an answer":             {Call{Asked: at(5), Answered: at(9), Err: errors.New("nobody")}, answered},
	} {
		t.Run(name, func(t *testing.T) {
			d, wrong := new(report.Document), right
			wrong.calls = append(slices.Clip(wrong.calls), c.more)
			judge(d, refused, &wrong, true)
			for _, check := range d.Checks {
				if check.OK() != (check.Name != c.broken) {
					t.Errorf("%+v", check)
				}
			}
		})
	}
}

func TestTheNumberOfShimsIsBounded(t *testing.T) {
	for want, o := range map[bool][]bench.Options{
		true:  {{Shims: DefaultShims}, {Quick: true}, {Shims: 1}},
		false: {{Shims: 0}, {Shims: -1}, {Shims: 10_001}, {Quick: true, Shims: -1}},
	} {
		for _, o := range o {
			if err := Check(&o); (err == nil) != want {
				t.Errorf("%d shims: %v", o.Shims, err)
			}
		}
	}
}
