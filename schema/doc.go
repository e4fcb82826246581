// Package schema defines the data types of the fabric: events, hooks, results, outcomes,
// verdicts and the messages that carry them. It does no I/O, imports no bus and starts no
// goroutine, so every package and every program of a user can import it.
//
// # Concurrency
//
// All types are plain values. Several goroutines may read one value. A goroutine that changes a
// value must own it, as with any Go struct.
//
// # Usage
//
// A hook reads an event and returns a result:
//
//	event, err := schema.ReadEvent(data)
//	if err != nil {
//		return schema.Result{}, err
//	}
//	if event.ToolName == "Bash" {
//		return schema.Denied("use the build tool instead"), nil
//	}
//	return schema.Result{}, nil // no opinion
//
// # Files
//
// Read event.go first: the moments of an agent and the decisions at each. Then read result.go
// (one hook's answer), outcome.go (the result or failure of one hook) and verdict.go (the fold
// of all outcomes). The file wire.md is the contract between processes. The golden files in
// testdata/wire are its examples, and tests compare the types with them.
package schema

//go:generate go run ./internal/schemagen
