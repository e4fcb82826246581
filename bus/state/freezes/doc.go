// Package freezes stores which agents' tool calls are denied until a thaw. All freezes are in one key of a bucket, and
// every change is a compare-and-set, so that two operators never undo each other's change. Each broker mirrors the
// key in memory. While the bucket cannot be reached, a broker applies its copy, and other brokers wait for it. A
// broker for which others may not have waited first confirms its copy by a write of a second key.
//
// Everything here is safe for concurrent use by goroutines and processes.
//
// Only this module imports it.
package freezes
