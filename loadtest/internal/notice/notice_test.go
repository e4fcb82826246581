package notice

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// TestMain lets the test program run as each of the processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "role" {
		starts := roles.All()
		maps.Copy(starts, Roles())
		if err := proc.Serve(context.Background(), starts[os.Args[2]], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestEveryLossIsNoticed checks that every loss is noticed. It does not check how soon.
func TestEveryLossIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether losses are noticed, and by whom, stays untested")
	}
	o := bench.Options{Repetitions: 1, Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}, Log: os.Stderr}, Progress: io.Discard}
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	d.Scenario, d.Title = "notice", "How long nobody notices"
	if err := d.Sound(); err != nil {
		t.Error(err)
	}
	for _, c := range d.Checks {
		if !c.OK() {
			t.Errorf("%+v", c)
		}
	}
	if len(d.Figures) != len(losses()) {
		t.Errorf("the figures are %+v", d.Figures)
	}
	for _, f := range d.Figures {
		if len(f.Samples) != o.Repetitions || f.Value <= 0 || f.Budget == nil {
			t.Errorf("the figure is %+v", f)
		}
	}
}

func TestALossIsJudged(t *testing.T) {
	deny := answer{verdict: &schema.Verdict{Decision: schema.Deny, Reason: refused}}
	for name, c := range map[string]struct {
		of     sample
		broken string // the check; empty: none
		over   bool
	}{
		"one that is noticed in time is fine": {sample{noticed: time.Millisecond, answers: []answer{deny, deny}}, "", false},
		"one that is noticed late is over the budget, and nothing is wrong": {
			sample{noticed: time.Second, answers: []answer{deny}}, "", true},
		"one that nobody noticed is wrong": {sample{answers: []answer{deny}}, begun, false},
		"a call without an answer is wrong": {
			sample{noticed: time.Millisecond, answers: []answer{deny, {err: errors.New("nobody answered")}}}, answered, false},
		"a call that passed is wrong": {
			sample{noticed: time.Millisecond, answers: []answer{{verdict: &schema.Verdict{Decision: schema.Continue}}}}, guarded, false},
		"a refusal because nobody judged is no answer of the hook": {
			sample{noticed: time.Millisecond, answers: []answer{{verdict: &schema.Verdict{Decision: schema.Deny, Reason: "lost"}}}}, answered, false},
		"no call at all proves nothing": {sample{noticed: time.Millisecond}, answered, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := new(report.Document)
			judge(new(bench.Options), d, losses()[0], []sample{c.of})
			for _, check := range d.Checks {
				if check.OK() != (check.Name != c.broken && check.Seen > 0) {
					t.Errorf("%+v", check)
				}
			}
			if d.OK() != (c.broken == "" && !c.over) {
				t.Errorf("the document is ok: %v, with %+v", d.OK(), d.Figures)
			}
		})
	}
}

func TestTheLastCallThatBeganAgainCounts(t *testing.T) {
	lost := time.Unix(100, 0)
	at := func(event string, after time.Duration) Begin {
		return Begin{Event: event, At: lost.Add(after).UnixNano()}
	}
	const s = time.Second
	for name, c := range map[string]struct {
		begins []Begin
		want   time.Duration
	}{
		"none is under way in the lost one":         {[]Begin{at("a", -s), at("b", -s)}, 0},
		"the later of two is":                       {[]Begin{at("a", -s), at("b", -s), at("b", s), at("a", 2*s)}, 2 * s},
		"one that begins for the first time is not": {[]Begin{at("a", -s), at("a", s), at("b", 3*s)}, s},
	} {
		if got := lastAgain(lost, c.begins); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAFabricIsCompleteWithAllThatAreUp(t *testing.T) {
	s := &stand{workers: []*faults.Victim{faults.NewVictim(faults.Spec{Name: "worker-1"}), faults.NewVictim(faults.Spec{Name: "worker-2"})}}
	status := func(second schema.WorkerStatus) schema.FabricStatus {
		return schema.FabricStatus{ConfigVersion: 7, Pools: []schema.PoolStatus{{Pool: pool, Workers: []schema.WorkerStatus{
			{Worker: "worker-1-0", Versions: []uint64{7}}, second,
		}}}}
	}
	for name, c := range map[string]struct {
		second schema.WorkerStatus
		want   bool
	}{
		"both know what is active":      {schema.WorkerStatus{Worker: "worker-2-0", Versions: []uint64{6, 7}}, true},
		"one is silent":                 {schema.WorkerStatus{Worker: "worker-2-0", Versions: []uint64{7}, Silent: true}, false},
		"one cannot run it yet":         {schema.WorkerStatus{Worker: "worker-2-0", Versions: []uint64{6}}, false},
		"one is known, who is dead now": {schema.WorkerStatus{Worker: "worker-2-1", Versions: []uint64{7}}, false},
	} {
		if got := s.complete(status(c.second)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAWorkerTellsWhenItsHooksBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &begins{takes: time.Second, of: map[string][]int64{}, more: make(chan struct{})}
		look := func(l Look) []Begin {
			all, err := b.look(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			return all.([]Begin)
		}
		began := time.Now()
		time.AfterFunc(time.Minute, func() { b.note("other", time.Now()) })
		time.AfterFunc(2*time.Minute, func() { b.note("mine", time.Now()) })
		want := []Begin{{Event: "mine", At: began.Add(2 * time.Minute).UnixNano()}}
		if d := cmp.Diff(want, look(Look{Events: []string{"mine"}, Want: 1, For: schema.Duration(time.Hour)})); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(want, look(Look{Events: []string{"mine"}, Want: 2, For: schema.Duration(time.Hour)})); d != "" {
			t.Errorf("when nothing more comes: %s", d)
		}
		if waited := time.Since(began); waited != time.Hour+2*time.Minute {
			t.Errorf("it waited %v", waited)
		}
		r, err := b.refuse(t.Context(), &schema.Event{EventID: "third"})
		if err != nil || r.Decision != schema.Deny || r.Reason != refused {
			t.Errorf("the hook says %+v, %v", r, err)
		}
		if all := look(Look{Events: []string{"third", "other"}}); len(all) != 2 || all[0].Event != "other" {
			t.Errorf("in the order of time there are %+v", all)
		}
	})
}
