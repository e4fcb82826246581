package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/schema"
)

// The names of the processes that a scenario adds to its fabric, without their
// numbers.
const (
	Driver   = "driver"
	Producer = "producer"
	Daemon   = "daemon"
)

// ShortestFault is the shortest duration of a random fault that has a duration.
const ShortestFault = 300 * time.Millisecond

// A Chaos configures random faults, in addition to those that a scenario lists.
type Chaos struct {
	// Kinds are the kinds of faults to draw from; empty: all kinds.
	Kinds []faults.Kind `json:"kinds,omitzero"`
	// Members are the names or globs of the members to draw from; empty: all members.
	Members []string `json:"members,omitzero"`
	// Together is the highest number of faults at the same time.
	Together int `json:"together"`
	// Longest is the longest duration of a fault. Pause is the average time without faults
	// after it.
	Longest schema.Duration `json:"longest"`
	Pause   schema.Duration `json:"pause"`
	// Lives kills processes instead. Its values are the average lifetimes by kind of
	// process. No process lives longer than 60 % of the time with faults, so each dies at
	// least once.
	Lives map[string]schema.Duration `json:"lives,omitzero"`
	// Quiet is the time without faults at the end, which shows whether the fabric recovers:
	// see [Scenario.Quiet].
	Quiet schema.Duration `json:"quiet"`
}

// A Soak configures the search for what grows.
type Soak struct {
	// Settle is the interval between garbage collections of the fabric's processes, which
	// make the live memory measurable; 0: [Scenario.SettleEvery] decides.
	Settle schema.Duration `json:"settle,omitzero"`
	// Chaos adds random faults. The fabric's processes are killed only in the first part of
	// the run, because growth shows only in processes that live long.
	Chaos bool `json:"chaos,omitzero"`
	// OfKnee is the rate as a part of the knee, which the run searches first; 0: the
	// scenario sets the rate.
	OfKnee float64 `json:"of_knee,omitzero"`
}

// Quiet returns the time without faults at the end: at most a third of the run. If
// processes are killed repeatedly, it is at most two thirds.
func (s *Scenario) Quiet() time.Duration {
	most := s.For.Std() / 3
	if len(s.Chaos.Lives) > 0 {
		most *= 2
	}
	return min(s.Chaos.Quiet.Std(), most)
}

// Members returns the names of all processes that faults can affect.
func (s *Scenario) Members() []string {
	var all []string
	some := func(kind string, n int) {
		for i := range n {
			all = append(all, field.Numbered(kind, i+1))
		}
	}
	if s.Fabric.Kind != field.External {
		if s.Fabric.Server {
			all = append(all, field.Server)
		}
		some(field.Broker, s.Fabric.Brokers)
	}
	if s.Fabric.Kind != field.Embedded {
		some(field.Worker, s.Fabric.Workers)
	}
	some(Driver, s.Drivers)
	if s.Behind() > 0 {
		some(Daemon, 1)
	}
	if s.SendsMessages() {
		some(Producer, s.Producers)
	}
	return all
}

// HasLink reports whether a member has its own link in front of it. The server, and a
// broker that contains the server, have none.
func (s *Scenario) HasLink(member string) bool {
	return member != field.Server && (s.Fabric.Server || member != field.Numbered(field.Broker, 1))
}

const (
	// SoakPoints is the lowest number of points for a judgement of growth. The points are
	// from the second half of a run, or from the time after a kill.
	SoakPoints = 8
	// SoakLives is the part of a run with chaos in which processes of the fabric are
	// killed.
	SoakLives = 0.4
	// spare is how many points may be missing, because a collection takes time.
	spare = 2
	// settles is the default number of garbage collections in a run, but their interval is
	// at least settleLeast. sample is the interval of the other measurements.
	settles     = 120
	settleLeast = 2 * time.Second
	sample      = time.Second
)

// SettleEvery returns the interval between garbage collections of the fabric's processes.
func (s *Scenario) SettleEvery() time.Duration {
	return cmp.Or(s.Soak.Settle.Std(), max(s.For.Std()/settles, settleLeast))
}

// LeastSoak returns how long a soak must be to have enough points.
func (s *Scenario) LeastSoak() time.Duration {
	long := 2 * (SoakPoints + spare) * max(cmp.Or(s.Soak.Settle.Std(), settleLeast), sample)
	if s.Soak.Chaos {
		long = time.Duration(float64(long)/(1-SoakLives)) + s.Chaos.Longest.Std()
	}
	return (long + time.Second - 1).Truncate(time.Second)
}

// A Cluster configures the faults of a cluster.
type Cluster struct {
	// Away is how long each fault lasts.
	Away  schema.Duration `json:"away"`
	Parts []Part          `json:"parts"`
}

// A Part is a group of faults of the same kinds, with its own loads.
type Part struct {
	Name string `json:"name"`
	// Faults are the kinds. Each fault affects the current leader of the queue or, with
	// Each, every broker in turn.
	Faults []faults.Kind `json:"faults"`
	Each   bool          `json:"each,omitzero"`
	// Away overrides the duration of the cluster's faults; 0: it does not.
	Away schema.Duration `json:"away,omitzero"`
	// Changes applies configurations during the fault.
	Changes bool `json:"changes,omitzero"`
	// Freeze freezes agents during the fault.
	Freeze bool `json:"freeze,omitzero"`
}

// CutsOff reports whether the part cuts off brokers from each other.
func (p Part) CutsOff() bool {
	return slices.ContainsFunc(p.Faults, faults.Kind.OnWire)
}

// Unnoticed reports whether calls must not be affected: brokers only restart.
func (p Part) Unnoticed() bool {
	return !slices.ContainsFunc(p.Faults, func(k faults.Kind) bool { return k != faults.Restart })
}

// Only removes all parts except those with these names.
func (c *Cluster) Only(names []string) error {
	var parts []Part
	var known []string
	for _, p := range c.Parts {
		known = append(known, p.Name)
		if slices.Contains(names, p.Name) {
			parts = append(parts, p)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown part %q; write one or more of %s", name, strings.Join(known, ", "))
		}
	}
	c.Parts = parts
	return nil
}

// A Runaway adds agents that ask far more often than one agent may. The zero Runaway adds
// no agents.
type Runaway struct {
	Agents int `json:"agents,omitzero"`
	// Limit is how many events a second a broker judges for one agent. The other agents
	// must stay far below it.
	Limit float64 `json:"limit,omitzero"`
	// Times is the rate of each of these agents, as a multiple of Limit.
	Times float64 `json:"times,omitzero"`
}

const (
	// usualTimes is the default of Times.
	usualTimes = 50
	// mostRunaway is the highest number of events a second of all runaway agents together.
	mostRunaway = 100_000
	// far is the lowest ratio of the limit to the average rate of the other agents: random
	// calls are sometimes close together.
	far = 5
)

// Rate returns the rate limit that brokers are started with; 0: no limit.
func (a Runaway) Rate() float64 {
	if a.Agents == 0 {
		return 0
	}
	return a.Limit
}

// Burst returns how many events may come at once. It is the default of brokers.
func (a Runaway) Burst() int { return max(20, int(math.Ceil(2*a.Limit))) }
