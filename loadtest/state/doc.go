// Package state measures the memory of the fabric as its users meet it: what
// it takes to put an injection into the queue and to be given one, with a
// broker that syncs at every write, with one that syncs now and then, and with
// three servers; what items cost that wait for others, in time, in memory and
// at the broker's start; what a broadcast stores; and what is left of it all in
// the seconds in which a cluster has no leader.
//
// teller.go is the process that asks, node.go a server of a cluster. speed.go,
// others.go, broadcast.go and leader.go are what is measured, one file each;
// run.go runs them and report.go says what came of it.
package state
