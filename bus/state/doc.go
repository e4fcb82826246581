// Package state stores what outlives a process, in JetStream key-value buckets: one bucket
// per concern, each with explicit replicas and limits.
//
// Three rules apply to all of it. The first write of a key is an update at revision 0, never
// a create, which would overwrite the marker of a deleted key. A refused compare-and-set may
// be spurious: read again, then try again a little later. A read that must be current goes to
// the stream's leader, because any replica answers an ordinary get.
//
// The configuration spreads in two phases. [Configs.Propose] writes a version and names it in
// the pointer, the one key that decides everything. Each node sees it ([Configs.Watch]),
// prepares it and reports that. [Configs.Activate] then makes it the active version. It first
// waits until every broker with a [Lease] has prepared the version or its lease has lapsed. A
// broker answers calls only while its lease is fresh, which ends before the lease lapses. A
// broker that is cut off therefore never answers with a version that the others have dropped:
// it is at most one version behind, and nodes keep more than that.
//
// No code compares the clocks of two machines. A lease lapses by the clock of the server that
// stores it; freshness ends by the broker's own clock. The time between the two covers clocks
// that run at different speeds.
//
// Everything here is safe for concurrent use by goroutines and processes.
//
// Only this module imports it.
package state
