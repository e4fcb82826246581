package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/schema"
)

// Clustered causes faults in a cluster of brokers, one part after the other. The next fault
// waits until all brokers have the complete state.
const Clustered = "cluster"

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

// longestAway limits how long a fault may last: a broker that is cut off longer stops
// answering.
const longestAway = 10 * time.Second

func (s *Scenario) checkCluster(say saying) {
	if s.Fabric.Kind != field.Local || !s.Fabric.Cluster || s.Fabric.Brokers < 3 {
		say("fabric", "write kind: local, brokers: 3 and cluster: true", "the faults need a cluster of at least 3 brokers")
	}
	if s.Cluster.Away.Std() < time.Second || s.Cluster.Away.Std() > longestAway {
		say("cluster", "write away: 8s", "a fault of %v is out of range; a broker that is cut off stops answering after %v", s.Cluster.Away, longestAway)
	}
	for i, p := range s.Cluster.Parts {
		key := fmt.Sprintf("cluster.parts.%d", i+1)
		if len(p.Faults) == 0 {
			say(key, "write faults: [kill]", "the part %q has no faults", p.Name)
		}
		for _, k := range p.Faults {
			f := faults.Fault{Kind: k, Member: "broker-1", For: s.Cluster.Away}
			if k == faults.Restart {
				f.For = 0
			}
			for _, wrong := range f.Check(nil) {
				say(key, "correct its faults", "%s", wrong)
			}
		}
	}
}
