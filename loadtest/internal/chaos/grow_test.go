package chaos

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// went returns the memory of a process over ten minutes, which starts at level and grows by
// growth. In its first minutes it takes what it needs.
func went(level, growth float64) *course {
	random := rand.New(rand.NewPCG(1, 2))
	rss, _, _, _, _ := quantities()
	c := &course{quantity: rss, member: "broker-1"}
	for second := range 600 {
		warm := min(float64(second)/120, 1)
		noise := random.Float64() * 0.2 * level // a collector takes and gives back
		c.add(float64(second), level*warm+growth*float64(second)/600+noise)
	}
	return c
}

func TestWhatGrowsIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		level, growth float64
		want          bool
	}{
		"a process that takes what it needs and no more": {60 * mib, 0, true},
		"one that grows a little":                        {60 * mib, 2 * mib, true},
		"one that leaks":                                 {60 * mib, 60 * mib, false},
		"a large one may grow by more":                   {1000 * mib, 30 * mib, true},
		"one that gives back":                            {60 * mib, -30 * mib, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := went(c.level, c.growth).judged(0, 0)
			all := growthChecks([]growth{g})
			if g.flat() != c.want || all[0].OK() != c.want {
				t.Errorf("%v; %+v", g, all)
			}
			if !c.want && !strings.Contains(all[0].Examples[0], "broker-1 grew by") {
				t.Errorf("it says %q", all[0].Examples)
			}
		})
	}
}

func TestWhatIsKnownOfInjectionsMayGrow(t *testing.T) {
	_, inUse, _, _, _ := quantities()
	memory, heap := went(60*mib, 60*mib), went(20*mib, 20*mib)
	heap.quantity = inUse
	judged := func(told float64) (growth, growth) {
		all := []growth{memory.judged(0, told), heap.judged(0, told)}
		explained(all)
		return all[0], all[1]
	}
	if m, h := judged(200); !h.flat() || !m.flat() || m.allowed() < headroom*5*mib || m.allowed() > headroom*h.allowed() {
		t.Errorf("with sixty thousand injections: %v; %v", m, h)
	}
	if m, h := judged(2); h.flat() || m.flat() {
		t.Errorf("six hundred injections are no reason: %v; %v", m, h)
	}
	heap = went(20*mib, 0)
	heap.quantity = inUse
	if m, h := judged(200); !h.flat() || m.flat() {
		t.Errorf("a heap that does not grow is no reason: %v; %v", m, h)
	}
	heap, memory.member = went(20*mib, 20*mib), "worker-1"
	heap.quantity, heap.member = inUse, memory.member
	if m, h := judged(200); h.flat() || m.flat() {
		t.Errorf("a worker knows of no injections: %v; %v", m, h)
	}
}

func TestAProcessThatWasReplacedIsJudgedFromThenOn(t *testing.T) {
	m := &fleet.Measured{Began: time.Unix(0, 0), Scenario: &scenario.Scenario{Rate: 1, For: schema.Duration(10 * time.Minute)}}
	for second := range 600 {
		rss := uint64(second) * mib // it leaks, and is killed before that shows
		if second >= 300 {
			rss = 50 * mib
		}
		m.Samples = append(m.Samples, fleet.Sample{At: float64(second), Members: map[string]proc.Usage{
			"broker-1": {RSS: rss, Files: 10, Threads: 5}, "driver-1": {RSS: uint64(second) * mib},
		}})
	}
	m.Done = []faults.Done{{Fault: faults.Fault{Kind: faults.Kill, Member: "broker-1"}, Until: time.Unix(300, 0)}}
	all := judged(m, []left{{member: "broker-1", at: time.Unix(400, 0)}})
	for _, g := range all {
		if g.member != "broker-1" {
			t.Errorf("%s is none of the fabric's", g.member)
		}
		if g.name == "memory" && (g.from < 300 || !g.flat() || !g.enough()) {
			t.Errorf("%v, level %v", g, g.level)
		}
		if g.name == "heap" && g.enough() {
			t.Errorf("one point is enough for %+v", g)
		}
	}
	var heap report.Check
	for _, c := range growthChecks(all) {
		if strings.HasPrefix(c.Name, "heap") {
			heap = c
		}
	}
	if heap.OK() || heap.Seen != 0 {
		t.Errorf("a heap that nobody looked at is held to be fine: %+v", heap)
	}
}

func TestProcessesThatAreToBeJudgedLiveLong(t *testing.T) {
	s, err := scenario.Shipped(scenario.Soaking)
	if err != nil {
		t.Fatal(err)
	}
	if all := withFaults(s).Faults; len(all) > 0 {
		t.Errorf("nobody asked for %v", all)
	}
	s.For, s.Soak.Chaos = schema.Duration(time.Hour), true
	killed := map[bool]int{} // by whether it belongs to the fabric
	for _, f := range withFaults(s).Faults {
		if f.Kind != faults.Kill {
			continue
		}
		killed[ofFabric(f.Member)]++
		if ofFabric(f.Member) && f.At > s.For*4/10 {
			t.Errorf("%v at %v", f, f.At)
		}
	}
	if killed[true] == 0 || killed[false] == 0 || len(s.Faults) > 0 {
		t.Errorf("killed were %v", killed)
	}
}

// TestAShortSoak checks that the soak measures every quantity that it must judge. The run
// is too short to judge growth.
func TestAShortSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether a soak sees what its processes hold stays untested")
	}
	t.Parallel()
	s, err := scenario.Shipped(scenario.Soaking)
	if err != nil {
		t.Fatal(err)
	}
	s.Agents, s.Connections, s.Rate, s.Fabric.Workers = 20, 3, 40, 1
	s.For, s.Warm, s.Injections = schema.Duration(8*time.Second), 0, 0
	s.Soak.Settle = schema.Duration(250 * time.Millisecond)
	d, err := Run(t.Context(), s, fleet.Stage{Dir: t.TempDir(), Crew: &proc.Crew{Args: []string{"role"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Sound(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"heap did not grow by more than the index of delivered messages", "goroutines did not grow"} {
		if c := d.Check(name); c.Seen != 2 || c.Least != 2 {
			t.Errorf("%+v", *c)
		}
	}
	if len(d.Plots) != 5 || len(d.Plots[3].Lines) != 2 {
		t.Errorf("the plots are %+v", d.Plots)
	}
}
