// Package faults causes faults: it kills processes, stops them for a while, and makes the
// network between them and their server slow, silent or cut.
//
// A [Fault] is an entry of a scenario's file. A [Schedule] causes faults on time in a
// [Ground], which is a field of processes, and records when each began and ended. A [Victim]
// is one process and its successors, and a [Link] is the network in front of it.
//
// A [Host] gives a process a network of its own: network namespaces that a bridge connects. Any
// host can be cut off from the others, in one direction or both. Packets are then dropped
// silently, as by a failing switch, and connections stay open. The machine's own network does not
// change: the program runs itself again in its own namespace ([Alone]), and opens the hosts
// there. All addresses are in 127.0.0.0/8. This needs Linux, root or user namespaces, and the
// command ip of iproute2; [HostsMissing] returns what is missing.
//
// fault.go defines faults, schedule.go their times, victim.go the processes, link.go and
// pipe.go the network.
package faults
