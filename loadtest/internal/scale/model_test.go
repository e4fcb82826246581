package scale

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// simple returns units for mental arithmetic.
func simple() Units {
	return Units{
		Call: 10e-6, LocalCall: 20e-6, RemoteCall: 40e-6, WorkerCall: 20e-6, FleetCall: 20e-6, Wire: 1024, WorkerWire: 2048,
		Agent: 1024, Connection: 4096, Item: 2048, ItemCPU: 100e-6, Cursor: 256, Seen: 128, Writes: 1000,
		Connect: 100e-6, Return: 200e-6, Start: 1, ItemStart: 1e-5,
	}
}

func small() Fleet {
	return Fleet{
		Agents: 6000, CallsPerMinute: 10, Local: 0.5, Remote: 0.25, HookTime: 80e-6, Injections: 3.6, Pending: 1,
		AgentsPerHost: 10, Cores: 4, Busy: 0.5, Memory: 1 << 30,
	}
}

func TestWhatIsNeededIsTheSum(t *testing.T) {
	u := simple()
	d := small().Document(&u)
	got := map[string]string{}
	for _, row := range d.Tables[1].Rows {
		got[row[0]] = row[1]
	}
	for what, want := range map[string]string{
		"events": "1,000/s", // 6000 × 10 : 60
		// 1000 × (10 : 4 + 20 : 2 + 40 : 4) µs, and 6 items per second twice 100 µs
		"brokers' CPU":                       "0.0237 cores",
		"workers' CPU":                       "0.025 cores", // 250 × 100 µs
		"worker machines":                    "1",
		"to and from agents":                 "1,000 KiB/s",
		"to and from workers":                "500 KiB/s",
		"fabrics, each with its own buckets": "1",
		"brokers in each fabric":             "1",
		// 2 × 6000 × 3 KiB, and of a day's 518,400 items as many ends as are kept: 500,000 × 245 B
		"memory of each broker, twice its live heap":                "269 MiB",
		"connections, one per host":                                 "600",
		"memory of the NATS servers for them":                       "2.34 MiB",
		"writes to the items stream of each fabric":                 "12/s",
		"record of verdicts in each fabric":                         "146 KiB/s", // 1000 × 150 B
		"writes to the list of seen agents in each fabric":          "50/s",
		"CPU time until all clients of a restarted fabric are back": "120 ms",
		"restart of a broker":                                       "1.06 s",
	} {
		if got[what] != want {
			t.Errorf("%s: %q where %q is due", what, got[what], want)
		}
	}
	if len(d.Notes) > 0 {
		t.Errorf("notes of units that are all there: %q", d.Notes)
	}
}

func TestTheFirstLimitStandsFirst(t *testing.T) {
	u := simple()
	u.Writes = 0.01 // the slowest disk there is
	all := small().Limits(&u)
	if !strings.Contains(all[0].What, "writes") || !slices.IsSortedFunc(all, func(a, b Limit) int { return int(a.Agents - b.Agents) }) {
		t.Errorf("the limits are %+v", all)
	}
	// 0.5 × 0.01 : (2 × 0.001) = 2.5 agents for each fabric
	if got := small().Cells(&u); got != 2400 {
		t.Errorf("%v fabrics are needed", got)
	}
}

func TestManyConnectionsMakeEveryCallDearer(t *testing.T) {
	u, f := simple(), small()
	before := f.perCall(&u)
	u.FleetCall = 50e-6
	if more := f.perCall(&u) - before; math.Abs(more-30e-6) > 1e-12 {
		t.Errorf("a call that takes 30 µs more where agents are many takes %v s more", more)
	}
	if u.FleetCall = 0; f.perCall(&u) != before {
		t.Errorf("what was not measured changes a call from %v to %v s", before, f.perCall(&u))
	}
}

// TestTheMemoryOfABrokerIsFull checks that the highest number of agents fills a broker's
// memory, both below and above the limit of remembered ends.
func TestTheMemoryOfABrokerIsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, u := small(), simple()
		f.Injections = rapid.Float64Range(0, 100).Draw(t, "injections")
		f.Memory = rapid.Float64Range(1<<29, 1<<36).Draw(t, "memory")
		most := f.most(&u)
		if full := 2 * (most*f.held(&u) + f.ends(most)); math.Abs(full/f.Memory-1) > 1e-9 {
			t.Fatalf("%v agents take %v B of %v", most, full, f.Memory)
		}
	})
}

func TestWhatNobodyUsesIsNoLimit(t *testing.T) {
	f, u := small(), simple()
	f.Injections, f.Pending = 0, 0
	for _, l := range f.Limits(&u) {
		if strings.Contains(l.What, "items") {
			t.Errorf("a fleet without items meets %+v", l)
		}
	}
}

// A larger fleet never needs less.
func TestMoreTakesMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, u := small(), simple()
		f.Agents = rapid.Float64Range(1, 1e7).Draw(t, "agents")
		f.Pending = rapid.Float64Range(0, 10).Draw(t, "pending")
		f.Injections = rapid.Float64Range(0, 100).Draw(t, "injections")
		more := f
		more.Agents *= rapid.Float64Range(1, 100).Draw(t, "times")
		cells := f.Cells(&u)
		if more.Cells(&u) < cells || cells < 1 {
			t.Fatalf("%v agents need %v fabrics, %v need %v", f.Agents, cells, more.Agents, more.Cells(&u))
		}
		for _, l := range f.Limits(&u) {
			if l.Agents <= 0 {
				t.Fatalf("a limit that cannot be: %+v", l)
			}
		}
	})
}

func TestUnitsThatAreMissingAreNamed(t *testing.T) {
	u := simple()
	u.Wire = 0
	if d := small().Document(&u); len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "[wire]") {
		t.Errorf("the notes are %q", d.Notes)
	}
}

func TestFleetsThatCanNotBe(t *testing.T) {
	if err := Default().Check(); err != nil {
		t.Error(err)
	}
	for i, change := range []func(*Fleet){
		func(f *Fleet) { f.Agents = 0 }, func(f *Fleet) { f.CallsPerMinute = -1 }, func(f *Fleet) { f.AgentsPerHost = 0.5 },
		func(f *Fleet) { f.Busy = 1.1 }, func(f *Fleet) { f.Agents = math.Inf(1) }, func(f *Fleet) { f.Cores = math.NaN() }, func(f *Fleet) { f.Pending = 1e300 }, func(f *Fleet) { f.Local, f.Remote = 0.6, 0.6 }, func(f *Fleet) { f.Pending = -1 },
	} {
		f := Default()
		change(&f)
		if f.Check() == nil {
			t.Errorf("number %d was taken: %+v", i, f)
		}
	}
}
