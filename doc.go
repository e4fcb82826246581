// Package hookfabric is the map of a distributed hook fabric for AI agents. It has
// no code: the programs are in cmd.
//
// An agent runs in a loop: before a tool call, after it, and at other points, it
// sends an event. Hooks decide about it. A shim beside the agent sends the event
// over NATS to an aggregator. The aggregator selects the matching hooks, lets workers
// run them, and folds their results into one verdict. The shim returns the verdict to
// the agent before the agent's own deadline.
//
// # Packages for users
//
// Programs outside this module import these packages only. The names and types of the others change without notice.
//
//	schema             events, hooks, results, verdicts, messages
//	schema/hooksyaml   reads and writes hooks.yaml
//	schema/match       the patterns that select tools and agents
//	schema/guard       which calls are guarded; verifies a signed policy
//	schema/redact      removes secrets from texts
//	schema/trace       trace positions and spans, as clients and workers take them
//	bus                subjects, headers and connections
//	bus/server/certs   the files of certificates, as clients and workers take them
//	bus/client         asks for verdicts
//	bus/agent/loop     runs an agent with hooks at each step
//	bus/agent/llm      calls models
//	bus/agent/render   writes verdicts and conversations for the APIs of models
//	workers            serves hooks
//	workers/command    runs programs as hooks
//	workers/python     runs Python functions as hooks
//	workers/webhook    sends events to servers as hooks
//	workers/runnertest the tests that each runner must pass
//	builtin            the built-in hooks
//
// # Layers
//
// A package imports packages of lower layers, and of its own layer along the arrows.
// arch_test.go checks this and explains each rule.
//
//	 I/O
//	┌──────────────────────────────────────────────────────────────────────────┐
//	│ cmd/broker     cmd/hookworker     cmd/agentshim     loadtest   programs  │
//	│          dialect, session, decide, daemon, mcp, install                  │
//	│ cmd/internal/otlp: exports spans to a collector                          │
//	├──────────────────────────────────────────────────────────────────────────┤
//	│ bus/aggregator   builtin ─▶ workers (command, python, webhook)           │
//	│ bus/server       bus/agent: loop ─▶ render, bus/client ─▶ bus/snapshot   │
//	│ bus/state: configuration; queue, rounds, sessions, objects, record ─▶ kv │
//	│ bus/server/access (permissions) ─▶ bus/server/realm (keys, credentials)  │
//	│ bus: subjects, headers, connections                                      │
//	└───────────────────────────────────┬──────────────────────────────────────┘
//	 decisions, no NATS                 ▼
//	┌──────────────────────────────────────────────────────────────────────────┐
//	│ bus/dispatch: plan, waves, batches, failure policy, fold      cond (CEL) │
//	│ bus/internal/model: a second, simple version of the rules, for tests     │
//	└───────────────────────────────────┬──────────────────────────────────────┘
//	 data, no I/O                       ▼
//	┌──────────────────────────────────────────────────────────────────────────┐
//	│ schema: events, hooks, results, outcomes, verdicts, messages             │
//	│ schema/match: the matcher          schema/hooksyaml: reads hooks.yaml    │
//	│ schema/trace: trace positions, spans                                     │
//	└──────────────────────────────────────────────────────────────────────────┘
//
// # One PreToolUse event
//
// Read these files in this order:
//
//  1. schema/event.go defines the event; schema/decision.go the decisions that are legal at it.
//  2. cmd/agentshim/app/hook.go runs when the agent starts `agentshim hook` before a tool
//     call. dialect/claude.go decodes the payload of one runtime, session/session.go
//     makes an event of it, and decide/decide.go asks the fabric. If no broker answers,
//     decide applies the last known policy.
//  3. bus/client/ask.go sends the event, and repeats it if the aggregator dies.
//  4. bus/subject.go and bus/eventmsg.go define the subject and headers of the message.
//  5. bus/aggregator/receiver.go receives the event. pipeline.go lists the steps that it passes,
//     one file each: checks of the lease, limits and freezes, the hooks, and the verdict.
//  6. bus/dispatch/plan.go selects the hooks that match. dispatcher.go runs them wave by wave,
//     and batch.go runs one batch until it has outcomes.
//  7. bus/aggregator/caller.go sends the batch to a worker.
//  8. workers/service.go receives it, and workers/run.go runs the handlers.
//  9. workers/command/handler.go runs one of them, a command program.
//  10. bus/dispatch/settle.go applies the failure policy to each outcome, and
//     bus/dispatch/fold.go combines all outcomes into the verdict.
//
// # One message to a busy agent
//
//  1. schema/item.go defines the stored item; cmd/broker/app/inject.go sends it.
//  2. bus/aggregator/control.go receives the request. bus/state/queue stores the item on disk,
//     and every broker mirrors it. bus/state/kv does all reads and writes of state.
//  3. bus/aggregator/deliver.go claims the items that are due, with one write, when the
//     agent's next event arrives.
//  4. builtin/stages.go selects the items and renders their text for the agent.
//  5. bus/client/ack.go acknowledges the delivery. Without it the item is delivered again.
//
// # One query of an agent loop
//
//  1. bus/agent/loop/doc.go has the rules. loop.go defines a loop and Run. run.go goes from
//     the prompt to the response, tools.go runs the calls of one turn, and end.go always
//     sends QueryEnd.
//  2. bus/agent/loop/moment.go runs one event: the hooks of the program (hook.go), those of
//     the fabric, and the value.
//  3. bus/agent/loop/conversation.go applies effects; handover.go records what the model read.
//  4. schema/effect.go and schema/message.go define effects and messages.
//  5. bus/client/history.go sends the conversation if a hook needs it, and
//     workers/history.go puts it together in the worker.
//  6. bus/agent/llm calls the model, and bus/agent/render writes the messages of its API.
//
// # One configuration
//
//  1. schema/hooksyaml/read.go reads hooks.yaml into a schema.Config.
//  2. bus/aggregator/configure.go receives a new configuration, hooks.go hooks of one agent.
//  3. bus/aggregator/spread.go proposes it, waits until every node has loaded it, and
//     activates it.
//  4. bus/state/propose.go and activate.go store the versions and the pointer to the active one.
//     follow.go informs nodes, and lease.go decides which brokers may answer with it.
//  5. cmd/broker/app/follow.go and workers/follow.go load it in a node.
//
// # One line of the record
//
//  1. schema/record.go defines the record of a verdict; bus/aggregator/observe/feed.go publishes it.
//  2. bus/state/record/writer.go buffers records, encode.go writes a record as a line, and
//     publish.go sends lines as one message to the stream.
//  3. bus/state/record/read.go reads the stream, and cmd/broker/app/feed.go prints it.
//
// # One load test
//
//  1. loadtest/main.go describes the commands; measurements.go lists those that measure one
//     thing, and scenarios.go runs scenarios.
//  2. loadtest/scenario/scenario.go defines a scenario of many agents; read.go reads its YAML.
//  3. loadtest/fleet/run.go starts the fabric and the agents; loadtest/field starts processes.
//  4. loadtest/load/schedule.go starts calls at their planned time; recorder.go counts results.
//  5. loadtest/fleet/oracle.go checks each answer; loadtest/audit checks each message.
//  6. loadtest/faults/schedule.go causes faults.
//  7. loadtest/result/result.go defines the report of a run; loadtest/report prints and draws it.
//
// schema/wire.md describes the messages between processes. Each has a golden file.
package hookfabric
