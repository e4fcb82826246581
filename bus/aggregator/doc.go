// Package aggregator answers agents. It receives events from the bus, has their plans run,
// and sends one verdict for each before the agent's deadline. Any number of aggregators
// share the work through a queue group. An aggregator holds no state that another one
// cannot read.
//
// receiver.go receives an event and stamps it with the time. Events that come faster than they can
// be judged wait in admission.go, and admit.go decides which of them may. pipeline.go lists the steps
// that each event then passes:
//
//  1. checkreply.go ends events without an inbox for the answer.
//  2. decode.go reads the headers.
//  3. dropstale.go ends events whose shims have given up.
//  4. checklease.go waits until the active configuration is known.
//  5. chargeagent.go counts the event towards the limits of its agent (limits.go).
//  6. awaitlarge.go has large events of one agent wait for each other.
//  7. startspan.go begins the span of a traced event.
//  8. verify.go answers malformed events.
//  9. notice.go stores that the agent is there.
//  10. checkfreeze.go denies calls of frozen agents (freeze.go).
//  11. selecthooks.go finds the plan, and answers events that no hook matches.
//  12. shed.go answers by failure policies what would be judged too late.
//  13. judge.go runs the hooks: caller.go sends batches to workers, and gate.go denies tools after
//     a round's hard limit.
//  14. rechecklease.go looks at the lease again before a tool call passes.
//  15. remember.go updates the agent's state: deliver.go delivers messages, acks.go stores
//     acknowledgements.
//  16. sendverdict.go sends the verdict and records it.
//
// aggregator.go groups the state of an aggregator by its purpose. life.go follows the workers' heartbeats, and keeper.go warns agents before a round's hard limit.
// memory.go defines the stores, stage.go the hooks that the aggregator runs itself. The
// package observe reports what happened; control.go and verbs.go serve operators.
//
// All exported methods are safe for concurrent use.
//
// Only this module imports it.
package aggregator
