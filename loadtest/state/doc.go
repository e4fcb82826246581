// Package state measures the message queue: the time to accept an item and to deliver it,
// with a server that syncs every write, one that syncs periodically, and three servers. It
// also measures the cost of items that wait for other agents (time, memory, start of
// the broker), the storage of a broadcast, and the queue in the seconds in which a cluster
// has no leader.
//
// teller.go is the client process, node.go a server of a cluster. speed.go, others.go,
// broadcast.go and leader.go are the parts; run.go runs them and report.go prints the results.
package state
