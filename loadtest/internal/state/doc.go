// Package state measures the message queue: the time to accept an item and to deliver it,
// with a server that syncs every write, one that syncs periodically, and three servers. It
// also compares a broker whose queue holds many items of other agents with one whose queue
// is empty, and counts the writes of a delivery and of a broadcast.
//
// state.go has the parts, and site.go the processes.
package state
