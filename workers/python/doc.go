// Package python runs Python functions as hooks, in long-lived host processes. A handler
// is named as `module.function`.
//
// # Arguments and answers of a function
//
// A function gets one argument, a HookEvent, with the event's fields as attributes and
// as a mapping. It returns None for no opinion, a HookResult, or a dict in any form that
// a program may print. Other values are errors of the hook. So are values that are not
// JSON, answers that are too large, exceptions, and the end of the process. If a refusal
// has parts that cannot be passed on, it still refuses.
//
// The worker sends the Python package hookfabric to each host. It has HookEvent,
// HookResult and HookType. Code written for MassGen imports massgen.mcp_tools.hooks. If
// MassGen is not installed, the worker's stand-in takes its place. Programs of users can
// use the folders hookfabric and massgen, too. There, massgen's manager registers hooks
// in the fabric. In a host it registers nothing, because the configuration names the hooks.
//
// A function or callable object may have an attribute `condition`, a function or
// coroutine function of the event. The decorator hookfabric.hook sets it. If the condition
// is false, the function is not called and the hook has no opinion. A condition that
// raises an exception counts as true, and the answer's hook_errors say so. Its time counts
// against the hook's timeout. If it ends the process, the hook has no answer.
//
// hookfabric.handle makes a hook of a condition, effects, a value and a decision, evaluated
// in that order. The first three may be functions and coroutine functions. The agent runs
// elsewhere, so only the effects that a function returns change it. Each hook of an event
// sees the value that the hooks before it left. A value that equals the current one has no
// effect. Any other value is a rewrite, which a readonly hook may not make.
//
// A host looks up modules in the hooks' folders, in order, then where the interpreter
// looks, and never in the worker's current folder. It reads a module once, so restart the
// worker after a change. If a new host cannot import a module, calls of its functions are
// denied. The environment is that of programs: PATH, HOME, LANG and the names in the
// hook's `env:`. The standard input is empty. What hooks print appears in the log at
// debug level.
//
// # How many calls a host takes at once
//
// A call has its host to itself. A call that hangs therefore ends with its host and
// disturbs no other call.
//
// Coroutine functions of idempotent hooks are the exception: up to 64 of their calls share
// a host, because each of them may run again. They run again, each in a host of its own,
// if the host is lost, runs out of memory, or has an event loop that does not answer for a
// second. A function that blocks the event loop of its own host as well is logged, and
// shares no more hosts. A coroutine is cancelled at its deadline. If it does not end at
// once, its host is killed. If it leaves threads behind, its host is replaced.
//
// # How many hosts there are
//
// A pool has the configured number of hosts that are not slow. A host is slow if a call
// in it takes longer than 50 ms. The pool adds hosts beside slow ones, up to
// sixteen times the configured number and at most 64, and keeps them for a while. Calls
// without a host wait in order, within their deadlines.
//
// # How long a host lives
//
// A host ends when no hook needs it, when a call hangs in it, when it runs out of memory,
// or after the configured number of calls. It leads a process group, see [child.Process],
// and ends when its pipe is closed.
//
// Start with runner.go (the runner, and one hook), then pool.go (which host takes a call),
// grow.go (how many there are), host.go (one process) and hookfabric/_host.py (what runs
// there).
package python
