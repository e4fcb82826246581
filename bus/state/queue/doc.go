// Package queue stores the messages that wait for agents, and which agent received which of
// them.
//
// A message is accepted with one write, after which it is on disk. An agent's cursor
// records what it received; a claim is one compare-and-set on that cursor. A claimed
// message is leased for 30 s, and delivered again unless it is acknowledged.
//
// Everything here is safe for concurrent use by goroutines and processes.
//
// Only this module imports it.
package queue
