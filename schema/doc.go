// Package schema holds the words of the fabric: events, hooks, results,
// outcomes, verdicts and the messages that carry them. It is pure data: it
// does no I/O, knows no bus and starts no goroutines, so that every other
// package, and programs of users, can share it.
//
// Read event.go first (what a moment of an agent is and what may be decided
// there), then result.go (what one hook may answer), outcome.go (what came of
// asking it) and verdict.go (the fold of all outcomes). wire.md, beside these
// files, is the contract between processes; the golden files in testdata/wire
// are its examples, and tests hold the types to them.
package schema

//go:generate go run ./internal/schemagen
