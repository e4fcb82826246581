package scenario

import (
	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/load"
)

// scenario reads the whole file.
func (r *reader) scenario(root *yaml.Node, s *Scenario) {
	r.mapping("", root, keys{
		"name":        r.text(&s.Name),
		"kind":        word(r, &s.Kind, Kinds()...),
		"fabric":      func(n *yaml.Node) { r.fabric(n, &s.Fabric) },
		"agents":      whole(r, &s.Agents),
		"connections": whole(r, &s.Connections),
		"drivers":     whole(r, &s.Drivers),
		"arrivals":    word(r, &s.Arrivals, load.Poisson, load.Constant),
		"rate":        r.rate(&s.Rate),
		"think":       r.duration(&s.Think),
		"steps": func(n *yaml.Node) {
			r.list("steps", n, func(path string, n *yaml.Node) { r.step(path, n, &s.Steps) })
		},
		"for":        r.duration(&s.For),
		"warm":       r.duration(&s.Warm),
		"seed":       whole(r, &s.Seed),
		"deadline":   r.duration(&s.Deadline),
		"tool_time":  r.duration(&s.ToolTime),
		"shares":     func(n *yaml.Node) { r.shares(n, &s.Shares) },
		"injections": r.number(&s.Injections),
		"runaway":    func(n *yaml.Node) { r.runaway(n, &s.Runaway) },
		"in_flight":  whole(r, &s.InFlight),
		"faults": func(n *yaml.Node) {
			r.list("faults", n, func(path string, n *yaml.Node) { r.oneFault(path, n, &s.Faults) })
		},
		"knee":  func(n *yaml.Node) { r.knee(n, &s.Knee) },
		"chaos": func(n *yaml.Node) { r.chaos(n, &s.Chaos) },
		"soak":  func(n *yaml.Node) { r.soak(n, &s.Soak) },
	})
	r.oneLoad(s)
}

// oneLoad sees to it that one thing alone says how much there is to do.
func (r *reader) oneLoad(s *Scenario) {
	said := func(key string) *yaml.Node { return r.places[key] }
	if n := said("think"); n != nil && said("rate") == nil {
		s.Rate = 0 // the default
	} else if n != nil {
		r.fault(n, "rate and think both set the rate of tool calls", "remove one of them")
	}
	if len(s.Steps) == 0 {
		return
	}
	for _, key := range []string{"rate", "think", "for"} {
		if n := said(key); n != nil {
			r.fault(n, "the steps already set it", "remove "+key+" or the steps")
		}
	}
	s.Rate, s.Think, s.For = 0, 0, 0
	for _, step := range s.Steps {
		s.For += step.For
	}
}

func (r *reader) fabric(n *yaml.Node, f *Fabric) {
	r.mapping("fabric", n, keys{
		"kind":    word(r, &f.Kind, field.Local, field.Embedded, field.External),
		"nats":    r.text(&f.NATS),
		"creds":   r.text(&f.Creds),
		"brokers": whole(r, &f.Brokers),
		"workers": whole(r, &f.Workers),
		"slots":   whole(r, &f.Slots),
		"server":  r.truth(&f.Server),
		"sync":    r.duration(&f.Sync),
	})
}

func (r *reader) step(path string, n *yaml.Node, to *load.Curve) {
	s := load.Step{To: -1}
	r.mapping(path, n, keys{"for": r.duration(&s.For), "rate": r.rate(&s.Rate), "to": r.rate(&s.To)})
	if s.To < 0 {
		s.To = s.Rate // it does not change
	}
	*to = append(*to, s)
}

func (r *reader) shares(n *yaml.Node, s *Shares) {
	r.mapping("shares", n, keys{
		"deny": r.share(&s.Deny), "rewrite": r.share(&s.Rewrite), "unmatched": r.share(&s.Unmatched),
		"inside": r.share(&s.Inside), "slow": r.share(&s.Slow),
	})
}

func (r *reader) runaway(n *yaml.Node, a *Runaway) {
	a.Times = usualTimes
	r.mapping("runaway", n, keys{"agents": whole(r, &a.Agents), "limit": r.rate(&a.Limit), "times": r.number(&a.Times)})
}

func (r *reader) oneFault(path string, n *yaml.Node, to *[]faults.Fault) {
	var f faults.Fault
	r.mapping(path, n, keys{
		"kind": word(r, &f.Kind, faults.Kinds()...), "member": r.text(&f.Member), "all": r.truth(&f.All),
		"at": r.duration(&f.At), "every": r.duration(&f.Every), "for": r.duration(&f.For),
		"latency": r.duration(&f.Latency), "jitter": r.duration(&f.Jitter), "rate": whole(r, &f.Rate),
	})
	*to = append(*to, f)
}

func (r *reader) knee(n *yaml.Node, k *Knee) {
	r.mapping("knee", n, keys{
		"from": r.rate(&k.From), "most": r.rate(&k.Most), "step": r.duration(&k.Step), "answered": r.share(&k.Answered),
		"p99": r.number(&k.P99), "floor": r.duration(&k.Floor),
	})
}
