package fleet

import (
	"fmt"
	"math"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
)

// asLarge is a promise of the drivers, not of the fabric: a load that was smaller than
// it was to be would make all figures better.
const asLarge = "the agents made the planned number of calls"

// scatter is how many standard deviations the number of random calls may be below
// what is expected: one run in a thousand million is further off.
const scatter = 6

// offered holds the uses of tools that drivers counted against those that were due.
// Calls that a killed driver took along are told of in a note.
func (m *Measured) offered() result.Check {
	c := result.Check{Name: asLarge, Seen: 1, Least: 1}
	due, counted := m.Scenario.Curve().Calls(), m.uses()
	least := due - scatter*math.Sqrt(due)
	if m.Scenario.Arrivals == load.Constant {
		least = due - float64(m.Scenario.Agents) // each may have one more or less
	}
	if m.deadDrivers() == 0 && float64(counted) < least {
		c.Fail(fmt.Sprintf("%d tool calls were counted instead of about %.0f", counted, due))
	}
	return c
}

// uses are how many uses of tools were due and counted, whatever came of them.
func (m *Measured) uses() int64 {
	all := int64(0)
	for name, k := range m.Series.Kinds() {
		if name != afterwards {
			all += k.Offered
		}
	}
	return all
}

// deadDrivers is how often a driver was killed.
func (m *Measured) deadDrivers() int {
	n := 0
	for _, d := range m.Done {
		if d.Fault.Kind == faults.Kill && strings.HasPrefix(d.Fault.Member, scenario.Driver+"-") {
			n++
		}
	}
	return n
}
