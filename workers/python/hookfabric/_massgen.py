"""massgen.mcp_tools.hooks for code that was written for MassGen, where MassGen
itself is not installed: the same names with the same meaning, so that such code
imports and runs. What runs hooks for agents is the fabric, not what is here."""

import asyncio
import fnmatch
import json

from hookfabric import HookEvent, HookResult, HookType

__all__ = ["GeneralHookManager", "HookEvent", "HookResult", "HookType", "PatternHook", "PythonCallableHook"]


class PatternHook:
    """Something that is asked about the tools whose names match."""

    def __init__(self, name, matcher="*", timeout=30.0, fail_closed=False):
        self.name = name
        self.matcher = matcher or "*"
        self.timeout = timeout
        self.fail_closed = fail_closed

    def matches(self, function_name):
        patterns = [p.strip() for p in self.matcher.split("|")]
        return any(fnmatch.fnmatchcase(function_name, p) for p in patterns if p)

    async def execute(self, function_name, arguments, context=None, **more):
        raise NotImplementedError("a hook says in execute what it answers")


class PythonCallableHook(PatternHook):
    """A function, or the dotted name of one, as a hook."""

    def __init__(self, name, handler, matcher="*", timeout=30.0, fail_closed=False):
        super().__init__(name, matcher, timeout, fail_closed)
        self.handler = handler

    async def execute(self, function_name, arguments, context=None, **more):
        if not self.matches(function_name):
            return HookResult.allow()
        try:
            handler = self._function()
        except Exception as fault:
            return HookResult.deny("Hook import failed: %s" % fault)
        event = _event(function_name, arguments, dict(context or {}, **more))
        try:
            return _result(await asyncio.wait_for(_call(handler, event), self.timeout))
        except asyncio.TimeoutError:
            return self._failed("Hook %s timed out" % self.name)
        except Exception as fault:
            return self._failed("Hook %s failed: %s" % (self.name, fault))

    async def __call__(self, event):
        """Answers as the hook of a configuration that names this object."""
        return await _call(self._function(), event)

    def _function(self):
        if isinstance(self.handler, str):
            from importlib import import_module

            module, _, name = self.handler.rpartition(".")
            self.handler = getattr(import_module(module), name)
        return self.handler

    def _failed(self, what):
        if self.fail_closed:
            return HookResult.deny(what)
        return HookResult(hook_errors=[what])


class GeneralHookManager:
    """Keeps hooks and asks those that match, in order, until one denies."""

    def __init__(self):
        self._global = {}
        self._agents = {}
        self._overrides = set()

    def register_global_hook(self, hook_type, hook):
        self._global.setdefault(HookType(hook_type), []).append(hook)

    def register_agent_hook(self, agent_id, hook_type, hook, override=False):
        key = agent_id, HookType(hook_type)
        self._agents.setdefault(key, []).append(hook)
        if override:
            self._overrides.add(key)

    def get_hooks_for_agent(self, agent_id, hook_type):
        key = agent_id, HookType(hook_type)
        first = [] if key in self._overrides else self._global.get(key[1], [])
        return first + self._agents.get(key, [])

    async def execute_hooks(self, hook_type, function_name, arguments, context=None, tool_output=None):
        context = dict(context or {}, hook_type=HookType(hook_type).value)
        if tool_output is not None:
            context["tool_output"] = tool_output
        whole, contents = HookResult.allow(), []
        for hook in self.get_hooks_for_agent(context.get("agent_id"), hook_type):
            if not hook.matches(function_name):
                continue
            result = await hook.execute(function_name, arguments, context)
            whole.hook_errors += result.hook_errors or []
            if not result.allowed or result.decision == "deny":
                return HookResult.deny(result.reason, hook_errors=whole.hook_errors)
            if result.decision == "ask":
                whole.decision, whole.reason = "ask", result.reason
            if result.modified_args is not None or result.updated_input is not None:
                arguments = result.modified_args or json.dumps(result.updated_input)
                whole.modified_args = arguments
            if result.inject and result.inject.get("content"):
                contents.append(result.inject["content"])
                strategy = result.inject.get("strategy", "tool_result")
                whole.inject = {"content": "\n".join(contents), "strategy": strategy}
        return whole


async def _call(handler, event):
    """Asks handler; one that is no coroutine function runs in a thread."""
    if asyncio.iscoroutinefunction(handler) or asyncio.iscoroutinefunction(getattr(handler, "__call__", None)):
        return await handler(event)
    answer = await asyncio.get_running_loop().run_in_executor(None, handler, event)
    return await answer if hasattr(answer, "__await__") else answer


def _event(function_name, arguments, context):
    """The event that a call of a tool stands for. What is no JSON is kept as raw text."""
    try:
        tool_input = json.loads(arguments) if arguments else {}
    except ValueError:
        tool_input = {"raw": arguments}
    from datetime import datetime, timezone

    return HookEvent(
        context.get("hook_type", "PreToolUse"), context.get("session_id", ""), context.get("orchestrator_id", ""),
        context.get("agent_id"), datetime.now(timezone.utc), function_name, tool_input, context.get("tool_output"),
    )


def _result(answer):
    if answer is None:
        return HookResult.allow()
    if isinstance(answer, dict):
        answer = HookResult.from_dict(answer)
    elif not (hasattr(answer, "allowed") or hasattr(answer, "decision")):
        raise TypeError("a hook answers with a HookResult, a dict or None, not %s" % type(answer).__name__)
    decision = getattr(answer, "decision", None)
    if decision == "block":
        return HookResult.deny(answer.reason)
    if decision not in (None, "allow", "approve", "ask", "continue", "deny"):
        raise ValueError("the decision %r is unknown; write allow, ask or deny" % (decision,))
    return answer
