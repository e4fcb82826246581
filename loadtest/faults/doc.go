// Package faults does to processes what goes wrong with them: they are killed,
// they stop for a while, and the network between them and their server gets
// slow, silent or cut.
//
// A [Fault] is what is written in a scenario's file. A [Schedule] does faults
// on time to a [Ground], which is a field of processes, and says when each of
// them really began and ended. A [Victim] is one process with all that follow
// it in its place, and a [Link] the network in front of it.
//
// fault.go holds the words, schedule.go the times, victim.go the processes,
// link.go and pipe.go the network.
package faults
