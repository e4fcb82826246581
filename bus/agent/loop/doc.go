// Package loop runs an agent: it calls a model and the tools that the model requests, and ends
// with a final response. At each step hooks can read the agent's state, change it, replace the
// value of the step, and decide how to continue.
//
// # Usage
//
// A model is a function, or a client of an API through [LLM]. A tool is a function through
// [ToolFunc]:
//
//	l, err := loop.New(loop.Options{Agent: "agent1", Model: loop.LLM(model), Tools: tools, Fabric: fabric})
//	if err != nil {
//		return err
//	}
//	l.On(schema.BeforeFinalResponse).When(tooLong).Handle(schema.Retry, loop.WithReason("use one sentence"))
//	answer, err := l.Run(ctx, "What is a bus?")
//
// Fabric is a client of package client, or nil. The response says how the query ended, also if the
// error says that there is no answer. The conversation continues with the next Run;
// [Loop.NewConversation] clears it.
//
// To test an agent, use a [ModelFunc] that returns fixed messages. Then check the [Request], the
// events in [Options.Verdict], or [Loop.History], as the examples do.
//
// # Concurrency
//
// A [Loop] runs one query at a time, and a second [Loop.Run] returns [ErrRunning]. Other goroutines
// may add and remove hooks at any time. An event runs the hooks that exist when it begins. The
// tools of one turn run concurrently, up to [Options.Parallel], and so do the hooks of their events.
// Everything else is sequential.
//
// A hook's functions receive copies, and change the agent only through their [Status]. They share
// the hook's time. A function that returns later has no effect. The same applies to models and
// tools after the query's context ends. A panic counts as an error.
//
// QueryEnd happens exactly once for each query and says how the query ended. After a cancelled query
// it has [Options.EndTimeout], and so have the hooks after a tool that ran.
//
// # Events
//
// The table lists what a hook reads in its [Status] beside the iteration, the type of its value,
// and its decisions beside continue. It is the same as the fabric's table in package schema:
//
//	event                reads              value                 decisions
//	UserPromptSubmit     –                  –                     deny
//	BeforeLLMCall        –                  Message, stop only    fail, stop
//	AfterLLMCall         assistant message  Message               retry, fail, stop
//	PreToolUse           tool call          ToolCall,             allow, ask, deny, fail, stop
//	                                        ToolOutcome of a stop
//	PostToolUse          tool result        ToolOutcome           deny (feedback), fail, stop
//	ToolError            tool result, error ToolOutcome           deny (feedback), fail, stop
//	BeforeFinalResponse  assistant message  Message               retry, fail, stop
//	QueryEnd             –                  Response              fail, stop
//
// Retry calls the model again. At AfterLLMCall the loop discards the model's message; at
// BeforeFinalResponse the message stays in the conversation. The model reads the reason and the number
// of the attempt. [Options.MaxIterations] limits the model calls of a query.
//
// Fail ends the query with an error, also at QueryEnd. Deny refuses one call and tells the model why.
//
// Stop ends the query with the message in its value. At PreToolUse its value is the tool's result, and
// the tool does not run. At PostToolUse, ToolError and QueryEnd its value replaces the result or the
// response, and no later hook runs.
//
// A call has exactly one of PostToolUse and ToolError if its tool ran, if the tool does not exist, or
// if the input is not an object. A call that a hook refused or answered has neither.
//
// # Order
//
// A hook runs in this order: conditions, effects, value, decision. If a condition is false, the hook
// does nothing. A condition that fails counts as true.
//
// Hooks run in the order of registration. Each one sees the value that the earlier hooks left. A hook
// that ends the chain is the last one. It drops earlier rewrites, but not earlier effects.
// At PostToolUse, ToolError and QueryEnd only a stop ends the chain. Nothing is dropped there, and the
// greatest decision counts: fail, then stop, then deny. The feedback of a lesser deny stays with the
// result.
//
// Hooks of the program run before those of the fabric, which see the results. If a program's hook ends
// the chain, the loop does not ask the fabric. [RemoteFirst] reverses the order. The effects of a
// fabric's verdict come before its value.
//
// Both kinds of hooks use the code that judges all hooks of the fabric (dispatch.Settle and
// dispatch.Fold). An invalid answer is an error of its hook, and a failing hook follows its failure
// policy. A rewrite that cannot be read blocks at events where a failure can block. A restart or
// terminate of the fabric applies no matter what the program's hooks decide. Terminate precedes
// restart.
//
// A text as the value of a message replaces the text and keeps the calls. A message replaces both. A
// value larger than [schema.MaxResult] is an error of its hook, also in this process.
//
// # Failure
//
// A hook fails if an effect or its value returns an error or panics, or if its time is up
// ([Registration.Within]). It then has no opinion, and [Response.HookErrors] says why. With
// [Registration.FailClosed] it blocks: deny at a call or a prompt, fail at the events of the model and
// the final response, and only a record at the others. Earlier effects of the hook stay.
//
// A hook that its event does not permit is a fault of the program. [Loop.Check] lists all faults, and
// [Loop.Run] does nothing until they are corrected. The model reads the error of a failing tool, and
// the query continues. A failing model ends the query. [Options.Unreachable] is the policy for events
// without a verdict of the fabric. By default, the loop does nothing that the fabric has not judged.
//
// # The conversation
//
// An effect appends at the current end of the conversation. While tools run, it appends after the
// results of the turn, in the order of the calls. An injection is next to the tool's result, or in a
// user message. The loop drops messages in whole turns, so that no call is without its results
// ([schema.DropMessages]). The conversation and the flags continue from query to query.
//
// The loop acknowledges queued items after a model call has read them, and renews their leases until
// then. The fabric delivers items that no model read again. New messages at the end of a query
// delay the end, at most [Options.FinalRetries] times. After that they stay in the queue for the next
// query.
package loop
