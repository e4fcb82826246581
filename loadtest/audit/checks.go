package audit

import (
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// The promises that a run's findings are held against.
const (
	lostNothing   = "every accepted message was delivered"
	onceOnly      = "no message was delivered twice"
	inOrder       = "messages arrived in the order of their agent and source"
	knownOnly     = "no message was delivered that was never accepted"
	rightAgent    = "no message was delivered to another agent"
	oneReceipt    = "all receipts of a message agree"
	nothingRefuse = "no message was rejected"
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
