// Package command runs programs as hooks: one process per call, started without a shell
// unless the hook has `shell: true`.
//
// # What a program gets
//
// The standard input has the event as one JSON object. Two more members are there for
// scripts that were written for Claude Code: hook_event_name (Claude Code's name of the
// event) and tool_response (the same value as tool_output).
//
// The environment has
//
//   - MASSGEN_HOOK_TYPE, MASSGEN_TOOL_NAME, MASSGEN_SESSION_ID, MASSGEN_AGENT_ID and
//     MASSGEN_ORCHESTRATOR_ID, and the same with HOOK_ instead of MASSGEN_ (the first also as
//     HOOK_TYPE); they are always set, perhaps to an empty value,
//   - CLAUDE_PROJECT_DIR, the agent's working directory, if the event names it (the agent
//     chooses it: run nothing from there),
//   - TRACEPARENT and TRACESTATE, if the call is traced,
//   - PATH, HOME and LANG of the worker, and the variables in the hook's `env:`.
//
// The worker cuts values at 4 KiB, and replaces a NUL byte with U+FFFD. A policy must
// therefore read the values that it judges from the standard input.
//
// A program runs in the folder in which the worker looks up relative handlers first, never
// in the agent's folder: that one can be on another machine, and the agent controls it.
//
// # What a program answers
//
// Exit code 0: the standard output is the answer; an empty output means no opinion. Exit
// code 2: the program blocks, and its standard error is the reason; the worker ignores the
// standard output. Everything else is an error, for which the hook's failure policy decides:
// another exit code, a signal, output that is too large or is not one JSON object.
//
// A program checks the event itself; its only separate condition is the hook's `when:`.
// Effects and values are members of the answer.
//
// # How long a program lives
//
// A program leads its own process group. The worker kills the group at the deadline, after
// too much output, when the runner closes, and when the program has answered and left
// processes behind. A process that leaves the group, for example with setsid, keeps running
// if the program has answered. At the deadline the worker kills it too, on Linux: see
// workers/internal/child. If the worker itself is killed, the kernel kills the program (Linux), and the
// watchdog kills its group: see [RunWatchdog].
//
// Start with handler.go (the runner, and one call), then script.go (the meaning of a
// handler's name) and process.go (one process).
package command
