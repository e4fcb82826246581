package scale

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// A Fleet is the load on a fabric. [Default] is an assumption; replace it with the figures of
// your own agents.
type Fleet struct {
	// Agents is the number of agents that work at the same time.
	Agents float64
	// CallsPerMinute is the number of events of one agent in a minute.
	CallsPerMinute float64
	// Local and Remote are the parts of the calls with a hook inside the broker and
	// with a hook of a remote pool; the rest matches no hook.
	Local, Remote float64
	// HookTime is the CPU time, in seconds, that a hook of a remote pool needs itself.
	HookTime float64
	// Injections is the number of items for one agent in an hour. Pending is the average
	// number that waits for it.
	Injections, Pending float64
	// AgentsPerHost is the number of agents that share a connection through the daemon of
	// their host.
	AgentsPerHost float64
	// Cores is the number of cores of the machine of one broker or worker. Busy is the part
	// of them that may be used. A broker that is alone uses all of them.
	Cores, Busy float64
	// Memory is how much of the machine's memory a broker may use, in bytes.
	Memory float64
}

// Default returns a fleet of a million agents. Each makes a tool call every twenty seconds,
// with hooks before and after it. Most hooks run inside the broker, or no hook matches.
func Default() Fleet {
	return Fleet{
		Agents: 1_000_000, CallsPerMinute: 6, Local: 0.5, Remote: 0.2, HookTime: 0.001, Injections: 2, Pending: 0.1,
		AgentsPerHost: 20, Cores: 8, Busy: 0.5, Memory: 1 << 30,
	}
}

// Check returns an error for a value that the model cannot use.
func (f Fleet) Check() error {
	const most = 1e15 // the limit of all numbers: above it floats lose precision
	for _, v := range []float64{f.Agents, f.CallsPerMinute, f.HookTime, f.Injections, f.Pending, f.AgentsPerHost, f.Cores, f.Memory} {
		if v > most {
			return fmt.Errorf("the value %v is too large to calculate with; write at most %v", v, most)
		}
	}
	switch {
	case !(f.Agents > 0 && f.CallsPerMinute > 0 && f.AgentsPerHost >= 1 && f.Cores > 0 && f.Memory > 0):
		return fmt.Errorf("--agents, --calls-per-minute, --cores and --memory must be above 0, and --agents-per-host at least 1")
	case !(f.Busy > 0 && f.Busy <= 1):
		return fmt.Errorf("--busy is %v; write a fraction of the cores above 0 and up to 1", f.Busy)
	case !(f.Local >= 0 && f.Remote >= 0 && f.Local+f.Remote <= 1):
		return fmt.Errorf("--local (%v) and --remote (%v) are fractions of the calls: write 0 or more for each, and together at most 1", f.Local, f.Remote)
	case !(f.HookTime >= 0 && f.Injections >= 0 && f.Pending >= 0):
		return fmt.Errorf("--hook-time, --injections and --pending cannot be negative")
	}
	return nil
}

// Limits of this release, which the model checks fleets against.
const (
	// mostItems is the limit of waiting items in one fabric. cursorBytes is the size limit
	// of its agents' cursors.
	mostItems   = 1_000_000
	cursorBytes = 256 << 20
	// listedBytes is the size limit of the list of recently seen agents. seenEvery is how
	// often each broker writes each agent there, in seconds.
	listedBytes = 16 << 20
	seenEvery   = 120
	// mostConnections is how many clients one NATS server accepts by default.
	mostConnections = 64 << 10
	// mostEnds is how many ended items a fabric remembers for a day; if there are more, it
	// remembers them for an hour. endBytes is what a broker with its server holds of each,
	// measured in the ten minutes of faults in loadtest/BENCHMARKS.md.
	mostEnds = 500_000
	endBytes = 245
	day      = 24 * 3600
	// recordBytes is the compressed size of a verdict in the record. recordRoom is the
	// default size of the record.
	recordBytes = 150
	recordRoom  = 1 << 30
	// writesPerItem is the number of writes of an item to the items' stream: when it enters
	// the queue and when it ends. Another stream, with the same rate, has its claim, and
	// its acknowledgement, which may come with the next claim.
	writesPerItem = 2
)

// calls returns the number of events of one agent in a second.
func (f Fleet) calls() float64 { return f.CallsPerMinute / 60 }

// perCall returns the broker's CPU time for a call of this mixture. The model assumes that
// many connections add the same time to every call as to a call of one hook inside the
// broker.
func (f Fleet) perCall(u *Units) float64 {
	return (1-f.Local-f.Remote)*u.Call + f.Local*u.LocalCall + f.Remote*u.RemoteCall + max(u.FleetCall-u.LocalCall, 0)
}

// items returns the number of items for one agent in a second.
func (f Fleet) items() float64 { return f.Injections / 3600 }

// cpu returns the broker's CPU time for one agent, in each second. The model assumes that a
// claim of an item costs the same as adding the item to the queue.
func (f Fleet) cpu(u *Units) float64 { return f.calls()*f.perCall(u) + 2*f.items()*u.ItemCPU }

// held returns the memory that a broker needs for one agent, in bytes.
func (f Fleet) held(u *Units) float64 { return u.Agent + f.Pending*u.Item }

// ends returns the memory that a broker needs for the ended items of the given number of
// agents, in bytes.
func (f Fleet) ends(agents float64) float64 {
	return endBytes * min(mostEnds, agents*f.items()*day)
}

// most returns how many agents fit into a broker's memory, half of which is for garbage.
func (f Fleet) most(u *Units) float64 {
	room := f.Memory / 2
	if few := room / (f.held(u) + endBytes*f.items()*day); few*f.items()*day <= mostEnds {
		return few
	}
	return (room - endBytes*mostEnds) / f.held(u)
}

// A Limit is a limit of the growth of a single fabric.
type Limit struct {
	// What is the limit, which Agents agents reach.
	What   string
	Agents float64
	// Sum shows the arithmetic, and Then the remedy.
	Sum, Then string
}

// Limits returns the limits in the order in which they are reached.
func (f Fleet) Limits(u *Units) []Limit {
	all := []Limit{
		{
			"the CPU of one broker", f.Cores * f.Busy / f.cpu(u),
			fmt.Sprintf("%g cores × %g : %s per agent and second", f.Cores, f.Busy, seconds(f.cpu(u))),
			"add brokers: they share the events",
		},
		{
			"writes to the items stream", f.Busy * u.Writes / (writesPerItem * f.items()),
			fmt.Sprintf("%g × %s : (%d × %s per agent)", f.Busy, perSecond(u.Writes), writesPerItem, perSecond(f.items())),
			"use faster disks or a longer --sync, or divide the agents among several fabrics",
		},
		{
			"memory of each broker, which mirrors the state of all agents", f.most(u),
			fmt.Sprintf("(%s : 2 − %s for ended items) : (%s + %g × %s per agent)", bytes(f.Memory), bytes(f.ends(f.most(u))), bytes(u.Agent), f.Pending, bytes(u.Item)),
			"raise GOMEMLIMIT, then divide the agents among several fabrics",
		},
		{
			"size of the bucket of agents' cursors", cursorBytes / u.Cursor,
			fmt.Sprintf("%s : %s per agent", bytes(cursorBytes), bytes(u.Cursor)),
			"divide the agents among several fabrics",
		},
		{
			"limit of waiting items", mostItems / f.Pending,
			fmt.Sprintf("%s : %g per agent", grouped(mostItems), f.Pending),
			"divide the agents among several fabrics; at the limit the queue rejects items with an error",
		},
		{
			"limit of ended items that brokers remember for a day", mostEnds / (f.items() * day),
			fmt.Sprintf("%s : %g per agent", grouped(mostEnds), f.items()*day),
			"nothing to do: brokers remember them for an hour, at least for ten minutes, and reject a later repetition as too old",
		},
		{
			"size of the list of recently seen agents", listedBytes / u.Seen,
			fmt.Sprintf("%s : %s per agent", bytes(listedBytes), bytes(u.Seen)),
			"nothing to do: the list drops the agents that were silent longest, and no call depends on it",
		},
		{
			"connections of one NATS server", mostConnections * f.AgentsPerHost,
			fmt.Sprintf("%s × %g agents per connection", grouped(mostConnections), f.AgentsPerHost),
			"add servers to the cluster, or leaf nodes at the sites",
		},
	}
	all = slices.DeleteFunc(all, func(l Limit) bool { return math.IsInf(l.Agents, 0) || math.IsNaN(l.Agents) })
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(a.Agents, b.Agents) })
	return all
}

func (f Fleet) limits(u *Units) report.Table {
	t := report.Table{
		Title: "Limits of one fabric", Columns: []string{"at agents", "limit", "calculated as", "remedy"},
		Note: "Each row assumes that no other limit is reached first. A fabric is the set of brokers that share one set of buckets.",
	}
	for _, l := range f.Limits(u) {
		t.Rows = append(t.Rows, []string{grouped(l.Agents), l.What, l.Sum, l.Then})
	}
	return t
}

// Cells returns how many fabrics the agents need, each with its own buckets. No fabric then
// reaches a limit that more brokers cannot raise.
func (f Fleet) Cells(u *Units) float64 {
	n := 1.0
	for _, agents := range []float64{
		f.Busy * u.Writes / (writesPerItem * f.items()), f.most(u), cursorBytes / u.Cursor, mostItems / f.Pending,
	} {
		if agents > 0 && !math.IsInf(agents, 0) && !math.IsNaN(agents) {
			n = max(n, math.Ceil(f.Agents/agents))
		}
	}
	return n
}

// Document returns the model as tables.
func (f Fleet) Document(u *Units) *report.Document {
	d := &report.Document{
		Title:  fmt.Sprintf("%s agents, calculated from the cost of one; this command measures nothing", grouped(f.Agents)),
		Tables: []report.Table{f.assumed(), f.Needed(u), f.limits(u)},
	}
	if missing := u.missing(); len(missing) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("the file has no cost for %v; the model counts them as 0. Run `loadtest scale` without --only to measure them.", missing))
	}
	return d
}

// An Assumption is a value of a fleet with its flag.
type Assumption struct {
	Flag, Usage string
	Value       *float64
}

// Assumptions returns the values of the fleet, to change them.
func (f *Fleet) Assumptions() []Assumption {
	return []Assumption{
		{"agents", "agents that work at the same time", &f.Agents},
		{"calls-per-minute", "events per minute of one agent", &f.CallsPerMinute},
		{"local", "fraction of events with a hook inside the broker, 0 to 1", &f.Local},
		{"remote", "fraction of events with a hook on a worker, 0 to 1", &f.Remote},
		{"hook-time", "CPU time of a hook on a worker, in seconds", &f.HookTime},
		{"injections", "messages per hour to one agent", &f.Injections},
		{"pending", "average number of waiting messages per agent", &f.Pending},
		{"agents-per-host", "agents that share a connection", &f.AgentsPerHost},
		{"cores", "cores of one machine", &f.Cores},
		{"busy", "fraction of the cores that may be busy, above 0 and up to 1", &f.Busy},
		{"memory", "memory limit of a broker, in bytes", &f.Memory},
	}
}

// assumed shows the assumptions.
func (f Fleet) assumed() report.Table {
	t := report.Table{Title: "Assumptions", Columns: []string{"assumption", "value"}}
	for _, a := range f.Assumptions() {
		t.Rows = append(t.Rows, []string{a.Usage, report.Thousands(strconv.FormatFloat(*a.Value, 'f', -1, 64))})
	}
	return t
}

// Needed returns the machines, rates and memory that all agents together need.
func (f Fleet) Needed(u *Units) report.Table {
	a, calls, core := f.Agents, f.Agents*f.calls(), f.Cores*f.Busy
	cells, conns := f.Cells(u), f.Agents/f.AgentsPerHost
	brokers := math.Ceil(a / cells * f.cpu(u) / core)
	work := u.WorkerCall + f.HookTime
	rows := [][]string{
		{"events", perSecond(calls), fmt.Sprintf("%s × %g : 60 s", grouped(a), f.CallsPerMinute)},
		{"brokers' CPU", cores(a * f.cpu(u)), fmt.Sprintf("%s × %s + 2 × %s × %s", perSecond(calls), seconds(f.perCall(u)), perSecond(a*f.items()), seconds(u.ItemCPU))},
		{"workers' CPU", cores(calls * f.Remote * work), fmt.Sprintf("%s × %g × (%s + %s)", perSecond(calls), f.Remote, seconds(u.WorkerCall), seconds(f.HookTime))},
		{"worker machines", grouped(math.Ceil(calls * f.Remote * work / core)), fmt.Sprintf("%s : (%g × %g)", cores(calls*f.Remote*work), f.Cores, f.Busy)},
		{"to and from agents", bytes(calls*u.Wire) + "/s", fmt.Sprintf("%s × %s", perSecond(calls), bytes(u.Wire))},
		{"to and from workers", bytes(calls*f.Remote*u.WorkerWire) + "/s", fmt.Sprintf("%s × %g × %s", perSecond(calls), f.Remote, bytes(u.WorkerWire))},
		{"fabrics, each with its own buckets", grouped(cells), "the limits that more brokers do not raise"},
		{"brokers in each fabric", grouped(brokers), fmt.Sprintf("%s : (%g × %g)", cores(a/cells*f.cpu(u)), f.Cores, f.Busy)},
		{"memory of each broker, twice its live heap", bytes(2 * (a/cells*f.held(u) + f.ends(a/cells))), fmt.Sprintf("2 × (%s × (%s + %g × %s) + %s for ended items)", grouped(a/cells), bytes(u.Agent), f.Pending, bytes(u.Item), bytes(f.ends(a/cells)))},
		{"connections, one per host", grouped(conns), fmt.Sprintf("%s : %g", grouped(a), f.AgentsPerHost)},
		{"memory of the NATS servers for them", bytes(conns * u.Connection), fmt.Sprintf("%s × %s; one connection per agent: %s", grouped(conns), bytes(u.Connection), bytes(a*u.Connection))},
		{"writes to the items stream of each fabric", perSecond(a / cells * f.items() * writesPerItem), fmt.Sprintf("%s × %s × %d; a stream accepts %s", grouped(a/cells), perSecond(f.items()), writesPerItem, perSecond(u.Writes))},
		{"record of verdicts in each fabric", bytes(calls/cells*recordBytes) + "/s", fmt.Sprintf("%s × %d B; %s holds %s", perSecond(calls/cells), recordBytes, bytes(recordRoom), seconds(recordRoom/(calls/cells*recordBytes)))},
		{"writes to the list of seen agents in each fabric", perSecond(brokers * a / cells / seenEvery), fmt.Sprintf("%s brokers × %s : %d s, to memory", grouped(brokers), grouped(a/cells), seenEvery)},
		{"CPU time until all clients of a restarted fabric are back", seconds(conns / cells * u.Return), fmt.Sprintf("%s connections × %s, on all cores together", grouped(conns/cells), seconds(u.Return))},
		{"restart of a broker", seconds(u.Start + a/cells*f.Pending*u.ItemStart), fmt.Sprintf("%s + %s items × %s", seconds(u.Start), grouped(a/cells*f.Pending), seconds(u.ItemStart))},
	}
	return report.Table{Title: "Needed", Columns: []string{"need", "value", "calculated as"}, Rows: rows}
}

func grouped(v float64) string   { return report.Thousands(fmt.Sprintf("%.0f", math.Floor(v))) }
func bytes(v float64) string     { return report.Value(v, "B") }
func seconds(v float64) string   { return report.Value(v, "s") }
func perSecond(v float64) string { return report.Value(v, "/s") }
func cores(v float64) string     { return fmt.Sprintf("%.3g cores", v) }

// Units are the costs of one of each. A report of a scale run has them.
type Units struct {
	// Call, LocalCall and RemoteCall are a busy broker's CPU time, in seconds: for a call
	// that no hook matches, a call of one hook inside the broker, and a call of one hook of
	// a remote pool. WorkerCall is the worker's time for the latter, without the hook's own
	// time.
	Call       float64 `json:"call,omitzero"`
	LocalCall  float64 `json:"local_call,omitzero"`
	RemoteCall float64 `json:"remote_call,omitzero"`
	WorkerCall float64 `json:"worker_call,omitzero"`
	// FleetCall is LocalCall if thousands of agents ask over hundreds of connections and
	// may get items: each message is then read and written separately.
	FleetCall float64 `json:"fleet_call,omitzero"`
	// Wire is the traffic of a call between agent and broker, in bytes. WorkerWire is what
	// a hook of a remote pool adds between broker and worker.
	Wire       float64 `json:"wire,omitzero"`
	WorkerWire float64 `json:"worker_wire,omitzero"`
	// Agent, Connection and Item are the bytes of memory of a broker for each agent that it
	// knows, each connection, and each waiting item.
	Agent      float64 `json:"agent,omitzero"`
	Connection float64 `json:"connection,omitzero"`
	Item       float64 `json:"item,omitzero"`
	// ItemCPU is the broker's CPU time, in seconds, to add an item to the queue.
	ItemCPU float64 `json:"item_cpu,omitzero"`
	// Cursor and Seen are the bytes of an agent in the buckets of cursors and of recently
	// seen agents.
	Cursor float64 `json:"cursor,omitzero"`
	Seen   float64 `json:"seen,omitzero"`
	// Writes is how many items per second one stream accepts if each is on the disk before
	// its acknowledgement.
	Writes float64 `json:"writes,omitzero"`
	// Connect is the broker's CPU time, in seconds, to accept one connection. Return is
	// that to accept one again and answer its agent after a restart of the broker.
	Connect float64 `json:"connect,omitzero"`
	Return  float64 `json:"return,omitzero"`
	// Start is how long a broker takes to start, in seconds. ItemStart is the additional
	// time for each waiting item.
	Start     float64 `json:"start,omitzero"`
	ItemStart float64 `json:"item_start,omitzero"`
}

// missing returns the units that are 0, by their names in JSON.
func (u *Units) missing() (names []string) {
	for _, one := range []struct {
		name  string
		value float64
	}{
		{"call", u.Call}, {"local_call", u.LocalCall}, {"remote_call", u.RemoteCall}, {"worker_call", u.WorkerCall}, {"fleet_call", u.FleetCall}, {"wire", u.Wire},
		{"worker_wire", u.WorkerWire}, {"agent", u.Agent}, {"connection", u.Connection}, {"item", u.Item}, {"item_cpu", u.ItemCPU},
		{"cursor", u.Cursor}, {"seen", u.Seen}, {"writes", u.Writes}, {"return", u.Return}, {"start", u.Start}, {"item_start", u.ItemStart},
	} {
		if one.value <= 0 {
			names = append(names, one.name)
		}
	}
	return names
}
