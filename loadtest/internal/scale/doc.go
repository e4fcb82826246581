// Package scale measures how the cost of a call grows with the number of hooks on the call,
// hooks in the configuration, agents, connections, waiting items and workers. Each part
// increases one of them by powers of two or ten, and measures the same call at every step:
// its time, and the CPU time of broker and worker, which other programs on the machine
// affect less. Each step is divided by the smallest step of the same repetition.
//
// scale.go lists the parts, and growth.go has the results. hooks.go grows hooks, matchers and
// workers, agents.go agents and connections; pending.go and units.go are the other parts.
//
// model.go calculates the needs of a fabric that is larger than the measured one from the cost
// of one agent, call and item. It measures nothing. It also lists the limits of one fabric in
// the order in which they are reached.
package scale
