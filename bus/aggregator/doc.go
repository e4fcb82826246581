// Package aggregator answers agents: it takes events from the bus, has their
// plans run, and sends one verdict back before the agent's own deadline. Any
// number of aggregators share the work through a queue group; none of them
// keeps anything that another one could not know.
//
// An event's way through this package: ask.go takes it and answers; caller.go
// carries batches to workers on the bus; life.go listens for who is alive;
// feed.go and metrics.go tell what happened; control.go serves operators.
package aggregator
