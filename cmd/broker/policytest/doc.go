// Package policytest runs the test cases of a hooks.yaml without NATS: the hooks are planned, run and
// folded as in a broker, by a worker in this process.
//
// cases.go reads a file of cases. engine.go runs hooks, with failures that a case asks for. run.go runs
// cases and compares verdicts. coverage.go lists the hooks and conditions that no case reached.
//
// Only this module imports it.
package policytest
