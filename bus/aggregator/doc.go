// Package aggregator answers agents. It receives events from the bus, has their plans run,
// and sends one verdict for each before the agent's deadline. Any number of aggregators
// share the work through a queue group. An aggregator holds no state that another one
// cannot read.
//
// The files, in the order of an event: ask.go receives it and answers; caller.go sends
// batches to workers; life.go follows the workers' heartbeats; remember.go updates the
// agent's state: deliver.go delivers messages, acks.go stores acknowledgements, gate.go
// denies tools after a round's hard limit, and keeper.go sends the warning before it.
// memory.go defines the stores, stage.go the hooks that the aggregator runs itself. feed.go,
// ledger.go and metrics.go report what happened; control.go and verbs.go serve operators.
//
// All exported methods are safe for concurrent use.
package aggregator
