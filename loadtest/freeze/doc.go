// Package freeze measures how long it takes until an operator's freeze has reached
// everybody: many shims, each with a connection of its own, ask about a tool call
// every so often, and some broker answers. What counts is the time from just before
// the operator's request until a shim's call is refused, and until the last call
// passes, by the clock of this process, in which the operator and all shims are.
//
// shims.go are those who ask, run.go the repetitions, and report.go what comes of them.
package freeze
