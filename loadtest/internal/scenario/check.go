package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/schema"
)

// The limits of a scenario.
const (
	mostDrivers = 200
	mostRate    = 1_000_000
	leastLong   = schema.Duration(time.Second)
	mostLong    = schema.Duration(7 * 24 * time.Hour)
)

// problems collects what is wrong with a scenario.
type problems []error

// that adds a problem with a key, unless ok.
func (p *problems) that(ok bool, key, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(key+": "+format, args...))
	}
}

// within adds a problem with a key whose value is out of range.
func within[T cmp.Ordered](p *problems, key string, value, least, most T) {
	p.that(value >= least && value <= most, key, "%v is out of range; write %v to %v", value, least, most)
}

// Wrong returns an error with all problems of the scenario; nil: it can run.
func (s *Scenario) Wrong() error {
	p := new(problems)
	p.that(slices.Contains(Kinds(), s.Kind), "kind", "unknown kind %q; write one of %v", s.Kind, Kinds())
	s.checkAgents(p)
	s.checkLoad(p)
	s.checkFabric(p)
	s.checkFaults(p)
	s.checkRunaway(p)
	switch {
	case s.Kind == Chaotic || s.Kind == Soaking && s.Soak.Chaos:
		s.checkChaos(p)
	case s.Kind == Clustered:
		s.checkCluster(p)
	}
	if s.Kind == Soaking {
		s.checkSoak(p)
	}
	if s.Kind == Saturate || s.Kind == Overload && s.Rate == 0 || s.Kind == Soaking && s.Soak.OfKnee > 0 {
		s.checkKnee(p)
	}
	return errors.Join(*p...)
}

func (s *Scenario) checkAgents(p *problems) {
	within(p, "agents", s.Agents, 1, 1_000_000)
	within(p, "connections", s.Connections, 1, max(s.Agents, 1))
	most := min(max(s.Connections, 1), mostDrivers)
	p.that(s.Drivers >= 1 && s.Drivers <= most, "drivers", "%d connections cannot be divided among %d drivers; write 1 to %d", s.Connections, s.Drivers, most)
	within(p, "injections", s.Injections, 0, 10)
	within(p, "messages", s.Messages, 0, 10_000_000)
	within(p, "producers", s.Producers, 1, 10)
	within(p, "daemon", s.Daemon, 0, 1_000_000)
	within(p, "in_flight", s.InFlight, 1, 10_000_000)
	p.that(!s.LastKill || s.Fabric.Kind != field.External, "last_kill", "the broker at %s does not belong to this run and cannot be killed; leave it out", s.Fabric.NATS)
	for key, share := range map[string]float64{
		"deny": s.Shares.Deny, "rewrite": s.Shares.Rewrite, "unmatched": s.Shares.Unmatched, "inside": s.Shares.Inside, "slow": s.Shares.Slow,
	} {
		within(p, "shares."+key, share, 0, 1)
	}
	p.that(s.Shares.Sum() <= 1.0000001, "shares", "the shares sum to %.4g %% of all calls; reduce them; a hook on a worker judges the rest", s.Shares.Sum()*100)
}

func (s *Scenario) checkLoad(p *problems) {
	within(p, "for", s.For, leastLong, mostLong)
	within(p, "warm", s.Warm, 0, mostLong)
	within(p, "deadline", s.Deadline, schema.Duration(50*time.Millisecond), schema.Duration(time.Minute))
	within(p, "tool_time", s.ToolTime, 0, schema.Duration(time.Hour))
	if (s.Kind == Saturate || s.Kind == Overload) && s.Rate == 0 {
		return // the run searches it
	}
	p.that(s.Rate > 0 && s.Rate <= mostRate, "rate", "%.4g tool calls per second are out of range; write more than 0/s and at most a million per second", s.Rate)
	p.that(!(s.Rate > 0) || s.Curve().Calls() >= 1, "rate", "the rate gives no tool call in %v; write a higher rate, or measure for longer", s.For)
}

func (s *Scenario) checkFabric(p *problems) {
	f := s.Fabric
	switch f.Kind {
	case field.Local, field.Embedded:
		p.that(f.NATS == "" && f.Creds == "", "fabric", "a fabric of the kind %s starts its own server, so nats: %s and creds: %s cannot apply; write kind: external", f.Kind, f.NATS, f.Creds)
		p.that(f.Kind == field.Local || f.Brokers == 1 && !f.Server && !f.Cluster, "fabric", "an embedded fabric is one process with one broker and its server; write kind: local")
	case field.External:
		p.that(f.NATS != "", "fabric", "the external fabric has no address; write nats: nats://HOST:PORT")
	default:
		p.that(false, "fabric", "unknown kind of fabric %q; write %s, %s or %s", f.Kind, field.Local, field.Embedded, field.External)
	}
	within(p, "fabric.brokers", f.Brokers, 1, 100)
	within(p, "fabric.workers", f.Workers, 1, 1000)
	within(p, "fabric.slots", f.Slots, 1, 100_000)
	within(p, "fabric.sync", f.Sync, 0, mostLong)
}

func (s *Scenario) checkKnee(p *problems) {
	k := s.Knee
	p.that(k.From > 0 && k.Most >= k.From && k.Most <= mostRate, "knee", "the range of rates from %.4g/s to %.4g/s is invalid; write from: 200/s and most: 20000/s", k.From, k.Most)
	within(p, "knee.step", k.Step, leastLong, mostLong)
	p.that(k.Answered > 0 && k.Answered <= 1, "knee", "answered is %.4g %%, which is out of range; write answered: 98%%", k.Answered*100)
	p.that(k.P99 > 1 && k.Floor >= 0, "knee", "p99 is %v times the first one and floor is %v, which is out of range; write p99: 10 and floor: 20ms", k.P99, k.Floor)
}

func (s *Scenario) checkFaults(p *problems) {
	members := s.Members()
	for i, f := range s.Faults {
		key := fmt.Sprintf("faults.%d", i+1)
		for _, wrong := range f.Check(members) {
			p.that(false, key, "%s", wrong)
		}
		p.that(f.At < s.For, key, "the fault is at %v, after the end of the run; write at: less than %v", f.At, s.For)
		for _, m := range faults.Matching(f.Member, members) {
			p.that(!f.Kind.OnWire() || s.Fabric.Cluster, key, "%s has no peers, so it cannot have a fault of the kind %s; write kind: cluster", m, f.Kind)
			p.that(!f.Kind.OnLink() || s.HasLink(m), key, "%s has no network to the server, so it cannot have a fault of the kind %s; write server: true in fabric, so that brokers reach the server over a network, or name other members", m, f.Kind)
		}
	}
}

func (s *Scenario) checkChaos(p *problems) {
	c, members := s.Chaos, s.Members()
	within(p, "chaos.quiet", c.Quiet, 0, mostLong)
	for _, k := range c.Kinds {
		p.that(slices.Contains(faults.Kinds(), k), "chaos", "unknown kind of fault %q; write one or more of %v", k, faults.Kinds())
	}
	for _, m := range c.Members {
		p.that(len(faults.Matching(m, members)) > 0, "chaos", "no member has the name %q; write some of %s", m, strings.Join(members, ", "))
	}
	for kind, life := range c.Lives {
		p.that(life > 0 && len(faults.Matching(kind+"-*", members)) > 0, "chaos", "no process of the kind %q can be killed every %v; the members are %s", kind, life, strings.Join(members, ", "))
	}
	if len(c.Lives) > 0 {
		return
	}
	p.that(c.Together >= 1 && c.Longest.Std() >= ShortestFault && c.Pause > 0, "chaos", "longest must be at least %v, together at least 1 and pause above 0; they are %v, %d and %v", ShortestFault, c.Longest, c.Together, c.Pause)
	p.that(s.For.Std()-s.Quiet() >= c.Longest.Std(), "chaos", "a run of %v, of which the last %v are quiet, is too short for faults of up to %v", s.For, s.Quiet(), c.Longest)
	held := time.Duration(c.Together+1) * c.Longest.Std()
	p.that(held <= s.Deadline.Std(), "deadline", "faults of up to %v, %d at the same time, can stop an agent for longer than the deadline %v; write at least %v", c.Longest, c.Together, s.Deadline, held)
}

func (s *Scenario) checkSoak(p *problems) {
	least := s.LeastSoak()
	p.that(s.For.Std() >= least, "for", "%v is too short to see growth: garbage is collected every %v, and the second half of the run needs %d points; write at least %v; to find a leak, write 1h", s.For, s.SettleEvery(), SoakPoints, least)
	p.that(s.Fabric.Kind != field.External, "fabric", "the run cannot measure the processes of the fabric at %s; write kind: local", s.Fabric.NATS)
	p.that(s.Soak.OfKnee >= 0 && s.Soak.OfKnee <= 1, "soak", "of_knee is %.4g %%, which is out of range; write of_knee: 70%%", s.Soak.OfKnee*100)
	within(p, "soak.settle", s.Soak.Settle, 0, mostLong)
}

func (s *Scenario) checkCluster(p *problems) {
	p.that(s.Fabric.Kind == field.Local && s.Fabric.Cluster && s.Fabric.Brokers >= 3, "fabric", "the faults need a cluster of at least 3 brokers; write kind: local, brokers: 3 and cluster: true")
	// A broker that is cut off for longer than 10 s stops answering.
	within(p, "cluster.away", s.Cluster.Away, leastLong, schema.Duration(10*time.Second))
	for i, part := range s.Cluster.Parts {
		key := fmt.Sprintf("cluster.parts.%d", i+1)
		within(p, key+".away", part.Away, 0, mostLong)
		p.that(len(part.Faults) > 0, key, "the part %q has no faults; write faults: [kill]", part.Name)
		for _, k := range part.Faults {
			f := faults.Fault{Kind: k, Member: "broker-1", For: s.Cluster.Away}
			if k == faults.Restart {
				f.For = 0
			}
			for _, wrong := range f.Check(nil) {
				p.that(false, key, "%s", wrong)
			}
		}
	}
}

func (s *Scenario) checkRunaway(p *problems) {
	a := s.Runaway
	if a.Agents == 0 {
		return
	}
	uses := 2 * s.Rate / float64(max(s.Agents, 1)) // before the tool and after it
	p.that(a.Agents > 0 && a.Agents <= s.Agents, "runaway", "%d runaway agents are out of range; write at least 1 and at most the number of other agents", a.Agents)
	p.that(a.Limit >= 1 && a.Limit >= far*uses, "runaway", "the other agents send %.4g events per second each, so a limit of %v would also refuse theirs; write a higher limit, or a lower rate", uses, a.Limit)
	p.that(a.Times > 1 && float64(a.Agents)*a.Limit*a.Times <= mostRunaway, "runaway", "%d agents cannot send %v times the limit of %v events per second; write times: 50", a.Agents, a.Times, a.Limit)
	p.that(s.Fabric.Kind != field.External, "runaway", "the limits of an external fabric cannot be changed; leave it out, or write kind: local")
}
