// Package scale measures how the cost of a call grows with the number of hooks on the call,
// hooks in the configuration, agents, connections, waiting items and workers. Each part
// increases one of them by powers of two or ten, and measures the same call at every step:
// its time, and the CPU time of broker and worker, which other programs on the machine
// affect less. Each step is divided by the smallest step of the same repetition. Each
// repetition measures the steps in random order, so a slow change of the machine affects
// all of them.
//
// stand.go has the processes, growth.go the repetitions and their results. hooks.go,
// matchers.go, agents.go, connections.go, pending.go, workers.go and units.go are the parts.
package scale
