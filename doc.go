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
//	schema/action      parses tool calls: commands, paths, hosts
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
//	│ bus/aggregator   builtin ─▶ workers (cel, command, python, webhook)      │
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
// # One tool call
//
// A line names a folder, and its files in the order to read them. The files are those of which one event at
// PreToolUse runs at least 20 lines, and a few with its rules. cmd/e2e/path_test.go measures that.
//
// The event, the answers of its hooks, and their decoding:
//
//	schema: event.go decision.go toolfacts.go answer.go reader.go codec.go
//
// The agent starts `agentshim hook` before a tool call. dialect decodes the payload of one runtime, session makes an
// event of it, and decide asks the fabric. If no broker answers, decide applies the last known policy:
//
//	cmd/agentshim/app: app.go hookflags.go link.go hook.go
//	cmd/internal/program: program.go
//	cmd/agentshim/internal/dialect: dialect.go claude.go claudelike.go decode.go
//	cmd/agentshim/internal/session: session.go stored.go texts.go
//	cmd/agentshim/internal/decide: decide.go connect.go background.go policy.go
//	cmd/agentshim/shimstate: folder.go later.go reached.go policy.go
//	schema/guard: document.go sign.go rules.go
//
// The client sends the event, and repeats it if the aggregator dies. bus defines the subject and the headers of the
// message:
//
//	bus/client: client.go ask.go deliverylog.go ack.go
//	bus: subject.go header.go eventmsg.go envelope.go
//	bus/internal/natsconn: conn.go
//
// The aggregator receives the event. pipeline.go lists the steps that it passes, one file each: checks of the
// lease, limits and freezes, the hooks, and the verdict. Policies are signed for shims, and messages that wait for the
// agent are claimed:
//
//	bus/aggregator/internal/intake: receiver.go admission.go steps.go limits.go
//	bus/aggregator: pipeline.go checkfreeze.go judge.go
//	bus/aggregator/control: freezing.go
//	bus/aggregator/ratelimit: table.go
//	bus/state: seed.go
//	bus/state/sessions: presence.go
//	bus/state/queue: agent.go claim.go change.go cursor.go
//
// The dispatcher selects the hooks that match, and runs them wave by wave. A batch runs until it has outcomes:
//
//	bus/dispatch: plan.go dispatcher.go members.go batch.go answers.go
//	bus/aggregator/internal/remote: caller.go
//	bus: batchmsg.go
//	schema/plainjson: table.go read.go scan.go
//
// The worker runs the handlers of the batch. One of them runs a program:
//
//	workers: service.go run.go worker.go
//	workers/command: handler.go process.go
//	workers/internal/child: process.go
//
// The dispatcher applies the failure policy to each outcome, and folds all outcomes into the verdict:
//
//	bus/dispatch: settle.go fold.go
//
// The aggregator answers, counts and records the verdict, and the shim writes it for the runtime:
//
//	bus/aggregator: sendverdict.go
//	bus/aggregator/observe: metrics.go
//	schema/trace: span.go
//	bus/state/record: writer.go body.go encode.go publish.go
//	schema/plainjson: write.go
//	schema/redact: text.go
//	cmd/agentshim/internal/dialect: express.go claudeanswer.go
//
// # One message to a busy agent
//
//  1. schema/item.go defines the stored item; cmd/broker/app/inject.go sends it.
//  2. bus/aggregator/control/control.go receives the request. bus/state/queue stores the item on disk,
//     and every broker mirrors it. bus/state/kv does all reads and writes of state.
//  3. bus/aggregator/deliver/claim.go claims the items that are due, with one write, when the
//     agent's next event arrives.
//  4. builtin/stages.go selects the items and renders their text for the agent.
//  5. bus/client/ack.go acknowledges the delivery. Without it the item is delivered again.
//
// # One query of an agent loop
//
//  1. bus/agent/loop/doc.go has the rules. loop.go defines a loop and Run. run.go goes from
//     the prompt to the response and always sends QueryEnd. tools.go runs the calls of one turn.
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
//  2. bus/aggregator/control/configure.go receives a new configuration, hooks.go hooks of one agent.
//  3. bus/aggregator/control/spread.go proposes it, waits until every node has loaded it, and
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
//     thing, and scenarios.go runs scenarios. The packages are in loadtest/internal.
//  2. loadtest/internal/scenario/scenario.go defines a scenario of many agents; read.go reads its YAML.
//  3. loadtest/internal/fleet/run.go starts the agents; loadtest/internal/field starts the fabric.
//  4. loadtest/internal/load/schedule.go starts calls at their planned time; recorder.go counts results.
//  5. loadtest/internal/fleet/oracle.go checks each answer; loadtest/internal/audit checks each message.
//  6. loadtest/internal/faults/schedule.go causes faults.
//  7. loadtest/internal/report/result.go defines the report of a run; print.go and plot.go show it.
//
// schema/wire.md describes the messages between processes. Each has a golden file.
package hookfabric
