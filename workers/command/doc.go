// Package command runs programs as hooks: one process per call, started
// without a shell unless the hook says `shell: true`.
//
// # What a program gets
//
// On its standard input the event as one JSON object, with two more members
// that scripts written for Claude Code read: hook_event_name (the name that
// Claude Code has for the event) and tool_response (the same as tool_output).
// Its environment holds MASSGEN_HOOK_TYPE, MASSGEN_TOOL_NAME,
// MASSGEN_SESSION_ID, MASSGEN_AGENT_ID and MASSGEN_ORCHESTRATOR_ID, each again
// with HOOK_ for MASSGEN_ (the first also as HOOK_TYPE), always set, if need be
// to nothing; CLAUDE_PROJECT_DIR, the agent's working directory, if that is
// known (the agent says so: run nothing that lies there); TRACEPARENT and TRACESTATE, where
// the call is traced; PATH, HOME and LANG of the worker; what the hook's `env:` names; and
// nothing else. Values over 4 KiB are cut there, and a NUL byte becomes U+FFFD:
// a policy reads what it judges from the standard input. It runs in the folder
// in which relative handlers are looked up first, never in the agent's: that
// one may be on another machine, and the agent chooses what lies there.
//
// # What it may answer
//
// Exit code 0: its standard output is the answer, nothing there is no opinion.
// Exit code 2: it blocks, and its standard error is the reason, whatever the
// standard output says. Everything else (another exit code, a signal, output
// that is not one JSON object or is too large) is an error, for which the
// hook's failure policy decides.
//
// A program looks at its event itself: it has no condition but the hook's
// `when:`. Effects and values are members of its answer.
//
// # How long it lives
//
// A program leads a process group of its own, which is killed as a whole: at
// the deadline, on too much output, when the runner is closed, and also when
// the program has answered and left something running. Only a process that
// leaves the group, as setsid makes it, gets away. When the worker itself is
// killed, the kernel kills the program (Linux), and the watchdog its group: see
// [child.WatchdogMain].
//
// Start with runner.go, then lookup.go (what a handler's name means),
// handler.go (one call) and process.go (one process).
package command
