// Package aggregator answers agents: it takes events from the bus, has their
// plans run, and sends one verdict back before the agent's own deadline. Any
// number of aggregators share the work through a queue group; none of them
// keeps anything that another one could not know.
//
// An event's way through this package: ask.go takes it and answers; caller.go
// carries batches to workers on the bus; life.go listens for who is alive;
// remember.go does with its verdict what is remembered of the agent: deliver.go
// hands over what waits for it, acks.go writes what was handed over, gate.go
// refuses tools after a round's time and keeper.go warns before; memory.go says
// where that is remembered and stage.go which hooks do it. feed.go, ledger.go and
// metrics.go tell what happened; control.go and verbs.go serve operators.
package aggregator
