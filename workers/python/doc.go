// Package python runs functions as hooks: `module.function`, in host processes
// that live long.
//
// # What a function gets and may answer
//
// One argument, a HookEvent: the event's fields as attributes and as a mapping.
// It returns None for no opinion, a HookResult, or a dict in any form that a
// program may print. Everything else is an error of the hook, and so are values
// that are not JSON, answers that are too large, exceptions, and whatever ends
// the process; a refusal stands, without what can not be passed on. The package
// hookfabric, which hosts bring along, has HookEvent, HookResult and HookType;
// code written for MassGen imports massgen.mcp_tools.hooks, which stands in for
// the real one where that is not installed.
//
// A function, or an object that can be called, with an attribute `condition` is
// called only where that is true: a function of the event too, or a coroutine
// function, which the decorator hookfabric.hook sets. Elsewhere the hook has no opinion.
// A condition that raises an exception counts as true, and the answer's
// hook_errors say so; the time it takes is the hook's, and one that ends the
// process has left the hook without an answer.
//
// hookfabric.handle puts a hook together of a condition, effects, a value and a
// decision, which come in that order; the first three may be functions and coroutine
// functions. The agent is elsewhere: effects are what such a function
// returns, as append_message, set_flag and drop_messages make them, and one that
// returns nothing changes nothing of the agent. Values chain: each hook of an event
// sees what those before it made of it. A value that comes to what was
// there is none; any other is a rewrite, for which a hook must not be readonly.
//
// Modules are looked up in the hooks' folders, in order, and then where the
// interpreter looks; never in the folder that the worker happens to run in. A
// host reads a module once: changed code counts from the next host on, so
// restart the worker for it. If it can not be imported there, calls are denied as
// those of a function that never could. The environment is that of programs: PATH, HOME,
// LANG and what the hook's `env:` names. The standard input is empty; what is
// printed goes to the log, at debug level.
//
// # How many calls a host takes at once
//
// One, which has the host for itself. That alone makes it true that a call
// that hangs ends with its host and disturbs no other one.
//
// Coroutine functions of hooks that are idempotent share a host, up to 64
// calls, because each of them may be run again: if the host is lost or has no
// memory left, or its event loop does not answer for a second as somebody blocks
// it, they run once more, each in a host of its own. A function that blocks the loop there
// too is said so in the log and shares no more. A coroutine is cancelled at its
// deadline; only if that is not confirmed at once is its host killed. One that
// leaves threads behind when it is cancelled has its host replaced.
//
// # How many hosts there are
//
// As many as the configuration says that do not sit in a call for longer than
// a moment. Others are added beside hosts whose calls take long or hang, up to
// sixteen times that number and at most 64, and are kept for a while, so that
// there are spare hosts when calls hang now and then. Calls for which there is
// no host wait in order, within their deadlines.
//
// # How long a host lives
//
// Until the last hook that needs it is gone, it is killed with the call that
// hangs in it, it ran out of memory or has served as many calls as it may. It
// leads a process group, see [child.Process], and ends when its pipe does.
//
// Start with runner.go, then handler.go (one call), pool.go (which host takes
// it), grow.go (how many there are), host.go (one process) and
// hookfabric/_host.py (what runs there).
package python
