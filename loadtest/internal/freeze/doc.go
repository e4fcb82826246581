// Package freeze measures how long an operator's freeze takes to reach all shims. Many
// shims, each with its own connection, make calls at a fixed interval. The time runs from
// just before the operator's request until a shim's call is refused, and until the last call
// passes. Operator and shims share one process and its clock.
//
// shims.go has the shims, and run.go the repetitions and the result.
package freeze
