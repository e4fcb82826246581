package audit

import (
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// The promises that a run's findings are held against.
const (
	lostNothing   = "every accepted injection was handed over"
	onceOnly      = "no injection was handed over twice"
	inOrder       = "injections came in the order of their agent and source"
	knownOnly     = "nothing was handed over that was never accepted"
	rightAgent    = "nothing was handed to another agent"
	oneReceipt    = "receipts of one injection agree"
	nothingRefuse = "no injection was refused"
)

// Checks are the findings as checks of a document, each of which must have seen
// at least so many injections.
func (f *Findings) Checks(least int64) []result.Check {
	seen := int64(f.Accepted)
	of := func(name string, k Kind, seen int64) result.Check {
		return result.Check{Name: name, Seen: seen, Least: least, Wrong: int64(k.Count), Examples: k.Examples}
	}
	delivered := int64(f.Delivered)
	all := []result.Check{
		of(onceOnly, f.Duplicated, delivered), of(inOrder, f.Disordered, delivered), of(rightAgent, f.Misdelivered, delivered),
		of(oneReceipt, f.Contradictory, seen), of(nothingRefuse, f.Refused, seen),
	}
	if !f.Early {
		all = append([]result.Check{of(lostNothing, f.Lost, seen), of(knownOnly, f.Unknown, delivered)}, all...)
	}
	return all
}
