package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
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
	OfKnee float64 `json:"of_knee,omitzero" as:"share"`
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

func (s *Scenario) checkFaults(say saying) {
	members := s.Members()
	for i, f := range s.Faults {
		key := fmt.Sprintf("faults.%d", i+1)
		for _, wrong := range f.Check(members) {
			say(key, "correct this fault", "%s", wrong)
		}
		if f.At.Std() >= s.For.Std() {
			say(key, fmt.Sprintf("write at: less than %v", s.For), "the fault is at %v, after the end of the run", f.At)
		}
		for _, m := range faults.Matching(f.Member, members) {
			if f.Kind.OnWire() && !s.Fabric.Cluster {
				say(key, "write kind: cluster", "%s has no peers, so it cannot have a fault of the kind %s", m, f.Kind)
			}
			if f.Kind.OnLink() && !s.HasLink(m) {
				say(key, "write server: true in fabric, so that brokers reach the server over a network, or name other members",
					"%s has no network to the server, so it cannot have a fault of the kind %s", m, f.Kind)
			}
		}
	}
}

func (s *Scenario) checkChaos(say saying) {
	c := s.Chaos
	for _, k := range c.Kinds {
		if !slices.Contains(faults.Kinds(), k) {
			say("chaos", fmt.Sprintf("write one or more of %v", faults.Kinds()), "unknown kind of fault %q", k)
		}
	}
	for _, m := range c.Members {
		if len(faults.Matching(m, s.Members())) == 0 {
			say("chaos", "write some of "+strings.Join(s.Members(), ", "), "no member has the name %q", m)
		}
	}
	if len(c.Lives) > 0 {
		s.checkLives(say)
		return
	}
	if c.Together < 1 || c.Longest.Std() < ShortestFault || c.Pause <= 0 || c.Quiet < 0 {
		say("chaos", "write together: 1, longest: 3s, pause: 2s, quiet: 12s", "longest must be at least %v, together at least 1 and pause above 0; they are %v, %d and %v", ShortestFault, c.Longest, c.Together, c.Pause)
	}
	if loud := s.For.Std() - s.Quiet(); loud < c.Longest.Std() {
		say("chaos", "write a longer for, or a shorter longest", "a run of %v, of which the last %v are quiet, is too short for faults of up to %v", s.For, s.Quiet(), c.Longest)
	}
	if held := time.Duration(c.Together+1) * c.Longest.Std(); held > s.Deadline.Std() {
		say("deadline", fmt.Sprintf("write at least %v", held), "faults of up to %v, %d at the same time, can stop an agent for longer than the deadline %v", c.Longest, c.Together, s.Deadline)
	}
}

func (s *Scenario) checkLives(say saying) {
	for _, kind := range slices.Sorted(maps.Keys(s.Chaos.Lives)) {
		if s.Chaos.Lives[kind] <= 0 || len(faults.Matching(kind+"-*", s.Members())) == 0 {
			say("chaos", "write lives: {broker: 8s, worker: 16s}", "no process of the kind %q can be killed every %v; the members are %s", kind, s.Chaos.Lives[kind], strings.Join(s.Members(), ", "))
		}
	}
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

func (s *Scenario) checkSoak(say saying) {
	if least := s.LeastSoak(); s.For.Std() < least {
		say("for", fmt.Sprintf("write at least %v; to find a leak, write 1h", least),
			"%v is too short to see growth: garbage is collected every %v, and the second half of the run needs %d points", s.For, s.SettleEvery(), SoakPoints)
	}
	if len(s.Steps) > 0 {
		say("steps", "write a rate instead", "growth cannot be judged under a changing load")
	}
	if s.Fabric.Kind == field.External {
		say("fabric", "write kind: local", "the run cannot measure the processes of the fabric at %s", s.Fabric.NATS)
	}
	if s.Soak.Chaos {
		s.checkChaos(say)
	}
	if !(s.Soak.OfKnee >= 0 && s.Soak.OfKnee <= 1) {
		say("soak", "write of_knee: 70%", "of_knee is %.4g %%, which is out of range", s.Soak.OfKnee*100)
	}
	if s.Soak.OfKnee > 0 {
		s.checkKnee(say)
	}
	if s.Soak.Settle < 0 {
		say("soak", "write settle: 5s", "settle is %v, which is out of range", s.Soak.Settle)
	}
}
