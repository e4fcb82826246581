"""MassGen's own hooks, for programs that run hooks themselves with GeneralHookManager.execute_hooks. Agents of the fabric
use the fabric's built-in hooks of the same names, which deliver what waits in its queue."""

import inspect
import json
import threading
import time

from massgen.mcp_tools.hooks import HookResult, PatternHook

LINE = "=" * 60
MOST_RESULT = 600  # characters of a background tool's result
TERMINAL = ("vote", "new_answer")


class BuiltinHook(PatternHook):
    """A hook that the fabric has as a built-in hook. builtin is its name there."""

    builtin = ""

    def _entry(self):
        entry = {"type": "builtin", "handler": self.builtin}
        return entry if self.matcher == "*" else dict(entry, matcher=self.matcher)

    async def __call__(self, event):
        """Answer as a hook, if a configuration names this object as the handler."""
        return await self.execute(event.tool_name, json.dumps(event.tool_input), dict(event))

    async def execute(self, function_name, arguments, context=None, **more):
        if not self.matches(function_name):
            return HookResult.allow()
        try:
            return await self._answer(function_name, dict(context or {}, **more)) or HookResult.allow()
        except Exception as fault:
            what = "Hook %s failed: %s" % (self.name, fault)
            return HookResult.deny(what) if self.fail_closed else HookResult(hook_errors=[what])

    async def _answer(self, function_name, context):
        raise NotImplementedError


def _inject(content, strategy="tool_result"):
    return HookResult(inject={"content": content, "strategy": strategy}) if content else None


async def _asked(function, *arguments):
    answer = function(*arguments) if function else None
    return await answer if inspect.isawaitable(answer) else answer


def _framed(title, lines):
    return "\n".join(["", LINE, title, LINE, "", *lines, LINE, ""])


class MidStreamInjectionHook(BuiltinHook):
    """Injects the callback's text into the tool's result."""

    builtin = "mid_stream_injection"

    def __init__(self, name="mid_stream_injection", injection_callback=None, matcher="*", timeout=5):
        super().__init__(name, matcher, timeout)
        self._callback = injection_callback

    def set_callback(self, callback):
        self._callback = callback

    async def _answer(self, function_name, context):
        return _inject(await _asked(self._callback))


class HighPriorityTaskReminderHook(BuiltinHook):
    """Injects a reminder when a task of high priority is completed."""

    builtin = "high_priority_task_reminder"

    def __init__(self, name="high_priority_task_reminder", matcher="*update_task_status", timeout=5):
        super().__init__(name, matcher, timeout)

    async def _answer(self, function_name, context):
        output = context.get("tool_output")
        try:
            task = (json.loads(output) if isinstance(output, str) else output or {}).get("task") or {}
        except (ValueError, AttributeError):
            return None
        if (task.get("priority"), task.get("status")) != ("high", "completed"):
            return None
        return _inject(_framed("SYSTEM REMINDER", ["A task of high priority is completed. Write down what you learned, to do better later:",
                                                   "what helped and what did not, which approach worked and why, and what the user prefers.", ""]), "user_message")


class HumanInputHook(BuiltinHook):
    """Injects input of people, once for each agent."""

    builtin = "human_input"

    def __init__(self, name="human_input_hook", matcher="*", timeout=5):
        super().__init__(name, matcher, timeout)
        self._lock = threading.Lock()
        self._waiting = []  # (content, its target agents or None for all, the agents that have it)
        self._callback = None

    def set_pending_input(self, content, target_agents=None):
        with self._lock:
            self._waiting.append((content, None if target_agents is None else set(target_agents), set()))

    def has_pending_input(self):
        return bool(self._waiting)

    def clear_pending_input(self):
        with self._lock:
            self._waiting.clear()

    def set_inject_callback(self, callback):
        self._callback = callback

    async def _answer(self, function_name, context):
        agent = context.get("agent_id") or "unknown"
        with self._lock:
            due = [one for one in self._waiting if agent not in one[2] and (one[1] is None or agent in one[1])]
            for one in due:
                one[2].add(agent)
            self._waiting = [one for one in self._waiting if one[1] is None or one[1] - one[2]]
        if not due:
            return None
        content = "\n".join(one[0] for one in due)
        await _asked(self._callback, content)
        return _inject("\n[Human Input]: %s\n" % content)


class SubagentCompleteHook(BuiltinHook):
    """Injects results of subagents. get_pending_results returns pairs of an id and a result, a dict or an object."""

    builtin = "subagent_complete"

    def __init__(self, name="subagent_complete", get_pending_results=None, injection_strategy="tool_result", matcher="*", timeout=5):
        super().__init__(name, matcher, timeout)
        self.get_pending_results, self.injection_strategy = get_pending_results, injection_strategy

    async def _answer(self, function_name, context):
        results = await _asked(self.get_pending_results) or []
        lines = ['<subagent_result id="%s" status="%s">\n%s\n</subagent_result>' % (
            name, _of(result, "status") or "completed",
            _of(result, "answer") or (_of(result, "error") and "Error: %s" % _of(result, "error")) or "No output") for name, result in results]
        return _inject(_framed("BACKGROUND SUBAGENT RESULTS (%d completed)" % len(lines), lines) if lines else "", self.injection_strategy)


class BackgroundToolCompleteHook(BuiltinHook):
    """Injects results of tools that ran in the background."""

    builtin = "background_tool_complete"

    def __init__(self, name="background_tool_complete", get_completed_jobs=None, injection_strategy="tool_result", matcher="*", timeout=5):
        super().__init__(name, matcher, timeout)
        self.get_completed_jobs, self.injection_strategy = get_completed_jobs, injection_strategy

    async def _answer(self, function_name, context):
        lines = []
        for job in await _asked(self.get_completed_jobs) or []:
            text = str(_of(job, "result") or "")
            lines.append("- [%s] %s (%s)" % (_of(job, "job_id") or "unknown", _of(job, "tool_name") or "unknown_tool", _of(job, "status") or "completed"))
            lines.append("  Error: %s" % _of(job, "error") if _of(job, "error") else "  Result: %s" % (text[:MOST_RESULT] + "..." if len(text) > MOST_RESULT else text))
        return _inject(_framed("BACKGROUND TOOL RESULTS", lines) if lines else "", self.injection_strategy)


def _of(thing, name):
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


class RoundTimeoutState:
    """The state that the two hooks for a round's end share."""

    MAX_CONSECUTIVE_DENIALS = 10

    def __init__(self):
        self.reset()

    def reset(self):
        self.soft_timeout_fired_at = None
        self.consecutive_hard_denials = 0
        self.force_terminate = False

    def record_soft_timeout_fired(self):
        self.soft_timeout_fired_at = time.time()

    def record_hard_denial(self):
        self.consecutive_hard_denials += 1
        self.force_terminate = self.force_terminate or self.consecutive_hard_denials >= self.MAX_CONSECUTIVE_DENIALS
        return self.force_terminate

    def reset_denial_count(self):
        self.consecutive_hard_denials = 0


class _RoundHook(BuiltinHook):
    def __init__(self, name, get_round_start_time, get_agent_round, initial_timeout_seconds, subsequent_timeout_seconds, grace_seconds,
                 agent_id, shared_state=None, **more):
        super().__init__(name, "*", 5)
        self.get_round_start_time, self.get_agent_round = get_round_start_time, get_agent_round
        self.initial_timeout_seconds, self.subsequent_timeout_seconds = initial_timeout_seconds, subsequent_timeout_seconds
        self.grace_seconds, self.agent_id = grace_seconds, agent_id
        self.shared_state = RoundTimeoutState() if shared_state is None else shared_state

    def _limit(self):
        return self.initial_timeout_seconds if self.get_agent_round() == 0 else self.subsequent_timeout_seconds

    def reset_for_new_round(self):
        self.shared_state.reset()


class RoundTimeoutPostHook(_RoundHook):
    """Injects one warning when a round's time is over."""

    builtin = "round_timeout_post"

    async def _answer(self, function_name, context):
        limit, elapsed = self._limit(), time.time() - self.get_round_start_time()
        if limit is None or elapsed < limit or self.shared_state.soft_timeout_fired_at is not None:
            return None
        self.shared_state.record_soft_timeout_fired()
        return _inject(_framed("ROUND TIME LIMIT REACHED (%.0fs of %.0fs)" % (elapsed, limit),
                               ["Call `vote` or `new_answer` now. Other tools are refused in %.0f seconds." % self.grace_seconds, ""]))


class RoundTimeoutPreHook(_RoundHook):
    """Denies tools that do not end a round, after the warning and the grace period."""

    builtin = "round_timeout_pre"

    async def _answer(self, function_name, context):
        state = self.shared_state
        since = None if state.soft_timeout_fired_at is None else time.time() - state.soft_timeout_fired_at
        if self._limit() is None or since is None or since < self.grace_seconds or function_name.split("__")[-1] in TERMINAL:
            state.reset_denial_count()
            return None
        state.record_hard_denial()
        return HookResult.deny("the round's time is over (refused call %d): only `vote` and `new_answer` may be called; the turn ends after %d refused calls" % (
            state.consecutive_hard_denials, state.MAX_CONSECUTIVE_DENIALS))


class PermissionClientSession:
    """Wraps a session with an MCP server. Before each call it asks permission_manager.pre_tool_use_hook(name, arguments). All
    other attributes are those of the session."""

    def __init__(self, wrapped_session, permission_manager):
        self._session, self._permissions = wrapped_session, permission_manager

    def __getattr__(self, name):
        return getattr(self._session, name)

    async def call_tool(self, name, arguments=None, *others, **more):
        try:
            allowed, why = await _asked(self._permissions.pre_tool_use_hook, name, arguments or {})
        except Exception as fault:
            return _refused("Permission check failed: %s" % fault)
        if not allowed:
            return _refused("Permission denied for tool '%s'%s" % (name, ": %s" % why if why else ""))
        return await self._session.call_tool(name, arguments, *others, **more)


def _refused(why):
    try:
        from mcp.types import CallToolResult, TextContent
    except ImportError:
        from types import SimpleNamespace as CallToolResult

        TextContent = CallToolResult
    return CallToolResult(content=[TextContent(type="text", text="Error: " + why)], isError=True)
