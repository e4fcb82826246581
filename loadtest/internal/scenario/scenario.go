package scenario

import (
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/schema"
)

// A Kind is a kind of scenario.
type Kind string

// The kinds of scenarios.
const (
	// Fleet runs a constant load.
	Fleet = "fleet"
	// Saturate raises the load until the fabric does not keep up.
	Saturate = "saturate"
	// Overload offers twice the rate that the fabric keeps up with.
	Overload = "overload"
	// Chaotic runs a constant load with random faults.
	Chaotic = "chaos"
	// Soaking runs a constant load and looks for growth.
	Soaking = "soak"
	// Clustered causes faults in a cluster of brokers, one part after the other. The next
	// fault waits until all brokers have the complete state.
	Clustered = "cluster"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Fleet, Saturate, Overload, Chaotic, Soaking, Clustered} }

// A Scenario is one run of many agents. A report contains its JSON.
type Scenario struct {
	Name string `json:"name"`
	// Kind is one of [Kinds].
	Kind   Kind   `json:"kind"`
	Fabric Fabric `json:"fabric"`
	// Agents is the number of agents that use tools. They share Connections, which belong
	// to Drivers processes.
	Agents      int `json:"agents"`
	Connections int `json:"connections"`
	Drivers     int `json:"drivers"`
	// Rate is how many tools all agents together use per second.
	Rate float64 `json:"rate,omitzero"`
	// Steps are a load that changes, instead of Rate. They last as long as the run.
	Steps load.Curve `json:"-"`
	// For is the duration of the measurement. Warm is the duration of the load before it.
	For  schema.Duration `json:"for"`
	Warm schema.Duration `json:"warm"`
	// Seed is the seed of all random values.
	Seed uint64 `json:"seed"`
	// Deadline limits how long the answer to a call may take.
	Deadline schema.Duration `json:"deadline"`
	// ToolTime is how long a tool takes, on average.
	ToolTime schema.Duration `json:"tool_time"`
	Shares   Shares          `json:"shares"`
	// Injections is the number of messages to agents per tool call. Messages is the least
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
	// Runaway adds agents that ask far more often than one agent may.
	Runaway Runaway `json:"runaway,omitzero"`
	// InFlight limits the calls in flight of one driver.
	InFlight int `json:"in_flight"`
	// Faults happen during the load, at their times since measuring began.
	Faults []faults.Fault `json:"faults,omitzero"`
	Knee   Knee           `json:"knee,omitzero"`
	Chaos  Chaos          `json:"chaos,omitzero"`
	Soak   Soak           `json:"soak,omitzero"`
	// Cluster has the faults of a scenario of the kind [Clustered].
	Cluster Cluster `json:"cluster,omitzero"`
}

// Fabric describes the fabric under load.
type Fabric struct {
	// Kind says how the fabric runs.
	Kind field.Kind `json:"kind"`
	// NATS and Creds are the URL of an external fabric and its credentials.
	NATS  string `json:"nats,omitzero"`
	Creds string `json:"creds,omitzero"`
	// Brokers and Workers are how many processes of each start. An embedded fabric is one
	// broker that contains a worker.
	Brokers int `json:"brokers"`
	Workers int `json:"workers"`
	// Slots is how many batches a worker runs at once.
	Slots int `json:"slots"`
	// Server makes the brokers use a separate NATS server process.
	Server bool `json:"server,omitzero"`
	// Cluster makes the brokers a cluster, with a server in each.
	Cluster bool `json:"cluster,omitzero"`
	// Links sends connections through links, which can have network faults, even without
	// such faults. A fabric with links keeps up with less.
	Links bool `json:"links,omitzero"`
	// Sync is how often the server syncs to disk; 0: at every write.
	Sync schema.Duration `json:"sync,omitzero"`
}

// Shares are parts of all uses of tools. A hook of the workers judges the rest.
type Shares struct {
	// Deny is the part that hooks deny: the broker a third, and a worker the others. Later
	// hooks would rewrite one half of the latter.
	Deny float64 `json:"deny"`
	// Rewrite is the part that goes through a chain of rewriting hooks.
	Rewrite float64 `json:"rewrite"`
	// Unmatched is the part that no hook matches.
	Unmatched float64 `json:"unmatched"`
	// Inside is the part that a hook in the broker allows.
	Inside float64 `json:"inside"`
	// Slow is the part that a slow hook judges.
	Slow float64 `json:"slow"`
}

// Sum returns the sum of the shares.
func (s Shares) Sum() float64 { return s.Deny + s.Rewrite + s.Unmatched + s.Inside + s.Slow }

// A Knee configures the search for the highest rate that the fabric keeps up with.
type Knee struct {
	// From is the first rate. Other rates are compared with it.
	From float64 `json:"from"`
	// Most is the highest rate of the search.
	Most float64 `json:"most"`
	// Step is how long each rate is measured.
	Step schema.Duration `json:"step"`
	// Answered is the part of the calls that must be answered in time.
	Answered float64 `json:"answered"`
	// P99 is the highest allowed p99, as a multiple of the p99 of the first rate. If Floor
	// is higher, Floor is the limit.
	P99   float64         `json:"p99"`
	Floor schema.Duration `json:"floor"`
}

// Default returns a scenario that takes half a minute on a small machine.
func Default() Scenario {
	return Scenario{
		Name: Fleet, Kind: Fleet, Fabric: Fabric{Kind: field.Local, Brokers: 1, Workers: 2, Slots: 64},
		Agents: 200, Connections: 8, Drivers: 1, Rate: 300,
		For: seconds(30), Warm: seconds(2), Seed: 1, Deadline: seconds(5), ToolTime: schema.Duration(20 * time.Millisecond),
		Shares:     Shares{Deny: 0.05, Rewrite: 0.05, Unmatched: 0.3, Inside: 0.2, Slow: 0.02},
		Injections: 0.1, Producers: 1, InFlight: 20_000,
		Knee:  Knee{From: 200, Most: 20_000, Step: seconds(5), Answered: 0.98, P99: 10, Floor: schema.Duration(20 * time.Millisecond)},
		Chaos: Chaos{Together: 1, Longest: seconds(3), Pause: seconds(2), Quiet: seconds(12)},
	}
}

func seconds(n int) schema.Duration { return schema.Duration(time.Duration(n) * time.Second) }

// Curve returns the load during the measurement.
func (s *Scenario) Curve() load.Curve {
	if len(s.Steps) > 0 {
		return s.Steps
	}
	return load.Steady(s.Rate, s.For.Std())
}

// Excused reports whether calls and hooks without an answer are expected.
func (s *Scenario) Excused() bool {
	return s.Kind != Fleet && s.Kind != Soaking || len(s.Faults) > 0
}

// Behind returns how many agents ask through a daemon.
func (s *Scenario) Behind() int { return min(s.Daemon, s.Agents/2) }

// SendsMessages reports whether producers send messages to agents.
func (s *Scenario) SendsMessages() bool { return s.Injections > 0 || s.Messages > 0 }

// DrawsFaults reports whether the scenario has random faults.
func (s *Scenario) DrawsFaults() bool { return s.Kind == Chaotic || s.Kind == Soaking && s.Soak.Chaos }
