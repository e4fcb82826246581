package scenario

import (
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/load"
)

// A Problem is something that a scenario can not be.
type Problem struct {
	// Key is what it is about, as it stands in a file: "shares", "faults.2".
	Key string
	// Message says what is wrong, Hint what to write instead.
	Message, Hint string
}

func (p Problem) String() string { return p.Key + ": " + p.Message + "; " + p.Hint }

// The bounds of a scenario.
const (
	mostAgents  = 1_000_000
	mostDrivers = 200
	leastLong   = time.Second
	mostLong    = 7 * 24 * time.Hour
	mostRate    = 1_000_000
)

// Check are all problems of the scenario.
func (s *Scenario) Check() []Problem {
	var all []Problem
	say := func(key, hint, format string, args ...any) {
		all = append(all, Problem{Key: key, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	s.checkPeople(say)
	s.checkLoad(say)
	s.checkFabric(say)
	s.checkFaults(say)
	s.checkRunaway(say)
	switch s.Kind {
	case Chaotic:
		s.checkChaos(say)
	case Soaking:
		s.checkSoak(say)
	}
	if s.Kind == Saturate || s.Kind == Overload && s.Rate == 0 {
		s.checkKnee(say)
	}
	return all
}

// saying notes a problem.
type saying func(key, hint, format string, args ...any)

func (s *Scenario) checkPeople(say saying) {
	if s.Agents < 1 || s.Agents > mostAgents {
		say("agents", "write at least 1 and at most a million", "there can not be %d agents", s.Agents)
	}
	if s.Connections < 1 || s.Connections > s.Agents {
		say("connections", fmt.Sprintf("write at least 1 and at most %d, one for each agent", max(s.Agents, 1)), "%d agents can not share %d connections", s.Agents, s.Connections)
	}
	if most := min(max(s.Connections, 1), mostDrivers); s.Drivers < 1 || s.Drivers > most {
		say("drivers", fmt.Sprintf("write at least 1 and at most %d: each holds a connection, and is a process of this machine", most), "%d connections can not be spread over %d processes", s.Connections, s.Drivers)
	}
	if !(s.Injections >= 0 && s.Injections <= 10) {
		say("injections", "write from 0 to 10: 0.1 is one for ten uses of a tool", "there can not be %v injections for each use of a tool", s.Injections)
	}
	if sum := s.Shares.Sum(); sum > 1.0000001 {
		say("shares", "take some away: what is left is judged by a hook of the workers", "the shares come to %.4g %% of all calls", sum*100)
	}
	if s.InFlight < 1 {
		say("in_flight", "write 20000", "a driver with no call under way calls nobody")
	}
}

func (s *Scenario) checkLoad(say saying) {
	if s.For.Std() < leastLong || s.For.Std() > mostLong {
		say("for", "write at least 1s and at most 168h", "%v can not be measured", s.For)
	}
	if s.Warm < 0 || s.Warm.Std() > mostLong {
		say("warm", "write 2s", "the load can not be on for %v before it is measured", s.Warm)
	}
	if s.Deadline.Std() < 50*time.Millisecond || s.Deadline.Std() > time.Minute {
		say("deadline", "write at least 50ms and at most 1m", "a call can not wait %v", s.Deadline)
	}
	if s.ToolTime < 0 || s.ToolTime.Std() > time.Hour {
		say("tool_time", "write 20ms", "a tool can not take %v", s.ToolTime)
	}
	if s.Arrivals != load.Poisson && s.Arrivals != load.Constant {
		say("arrivals", fmt.Sprintf("write %s or %s", load.Poisson, load.Constant), "calls can not come %q", s.Arrivals)
	}
	switch {
	case len(s.Steps) > 0:
		s.checkSteps(say)
	case (s.Kind == Saturate || s.Kind == Overload) && s.Rate == 0: // it is searched for
	case s.Rate == 0 && s.Think <= 0:
		say("rate", "write rate: 300/s, or think: 500ms, or steps", "nothing says how often tools are used")
	case s.Rate != 0 && !(s.Rate > 0 && s.Rate <= mostRate):
		say("rate", "write more than nothing and at most a million per second", "tools can not be used %.4g times a second", s.Rate)
	case s.PerSecond() > mostRate:
		say("think", "have agents think for longer: they come to a million uses of tools per second at most", "tools can not be used %.4g times a second", s.PerSecond())
	case s.Curve().Calls() < 1:
		say("rate", "write a higher rate, or measure for longer", "in %v no tool is ever used", s.For)
	}
}

func (s *Scenario) checkSteps(say saying) {
	if s.Curve().Calls() < 1 {
		say("steps", "write a rate in one of them", "no tool is ever used")
	}
	for i, step := range s.Steps {
		key := fmt.Sprintf("steps.%d", i+1)
		if step.For <= 0 {
			say(key, "write for: 10s", "a step takes some time, not %v", step.For)
		}
		if !(step.Rate >= 0 && step.Rate <= mostRate && step.To >= 0 && step.To <= mostRate) {
			say(key, "write at most a million per second", "tools can not be used from %.4g to %.4g times a second", step.Rate, step.To)
		}
	}
}

func (s *Scenario) checkFabric(say saying) {
	f := s.Fabric
	switch f.Kind {
	case field.Local, field.Embedded:
		if f.NATS != "" {
			say("fabric", "write kind: external, or leave out nats", "a fabric of the kind %s has a server of its own, not %s", f.Kind, f.NATS)
		}
		if f.Creds != "" {
			say("fabric", "write kind: external with nats and creds, or leave out creds", "a fabric of the kind %s lets everybody in, and asks nobody for %s", f.Kind, f.Creds)
		}
		if f.Kind == field.Embedded && (f.Brokers != 1 || f.Server || f.Cluster) {
			say("fabric", "write kind: local, or leave out brokers and server", "an embedded fabric is one process, with the only broker and its server in it")
		}
	case field.External:
		if f.NATS == "" {
			say("fabric", "write nats: nats://HOST:PORT", "nothing says where the external fabric is")
		}
	default:
		say("fabric", fmt.Sprintf("write %s, %s or %s", field.Local, field.Embedded, field.External), "a fleet can not run on a fabric of the kind %q", f.Kind)
	}
	if f.Brokers < 1 || f.Brokers > 100 {
		say("fabric", "write at least 1 and at most 100", "there can not be %d brokers", f.Brokers)
	}
	if f.Workers < 1 || f.Workers > 1000 {
		say("fabric", "write at least 1 and at most 1000: the hooks of a fleet need workers", "there can not be %d workers", f.Workers)
	}
	if f.Slots < 1 || f.Slots > 100_000 {
		say("fabric", "write 64", "a worker can not run %d batches at once", f.Slots)
	}
	if f.Sync < 0 {
		say("fabric", "write 0s: at every write", "a server can not sync every %v", f.Sync)
	}
}

func (s *Scenario) checkKnee(say saying) {
	k := s.Knee
	if k.From <= 0 || k.Most < k.From || k.Most > mostRate {
		say("knee", "write from: 200/s and most: 20000/s", "rates can not be tried from %.4g/s to %.4g/s", k.From, k.Most)
	}
	if k.Step.Std() < leastLong {
		say("knee", "write step: 5s", "a rate can not be measured in %v", k.Step)
	}
	if k.Answered <= 0 || k.Answered > 1 {
		say("knee", "write answered: 98%", "%.4g %% of the calls can not be answered in their time", k.Answered*100)
	}
	if k.P99 <= 1 || k.Floor < 0 {
		say("knee", "write p99: 10 and floor: 20ms", "a p99 can not be bounded by %v times the first one, or %v", k.P99, k.Floor)
	}
}
