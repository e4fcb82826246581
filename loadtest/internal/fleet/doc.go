// Package fleet lets many agents use tools through the fabric at the same time, in an open
// loop. It measures latency and checks every answer.
//
// Drivers (driver.go) are processes that run the agents, on a few connections each. Workers
// (worker.go) run hooks that report in their answers what they saw. A producer sends
// messages (package audit). run.go starts all of them, and document.go writes the report.
//
// The expected answer follows from the call alone (oracle.go). Its tool determines the
// matching hooks (mix.go, hooks.go), a number in its input their decisions, and a rewriting
// hook leaves a checksum of the input it saw (hooks.go). So the checks do not depend on the
// fabric's own counters.
package fleet
