// Package rounds stores the agents' rounds and their time limits.
//
// There is one key per agent, and every change is a compare-and-set. Each denied call
// therefore counts once, and a round has one warning, however many brokers act at once. The
// revision of its start identifies a round. A late change of an earlier round has no effect.
//
// All times come from the server's clock: the start of a round and its warning have the
// server's time, and their age is measured against an estimate of that clock.
//
// Every broker mirrors all rounds in memory, because each tool call reads one. Everything
// here is safe for concurrent use.
//
// Only this module imports it.
package rounds
