// Package faults causes faults: it kills processes, stops them for a while, and makes the
// network between them and their server slow, silent or cut.
//
// A [Fault] is an entry of a scenario's file. A [Schedule] causes faults on time in a
// [Ground], which is a field of processes, and records when each began and ended. A [Victim]
// is one process and its successors, and a [Link] is the network in front of it.
//
// fault.go defines faults, schedule.go their times, victim.go the processes, link.go and
// pipe.go the network.
package faults
