// Package hookfabric is the map of a distributed hook fabric for AI agents. It
// holds no code: the fabric's programs are in cmd, and programs of users import
// the packages below.
//
// Before an agent uses a tool, after the tool returned, and at the other
// moments of its loop, hooks may have a say. The fabric carries each such
// moment from a shim beside the agent to an aggregator, which finds the hooks
// that match, has workers run them, folds what they say into one verdict and
// sends that back before the agent's own deadline.
//
// # The rooms
//
// A package imports what stands below it or beside it to the right, never what
// stands above. A test holds that: see arch_test.go, which also says why.
//
//	 touching the world
//	┌──────────────────────────────────────────────────────────────────────────┐
//	│ cmd/broker     cmd/hookworker     cmd/agentshim     loadtest   programs: │
//	│          dialect, exchange, judge, daemon, mcp, install        wiring    │
//	├──────────────────────────────────────────────────────────────────────────┤
//	│ bus/aggregator   builtin ─▶ workers (builtins, command, python, webhook) │
//	│ bus/embedded     bus/client: loop, llm ─▶ render; ─▶ bus/snapshot        │
//	│ bus/otlp (spans go to a collector)                                       │
//	│ bus/state: configuration; queue, rounds, sessions, objects, record ─▶ kv │
//	│ bus/access (who may do what) ─▶ realm (keys, credentials)                │
//	│ bus: subjects, headers, connections                                      │
//	└───────────────────────────────────┬──────────────────────────────────────┘
//	 thinking                           ▼
//	┌──────────────────────────────────────────────────────────────────────────┐
//	│ bus/dispatch: plan, waves, batches, failure policy, fold      cond (CEL) │
//	│ bus/dispatch/model: the same rules once more, as the tests' oracle       │
//	└───────────────────────────────────┬──────────────────────────────────────┘
//	 words                              ▼
//	┌──────────────────────────────────────────────────────────────────────────┐
//	│ schema: events, hooks, results, outcomes, verdicts, messages             │
//	│ schema/match: the one matcher      schema/hooksyaml: reads hooks.yaml    │
//	│ schema/trace: places in traces, spans                                    │
//	└──────────────────────────────────────────────────────────────────────────┘
//
// # To follow one event
//
// Read these files in this order:
//
//  1. schema/event.go: what a moment is; schema/decision.go: what may be decided there.
//  2. cmd/agentshim/app/hook.go: a runtime starts its hook; exchange/exchange.go: its
//     payload becomes an event; dialect/claude.go: in one runtime's form;
//     judge/judge.go: the fabric judges it, or what is known of its policy.
//  3. bus/client/ask.go: the event is asked, and asked again if the aggregator dies.
//  4. bus/subject.go and bus/eventmsg.go: the message that travels.
//  5. bus/aggregator/ask.go: the event arrives, the verdict leaves.
//  6. bus/dispatch/plan.go: which hooks run; dispatcher.go: wave by wave;
//     batch.go: one batch, until it has outcomes.
//  7. bus/aggregator/caller.go: the batch travels to a worker.
//  8. workers/service.go and workers/run.go: the worker takes it and runs the handlers.
//  9. workers/command/handler.go: one program is asked.
//  10. bus/dispatch/settle.go: an outcome under its failure policy;
//     bus/dispatch/fold.go: all of them become one verdict.
//
// # To follow what is said to a busy agent
//
//  1. schema/item.go: what waits; cmd/broker/app/inject.go: somebody says it.
//  2. bus/aggregator/control.go: the request arrives; bus/state/queue: it is on disk,
//     and in every broker's mirror; bus/state/kv: how state is read and written.
//  3. bus/aggregator/deliver.go: an event comes by, and what is due is claimed with one write.
//  4. builtin/stages.go: which hook takes what, and what the agent reads.
//  5. bus/client/ack.go: the shim says that it handed it over; or it comes again.
//
// # To follow one query of an agent's loop
//
//  1. bus/client/loop/doc.go: the rules; loop.go: what a loop is made of, and Run; run.go: from the
//     prompt to the response; tools.go: the calls of one turn; end.go: QueryEnd, whatever happened.
//  2. bus/client/loop/moment.go: one event, its hooks of the program (hook.go) and of the fabric, and
//     its value.
//  3. bus/client/loop/conversation.go: what effects change; handover.go: what the model has read.
//  4. schema/effect.go and schema/message.go: what hooks may change, and what it is in.
//  5. bus/client/history.go: the conversation comes along where some hook needs it;
//     workers/history.go: a worker puts it together.
//  6. bus/client/llm and bus/client/render: the model is called, in the words of its API.
//
// # To follow one configuration
//
//  1. schema/hooksyaml/read.go: what people write becomes a schema.Config.
//  2. bus/aggregator/configure.go: somebody wants it; hooks.go: or some hooks more.
//  3. bus/aggregator/spread.go: it is proposed, every node loads it, then it is active.
//  4. bus/state/propose.go, activate.go: the versions and the one pointer to them;
//     follow.go: what nodes hear of it; lease.go: who may answer by it.
//  5. cmd/broker/app/follow.go and workers/follow.go: a node takes it over.
//
// # To follow one line of the record
//
//  1. schema/record.go: what is told of a verdict; bus/aggregator/feed.go: it is told.
//  2. bus/state/record/writer.go: it waits to be written; encode.go: it becomes a line;
//     publish.go: and part of a message that the stream has.
//  3. bus/state/record/read.go: it is read; cmd/broker/app/feed.go: somebody sees it.
//
// # To follow one load test
//
//  1. loadtest/main.go: what there is to measure; loadtest/scenarios.go: which command runs what.
//  2. loadtest/scenario/scenario.go: what many agents do; read.go: from YAML.
//  3. loadtest/fleet/run.go: a fabric is put up, and agents; loadtest/field: its processes.
//  4. loadtest/load/schedule.go: calls are begun when they are due; recorder.go: what came of them.
//  5. loadtest/fleet/oracle.go: what must come of a call; loadtest/audit: of an injection.
//  6. loadtest/faults/schedule.go: what goes wrong meanwhile.
//  7. loadtest/result/result.go: what a run ends with; loadtest/report: what people see of it.
//
// What travels between processes is written down in schema/wire.md, with a
// golden file for every message.
package hookfabric
