package scenario

import (
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/load"
)

// A Problem is an error in a scenario.
type Problem struct {
	// Key is the key in the file, such as "shares" or "faults.2".
	Key string
	// Message says what is wrong, and Hint what to write instead.
	Message, Hint string
}

func (p Problem) String() string { return p.Key + ": " + p.Message + "; " + p.Hint }

// The limits of a scenario.
const (
	mostAgents  = 1_000_000
	mostDrivers = 200
	leastLong   = time.Second
	mostLong    = 7 * 24 * time.Hour
	mostRate    = 1_000_000

	mostMessages = 10_000_000
)

// Check returns all problems of the scenario.
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
	case Clustered:
		s.checkCluster(say)
	}
	if s.Kind == Saturate || s.Kind == Overload && s.Rate == 0 {
		s.checkKnee(say)
	}
	return all
}

// saying records a problem.
type saying func(key, hint, format string, args ...any)

func (s *Scenario) checkPeople(say saying) {
	if s.Agents < 1 || s.Agents > mostAgents {
		say("agents", "write at least 1 and at most a million", "the number of agents %d is out of range", s.Agents)
	}
	if s.Connections < 1 || s.Connections > s.Agents {
		say("connections", fmt.Sprintf("write at least 1 and at most %d, one per agent", max(s.Agents, 1)), "the number of connections for %d agents is %d", s.Agents, s.Connections)
	}
	if most := min(max(s.Connections, 1), mostDrivers); s.Drivers < 1 || s.Drivers > most {
		say("drivers", fmt.Sprintf("write at least 1 and at most %d; each driver is a process with at least one connection", most), "%d connections cannot be divided among %d drivers", s.Connections, s.Drivers)
	}
	if !(s.Injections >= 0 && s.Injections <= 10) {
		say("injections", "write 0 to 10; 0.1 is one message per ten tool calls", "%v messages per tool call are out of range", s.Injections)
	}
	if s.Messages < 0 || s.Messages > mostMessages || s.Messages > 0 && s.Agents < 1 {
		say("messages", "write 0 to 10 million", "%d messages are out of range", s.Messages)
	}
	if s.Producers < 1 || s.Producers > 10 {
		say("producers", "write 1 to 10", "the number of producers %d is out of range", s.Producers)
	}
	if s.Daemon < 0 {
		say("daemon", "write 0, or the number of agents that ask through a daemon", "%d agents are out of range", s.Daemon)
	}
	if s.LastKill && s.Fabric.Kind == field.External {
		say("last_kill", "leave it out, or write kind: local", "the broker at %s does not belong to this run and cannot be killed", s.Fabric.NATS)
	}
	if sum := s.Shares.Sum(); sum > 1.0000001 {
		say("shares", "reduce them; a hook on a worker judges the rest", "the shares sum to %.4g %% of all calls", sum*100)
	}
	if s.InFlight < 1 {
		say("in_flight", "write 20000", "the limit of calls in flight is below 1")
	}
}

func (s *Scenario) checkLoad(say saying) {
	if s.For.Std() < leastLong || s.For.Std() > mostLong {
		say("for", "write at least 1s and at most 168h", "a duration of %v is out of range", s.For)
	}
	if s.Warm < 0 || s.Warm.Std() > mostLong {
		say("warm", "write 2s", "a warm-up of %v is out of range", s.Warm)
	}
	if s.Deadline.Std() < 50*time.Millisecond || s.Deadline.Std() > time.Minute {
		say("deadline", "write at least 50ms and at most 1m", "a deadline of %v is out of range", s.Deadline)
	}
	if s.ToolTime < 0 || s.ToolTime.Std() > time.Hour {
		say("tool_time", "write 20ms", "a tool time of %v is out of range", s.ToolTime)
	}
	if s.Arrivals != load.Poisson && s.Arrivals != load.Constant {
		say("arrivals", fmt.Sprintf("write %s or %s", load.Poisson, load.Constant), "unknown arrivals %q", s.Arrivals)
	}
	switch {
	case len(s.Steps) > 0:
		s.checkSteps(say)
	case (s.Kind == Saturate || s.Kind == Overload) && s.Rate == 0: // the run searches it
	case s.Rate == 0 && s.Think <= 0:
		say("rate", "write rate: 300/s, or think: 500ms, or steps", "the scenario has no rate of tool calls")
	case s.Rate != 0 && !(s.Rate > 0 && s.Rate <= mostRate):
		say("rate", "write more than 0 and at most a million per second", "%.4g tool calls per second are out of range", s.Rate)
	case s.PerSecond() > mostRate:
		say("think", "write a longer think; all agents together make at most a million tool calls per second", "%.4g tool calls per second are out of range", s.PerSecond())
	case s.Curve().Calls() < 1:
		say("rate", "write a higher rate, or measure for longer", "the rate gives no tool call in %v", s.For)
	}
}

func (s *Scenario) checkSteps(say saying) {
	if s.Curve().Calls() < 1 {
		say("steps", "write a rate in one of them", "the steps give no tool call")
	}
	for i, step := range s.Steps {
		key := fmt.Sprintf("steps.%d", i+1)
		if step.For <= 0 {
			say(key, "write for: 10s", "a step of %v has no duration", step.For)
		}
		if !(step.Rate >= 0 && step.Rate <= mostRate && step.To >= 0 && step.To <= mostRate) {
			say(key, "write at most a million per second", "a step from %.4g to %.4g tool calls per second is out of range", step.Rate, step.To)
		}
	}
}

func (s *Scenario) checkFabric(say saying) {
	f := s.Fabric
	switch f.Kind {
	case field.Local, field.Embedded:
		if f.NATS != "" {
			say("fabric", "write kind: external, or leave out nats", "a fabric of the kind %s starts its own server, so nats: %s cannot apply", f.Kind, f.NATS)
		}
		if f.Creds != "" {
			say("fabric", "write kind: external with nats and creds, or leave out creds", "a fabric of the kind %s requires no credentials, so creds: %s cannot apply", f.Kind, f.Creds)
		}
		if f.Kind == field.Embedded && (f.Brokers != 1 || f.Server || f.Cluster) {
			say("fabric", "write kind: local, or leave out brokers and server", "an embedded fabric is one process with one broker and its server")
		}
	case field.External:
		if f.NATS == "" {
			say("fabric", "write nats: nats://HOST:PORT", "the external fabric has no address")
		}
	default:
		say("fabric", fmt.Sprintf("write %s, %s or %s", field.Local, field.Embedded, field.External), "unknown kind of fabric %q", f.Kind)
	}
	if f.Brokers < 1 || f.Brokers > 100 {
		say("fabric", "write at least 1 and at most 100", "the number of brokers %d is out of range", f.Brokers)
	}
	if f.Workers < 1 || f.Workers > 1000 {
		say("fabric", "write at least 1 and at most 1000; the hooks of a fleet need workers", "the number of workers %d is out of range", f.Workers)
	}
	if f.Slots < 1 || f.Slots > 100_000 {
		say("fabric", "write 64", "%d slots of a worker are out of range", f.Slots)
	}
	if f.Sync < 0 {
		say("fabric", "write 0s to sync at every write", "the sync interval %v is negative", f.Sync)
	}
}

func (s *Scenario) checkKnee(say saying) {
	k := s.Knee
	if k.From <= 0 || k.Most < k.From || k.Most > mostRate {
		say("knee", "write from: 200/s and most: 20000/s", "the range of rates from %.4g/s to %.4g/s is invalid", k.From, k.Most)
	}
	if k.Step.Std() < leastLong {
		say("knee", "write step: 5s", "a step of %v is too short", k.Step)
	}
	if k.Answered <= 0 || k.Answered > 1 {
		say("knee", "write answered: 98%", "answered is %.4g %%, which is out of range", k.Answered*100)
	}
	if k.P99 <= 1 || k.Floor < 0 {
		say("knee", "write p99: 10 and floor: 20ms", "p99 is %v times the first one and floor is %v, which is out of range", k.P99, k.Floor)
	}
}
