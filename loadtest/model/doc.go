// Package model calculates what a fabric takes that is larger than the one that was
// measured: processors, memory, connections, writes and bytes on the wire for any
// number of agents, from what one of each costs. It is arithmetic, and measures
// nothing; where a bound of today's release is met first, it says so.
package model
