// Package fleet has many agents use tools through the fabric at once, in an open
// loop, and holds every answer against what must come, while it measures.
//
// Processes: drivers (driver.go), which are the agents, on a few connections each;
// workers (worker.go), whose hooks write down what they saw in what they answer; a
// producer of injections (package audit); and the fabric itself. run.go starts
// them all and document.go says what they found.
//
// What must come of a call is computed from the call alone (oracle.go): its tool
// says which hooks it meets (mix.go, hooks.go), a number in its input what they
// decide, and a hook that rewrites leaves a checksum of the input it saw (stamp.go).
// So the fabric's own counters are not asked.
package fleet
