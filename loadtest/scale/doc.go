// Package scale shows how the cost of a call grows with what there is much of: hooks
// on one call, hooks in the configuration, agents, connections, items that wait, and
// workers. Each part grows one of them by powers of two or ten and measures the same
// call at every step: how long it takes, and how much time of a processor the broker
// and the worker need for it, which says more than times do where others use the
// machine, too. Every step is divided by the smallest one of the same repetition, and
// each repetition takes the steps in an order of its own, so that what drifts drifts
// for all.
//
// stand.go holds the processes, growth.go the repetitions and what is made of them;
// hooks.go, matchers.go, agents.go, connections.go, pending.go, workers.go and
// units.go are the parts, one file each.
package scale
