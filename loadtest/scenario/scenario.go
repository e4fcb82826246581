package scenario

import (
	"time"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/schema"
)

// A Kind is what a scenario does.
type Kind string

// The kinds of scenarios.
const (
	// Fleet keeps to one load.
	Fleet = "fleet"
	// Saturate raises the load until the fabric does not keep up.
	Saturate = "saturate"
	// Overload offers twice what the fabric keeps up with.
	Overload = "overload"
	// Chaotic keeps to one load while things go wrong at random.
	Chaotic = "chaos"
	// Soaking keeps to one load and looks for what grows.
	Soaking = "soak"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Fleet, Saturate, Overload, Chaotic, Soaking, Clustered} }

// A Scenario is one run of many agents. Its JSON is what a report says of it.
type Scenario struct {
	Name string `json:"name"`
	// Kind is what it does: one of [Kinds].
	Kind   Kind   `json:"kind"`
	Fabric Fabric `json:"fabric"`
	// Agents use tools, through so many Connections, which so many Drivers hold:
	// processes.
	Agents      int `json:"agents"`
	Connections int `json:"connections"`
	Drivers     int `json:"drivers"`
	// Arrivals is how the moments of an agent's calls lie.
	Arrivals load.Law `json:"arrivals"`
	// Rate is how many tools all agents together use per second; 0: each thinks for
	// Think, on average, from one use to the next.
	Rate  float64         `json:"rate,omitzero" as:"rate"`
	Think schema.Duration `json:"think,omitzero"`
	// Steps are a load that changes, instead of a rate, and last as long as the run.
	Steps load.Curve `json:"steps,omitzero"`
	// For is how long is measured, after the load was on for Warm.
	For  schema.Duration `json:"for"`
	Warm schema.Duration `json:"warm"`
	// Seed draws everything that is drawn.
	Seed uint64 `json:"seed"`
	// Deadline is by when a call must be answered.
	Deadline schema.Duration `json:"deadline"`
	// ToolTime is how long a tool takes, on average.
	ToolTime schema.Duration `json:"tool_time"`
	Shares   Shares          `json:"shares"`
	// Injections is how many messages are sent to agents per tool call. Messages is their least
	// number in the whole run instead; 0: Injections decides.
	Injections float64 `json:"injections"`
	Messages   int     `json:"messages,omitzero"`
	// Producers is the number of processes that send messages.
	Producers int `json:"producers"`
	// Daemon is how many agents ask through `agentshim serve`, at most half of all.
	Daemon int `json:"daemon,omitzero"`
	// LastKill kills the broker once more after all messages were delivered: the queue must
	// stay empty.
	LastKill bool `json:"last_kill,omitzero"`
	// Runaway has some agents more ask without end.
	Runaway Runaway `json:"runaway,omitzero"`
	// InFlight bounds the calls that one driver has under way.
	InFlight int `json:"in_flight"`
	// Faults are done meanwhile, at their times since measuring began.
	Faults []faults.Fault `json:"faults,omitzero"`
	Knee   Knee           `json:"knee,omitzero"`
	Chaos  Chaos          `json:"chaos,omitzero"`
	Soak   Soak           `json:"soak,omitzero"`
	// Cluster are the faults of a cluster, which happen in a scenario of that kind.
	Cluster Cluster `json:"cluster,omitzero"`
}

// Fabric is what is under load.
type Fabric struct {
	// Kind is where it runs.
	Kind field.Kind `json:"kind"`
	// NATS and Creds are where an external one is, and how to be let in.
	NATS  string `json:"nats,omitzero"`
	Creds string `json:"creds,omitzero"`
	// Brokers and Workers are how many processes of each are started. An embedded fabric is
	// one broker that has a worker in itself.
	Brokers int `json:"brokers"`
	Workers int `json:"workers"`
	// Slots is how many batches a worker runs at once.
	Slots int `json:"slots"`
	// Server has the brokers use a NATS server that is a process of its own.
	Server bool `json:"server,omitzero"`
	// Cluster has the brokers be one, with a server in each.
	Cluster bool `json:"cluster,omitzero"`
	// Links has connections go through links on which faults of the network can be done, also
	// where none is: what such a fabric keeps up with is less.
	Links bool `json:"links,omitzero"`
	// Sync is how often the server syncs to disk; 0: at every write.
	Sync schema.Duration `json:"sync,omitzero"`
}

// Shares are parts of all uses of tools; what is left is judged by a hook of the
// workers.
type Shares struct {
	// Deny is refused: a third in the broker, the others by a worker, of which one half would
	// be rewritten by the hooks behind.
	Deny float64 `json:"deny" as:"share"`
	// Rewrite goes through a chain of hooks that rewrite.
	Rewrite float64 `json:"rewrite" as:"share"`
	// Unmatched is no hook's business.
	Unmatched float64 `json:"unmatched" as:"share"`
	// Inside is allowed by a hook in the broker.
	Inside float64 `json:"inside" as:"share"`
	// Slow meets a hook that takes some time.
	Slow float64 `json:"slow" as:"share"`
}

// Sum is what the shares come to.
func (s Shares) Sum() float64 { return s.Deny + s.Rewrite + s.Unmatched + s.Inside + s.Slow }

// A Knee says how the rate is searched for that the fabric still keeps up with.
type Knee struct {
	// From is the first rate, and the one that others are compared with.
	From float64 `json:"from" as:"rate"`
	// Most is where the search ends.
	Most float64 `json:"most" as:"rate"`
	// Step is how long each rate is measured.
	Step schema.Duration `json:"step"`
	// Answered is which part of the calls must be answered in their time.
	Answered float64 `json:"answered" as:"share"`
	// P99 may be so many times that of the first rate, or Floor if that is more.
	P99   float64         `json:"p99"`
	Floor schema.Duration `json:"floor"`
}

// Default is a scenario that takes half a minute on a small machine.
func Default() Scenario {
	return Scenario{
		Name: Fleet, Kind: Fleet, Fabric: Fabric{Kind: field.Local, Brokers: 1, Workers: 2, Slots: 64},
		Agents: 200, Connections: 8, Drivers: 1, Arrivals: load.Poisson, Rate: 300,
		For: seconds(30), Warm: seconds(2), Seed: 1, Deadline: seconds(5), ToolTime: schema.Duration(20 * time.Millisecond),
		Shares:     Shares{Deny: 0.05, Rewrite: 0.05, Unmatched: 0.3, Inside: 0.2, Slow: 0.02},
		Injections: 0.1, Producers: 1, InFlight: 20_000,
		Knee:  Knee{From: 200, Most: 20_000, Step: seconds(5), Answered: 0.98, P99: 10, Floor: schema.Duration(20 * time.Millisecond)},
		Chaos: Chaos{Together: 1, Longest: seconds(3), Pause: seconds(2), Quiet: seconds(12)},
	}
}

func seconds(n int) schema.Duration { return schema.Duration(time.Duration(n) * time.Second) }

// Curve is the load, as long as it is measured.
func (s *Scenario) Curve() load.Curve {
	if len(s.Steps) > 0 {
		return s.Steps
	}
	return load.Steady(s.PerSecond(), s.For.Std())
}

// Excused reports whether calls and hooks without an answer are to be expected.
func (s *Scenario) Excused() bool {
	return s.Kind != Fleet && s.Kind != Soaking || len(s.Faults) > 0
}

// Behind is how many agents ask through a daemon.
func (s *Scenario) Behind() int { return min(s.Daemon, s.Agents/2) }

// SendsMessages reports whether producers send messages to agents.
func (s *Scenario) SendsMessages() bool { return s.Injections > 0 || s.Messages > 0 }

// DrawsFaults reports whether faults are drawn for the scenario.
func (s *Scenario) DrawsFaults() bool { return s.Kind == Chaotic || s.Kind == Soaking && s.Soak.Chaos }

// PerSecond is the rate, or the one that comes of what agents think.
func (s *Scenario) PerSecond() float64 {
	if s.Rate > 0 {
		return s.Rate
	}
	return float64(s.Agents) / s.Think.Std().Seconds()
}
