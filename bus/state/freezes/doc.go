// Package freezes stores which agents' tool calls are denied until a thaw. It is one key of
// one bucket, and every change is a compare-and-set, so that two operators never undo each
// other's change. Each broker mirrors it in memory. While the bucket cannot be reached, a
// broker applies its copy, and the other brokers wait for it. A broker that the others may
// not have waited for confirms its copy first, by writing a second key.
//
// Everything here is safe for concurrent use by goroutines and processes.
package freezes
