package audit

import (
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// Findings are the result of an audit. Only Excused is allowed.
type Findings struct {
	Accepted, Delivered int
	// Lost was accepted and never delivered.
	Lost Violation
	// Duplicated was delivered more than once, and no killed process excuses it.
	Duplicated Violation
	// Excused was delivered again because a process was killed between delivery and
	// acknowledgement.
	Excused Violation
	// Disordered was delivered after a later message of its agent and source.
	Disordered Violation
	// Unknown was delivered and never accepted.
	Unknown Violation
	// Misdelivered was delivered to another agent.
	Misdelivered Violation
	// Contradictory are receipts for one message that contradict each other.
	Contradictory Violation
	// Refused was rejected for good, although it was valid.
	Refused Violation
	// Early means that the logs end before everything was delivered: Lost and Unknown do not
	// count then.
	Early bool
}

// A Violation counts one kind of broken promise, with examples.
type Violation struct{ report.Check }

func (v *Violation) add(format string, args ...any) { v.Fail(fmt.Sprintf(format, args...)) }

// NeverSent adds messages that their producers never sent to the lost ones.
func (f *Findings) NeverSent(n, of int) {
	f.Lost.add("%d of %d messages were never sent to the queue", n, of)
}

// Checks returns the promises about messages, each of which was at stake for all accepted or
// all delivered messages, and at least so many of them.
func (f *Findings) Checks(least int64) []report.Check {
	accepted, delivered := int64(f.Accepted), int64(f.Delivered)
	of := func(name string, v Violation, seen int64) report.Check {
		v.Name, v.Seen, v.Least = name, seen, least
		return v.Check
	}
	all := []report.Check{
		of("no message was delivered twice", f.Duplicated, delivered),
		of("messages arrived in the order of their agent and source", f.Disordered, delivered),
		of("no message was delivered to another agent", f.Misdelivered, delivered),
		of("all receipts of a message agree", f.Contradictory, accepted),
		of("no message was rejected", f.Refused, accepted),
	}
	if f.Early {
		return all
	}
	return append([]report.Check{
		of("every accepted message was delivered", f.Lost, accepted),
		of("no message was delivered that was never accepted", f.Unknown, delivered),
	}, all...)
}
