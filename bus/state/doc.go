// Package state keeps what outlives a process, in JetStream key-value buckets:
// one bucket per concern, each with explicit replicas and limits.
//
// Rules that all of it keeps: a write that must be the first of its key is an
// update at revision 0, never a create, which would write over the marker of a
// deleted key; a refused compare-and-set may be spurious, so it means "read
// again, then try again a little later"; what must be the newest is read from
// the stream's leader, because any replica answers an ordinary get.
//
// Everything here is safe for many goroutines and many processes.
package state
