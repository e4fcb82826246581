// Package loop runs an agent: it calls a model, the tools that the model asks for, and
// ends with a final response. At every moment of that, hooks may look on, change the
// agent's state, replace the value that flows through, and steer.
//
// # Rules
//
// A [Loop] runs one query at a time; another [Loop.Run] is refused meanwhile. Hooks may be
// registered and removed at any time, also while a query runs: an event asks those that there
// are when it begins. Tools of one turn run side by side, up to [Options.Parallel], and so do
// the hooks of their events; everything else comes one after the other.
//
// A hook's functions get copies, and change the agent only by their [Status]. They have the
// hook's time together; what goes on after that is left to itself and changes nothing
// any more. The same is true of models and tools when the query's context ends. A panic is an error.
//
// QueryEnd comes exactly once for each query, however it ends, and says how. When the query
// was cancelled it has [Options.EndTimeout], as have the hooks after a tool that ran.
//
// # Events
//
// What a hook sees in its [Status] beside the iteration, which type its value has, and what it
// may decide beside continue (schema's table, which is the fabric's):
//
//	event                sees               value                 decisions
//	UserPromptSubmit     –                  –                     deny
//	BeforeLLMCall        –                  Message, stop only    fail, stop
//	AfterLLMCall         assistant message  Message               retry, fail, stop
//	PreToolUse           tool call          ToolCall,             allow, ask, deny, fail, stop
//	                                        ToolOutcome of a stop
//	PostToolUse          tool result        ToolOutcome           deny (feedback), fail
//	ToolError            tool result, error ToolOutcome           deny (feedback), fail
//	BeforeFinalResponse  assistant message  Message               retry, fail, stop
//	QueryEnd             –                  Response              fail (recorded only)
//
// A retry has the model called again: at AfterLLMCall its message is discarded, at
// BeforeFinalResponse it stays in the conversation. The reason is told to the model, with the
// number of the attempt; [Options.MaxIterations] bounds the model calls of a query. Fail ends the
// query with an error; deny refuses one call and tells the model. Stop ends the query with the
// message that it carries; at PreToolUse it is the tool's result, and the tool does not
// run. A call gets exactly one of PostToolUse and ToolError if its tool ran, if there is no such
// tool, or if its input is none; a call that was refused or answered by a hook gets none.
//
// # Order
//
// A hook's conditions come first: where one does not hold nothing else of it happens, and one that
// fails counts as true. Then its effects, in their order, then its value, then its decision. Hooks
// come in the order of registration, each sees the value as those before it left it, and the first
// that ends the chain is the last that is asked. A rewrite before such an end does not count; effects
// have happened. PostToolUse, ToolError and QueryEnd ask everybody, and the greatest decision wins.
//
// Hooks of the program come first, then those of the fabric, which see what these left; a decision
// that ends the chain asks nobody else. [RemoteFirst] turns that round. The effects of a fabric's verdict
// come before its value. Both are judged by the same code as all hooks of the fabric
// (dispatch.Settle and dispatch.Fold), so that one rule holds everywhere: illegal answers
// are errors of their hook, and a hook that fails follows its policy. A rewrite that can
// not be read blocks where a failure can. A restart or a terminate of the fabric's stands whatever
// the program's hooks decide; the end comes before the new beginning.
//
// A text in a message's place replaces its text and leaves its calls; a message replaces all. A value has
// the bound of all results, [schema.MaxResult], also of a hook in the process: a larger one is an error of the hook.
//
// # Failure
//
// A hook fails if an effect or its value returns an error or panics, or if it is not done within its time
// ([Registration.Within]). It has no opinion then, and [Response.HookErrors] says why; with
// [Registration.FailClosed] it blocks: deny where there is a call or a prompt, fail at the events of
// the model and of the final response, and only a record at the others. Effects that it had before that stay.
//
// A registration that the event does not permit is a fault of the program: [Loop.Check] says all of them,
// and [Loop.Run] does nothing before they are mended. A tool that fails is told to the model, and does not
// end the query; a model that fails does. Where the fabric gives no verdict, [Options.Unreachable] says what
// that means; the default is that nothing happens which nobody judged.
//
// # The conversation
//
// What effects append stands where the conversation ends at that moment; while tools run, after the
// turn's results, in the order of the calls. What is injected stands with the tool's result or in a message
// as a user would write it. Messages are dropped whole turns at a time: no call is left without its
// results ([schema.DropMessages]). The conversation and the flags go on from query to query.
//
// What the fabric's queue brings is acknowledged when it stands in the conversation and a model call has had
// it. Its lease is renewed until then; what no model read comes again, and what a query brought nowhere
// as it ended. Messages that come in at the very end put it off, at most
// [Options.FinalRetries] times; then they stay in the queue for the next query.
//
// # Usage
//
// A model is a function, or a client of an API by [LLM]; a tool is a function by [ToolFunc]:
//
//	l, err := loop.New(loop.Options{Agent: "agent1", Model: loop.LLM(model), Tools: tools, Fabric: fabric})
//	…
//	l.On(schema.BeforeFinalResponse).When(tooLong).Handle(schema.Retry, loop.WithReason("say it in one sentence"))
//	answer, err := l.Run(ctx, "What is a bus?")
//
// Fabric is a client of the package client, or nil. Responses say how a query ended also where the
// error says that there is no answer. The conversation goes on with the next Run; [Loop.NewConversation] forgets it.
//
// Test an agent with a [ModelFunc] that returns what a model would say, and look at the [Request] that it got,
// at [Options.Verdict] and at [Loop.History]; the examples below do.
package loop
