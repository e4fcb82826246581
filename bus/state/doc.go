// Package state keeps what outlives a process, in JetStream key-value buckets:
// one bucket per concern, each with explicit replicas and limits.
//
// Rules that all of it keeps: a write that must be the first of its key is an
// update at revision 0, never a create, which would write over the marker of a
// deleted key; a refused compare-and-set may be spurious, so it means "read
// again, then try again a little later"; what must be the newest is read from
// the stream's leader, because any replica answers an ordinary get.
//
// The configuration spreads in two phases. [Configs.Propose] writes a version
// and names it in the pointer, the one key by which everything is decided; every
// node hears of it ([Configs.Watch]), gets it ready and says so; then
// [Configs.Activate] makes it the active one. Whoever activates first waits
// until every broker that holds a [Lease] has it ready, or its lease has
// lapsed, and a broker answers calls only while its lease is fresh, which ends
// before the lease does. So a broker that is cut off never answers with a
// version that the others have dropped: it is behind by one at most, and nodes
// keep more than that.
//
// No time of one machine is compared with that of another: a lease lapses by
// the clock of the server that holds it, freshness ends by the broker's own,
// and what lies between them is for clocks that run at different speeds.
//
// Everything here is safe for many goroutines and many processes.
package state
