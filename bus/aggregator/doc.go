// Package aggregator answers agents. It receives events from the bus, has their plans run,
// and sends one verdict for each before the agent's deadline. Any number of aggregators
// share the work through a queue group. An aggregator holds no state that another one
// cannot read.
//
// internal/intake/receiver.go receives an event and stamps it with the time. Events that come faster than they
// can be judged wait in internal/intake/admission.go. pipeline.go lists the steps that each event then passes:
//
//  1. checkReply (internal/intake/steps.go) ends events without an inbox for the answer.
//  2. decode (internal/intake/steps.go) reads the headers.
//  3. dropStale (internal/intake/steps.go) ends events whose shims have given up.
//  4. checkLease (internal/intake/steps.go) waits until the active configuration is known.
//  5. chargeAgent (internal/intake/steps.go) counts the event towards the limits of its agent.
//  6. awaitLarge (internal/intake/steps.go) has large events of one agent wait for each other.
//  7. startSpan (startspan.go) begins the span of a traced event.
//  8. verify (verify.go) answers malformed events.
//  9. notice (selecthooks.go) stores that the agent is there.
//  10. checkFreeze (checkfreeze.go) denies calls of frozen agents.
//  11. selectHooks (selecthooks.go) finds the plan, and answers events that no hook matches.
//  12. shed (shed.go) answers by failure policies what would be judged too late.
//  13. judge (judge.go) runs the hooks; gate.go denies tools after a round's hard limit.
//  14. recheckLease (judge.go) looks at the lease again before a tool call passes.
//  15. remember (judge.go) updates the agent's state and delivers its messages.
//  16. sendVerdict (sendverdict.go) sends the verdict and records it.
//
// The packages below this one each have one task, and import packages below them in this list only:
//
//   - control serves the requests of operators, orchestrators, agents and workers.
//   - deliver delivers messages, stores acknowledgements, and warns agents before a round's hard limit.
//   - intake receives events, holds those that wait, and limits what one agent uses.
//   - remote reaches the workers: it sends batches and follows heartbeats.
//   - stages makes the hooks that the aggregator runs itself.
//   - stores names the stores of agents' state.
//   - observe tells operators what happened; ratelimit has the tables of limits.
//
// aggregator.go starts and connects them.
//
// All exported methods are safe for concurrent use.
//
// Only this module imports it.
package aggregator
