"""A stand-in for massgen.mcp_tools.hooks, for code that was written for MassGen. It
has the same names with the same meaning, so that such code runs where MassGen is not
installed. The fabric runs the hooks: a program that registers a hook here registers
it in the fabric."""

import asyncio
import fnmatch
import json
import os
import subprocess
import sys

from hookfabric import HookEvent, HookResult, HookType

BUILTINS = (
    "BackgroundToolCompleteHook", "HighPriorityTaskReminderHook", "HumanInputHook", "MidStreamInjectionHook", "PermissionClientSession",
    "RoundTimeoutPostHook", "RoundTimeoutPreHook", "RoundTimeoutState", "SubagentCompleteHook",
)
__all__ = ["GeneralHookManager", "HookEvent", "HookResult", "HookType", "PatternHook", "PythonCallableHook", *BUILTINS]

# True in a process that runs hooks for the fabric. It gets this module from its worker, and does not register hooks.
IN_A_WORKER = type(__loader__).__name__ == "Embedded"


def __getattr__(name):
    if name in BUILTINS:
        from massgen.mcp_tools import _builtins

        return getattr(_builtins, name)
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError("the stand-in for massgen.mcp_tools.hooks that comes with hookfabric has no %s; it has %s" % (name, ", ".join(__all__)))


class PatternHook:
    """A hook for the tools whose names match."""

    def __init__(self, name, matcher="*", timeout=30.0, fail_closed=False):
        self.name = name
        self.matcher = matcher or "*"
        self.timeout = timeout
        self.fail_closed = fail_closed

    def matches(self, function_name):
        patterns = [p.strip() for p in self.matcher.split("|")]
        return any(fnmatch.fnmatchcase(function_name, p) for p in patterns if p)

    async def execute(self, function_name, arguments, context=None, **more):
        raise NotImplementedError("a subclass of PatternHook must implement execute")

    def _entry(self):
        """Return the hook in the form of the fabric's configuration."""
        raise TypeError("the hook %r is an object of this process, which the fabric cannot call; register a PythonCallableHook with a function of a module" % self.name)

    def _failed(self, what):
        if self.fail_closed:
            return HookResult.deny(what)
        return HookResult(hook_errors=[what])


class PythonCallableHook(PatternHook):
    """A hook made of a function, or of its dotted name."""

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
            return _result(await asyncio.wait_for(_call(handler, event), self.timeout), event.hook_type)
        except asyncio.TimeoutError:
            return self._failed("Hook %s timed out" % self.name)
        except Exception as fault:
            return self._failed("Hook %s failed: %s" % (self.name, fault))

    async def __call__(self, event):
        """Answer as a hook, if a configuration names this object as the handler."""
        return await _call(self._function(), event)

    def _entry(self):
        return {"name": self.name, "type": "python", "handler": self.handler if isinstance(self.handler, str) else _path(self.handler),
                "matcher": self.matcher, "timeout": self.timeout, "fail_closed": self.fail_closed}

    def _function(self):
        if isinstance(self.handler, str):
            from importlib import import_module

            module, _, name = self.handler.rpartition(".")
            self.handler = getattr(import_module(module), name)
        return self.handler


class GeneralHookManager:
    """Registers hooks in the fabric. execute_hooks runs the matching hooks in this process, in order, until one denies.

    The manager runs the command `broker hooks register` with the environment of this process. HOOKFABRIC_NATS is the fabric's URL,
    HOOKFABRIC_CREDS the credentials file, and HOOKFABRIC_BROKER the program if `broker` is not on the PATH. Workers load a function by
    its name: put its module into the folder of the configuration or into python_path. If the command fails, it registers nothing, and
    the manager raises RuntimeError. As the handler of a configuration, a manager combines the answers of all its hooks.
    """

    def __init__(self):
        self._global = {}
        self._agents = {}
        self._overrides = set()

    def register_global_hook(self, hook_type, hook):
        _register("", {_event_of(hook_type): [hook]})
        self._global.setdefault(HookType(hook_type), []).append(hook)

    def register_agent_hook(self, agent_id, hook_type, hook, override=False):
        _register(agent_id, {_event_of(hook_type): [hook]}, override)
        key = agent_id, HookType(hook_type)
        self._agents.setdefault(key, []).append(hook)
        if override:
            self._overrides.add(key)

    def register_hooks_from_config(self, hooks_config, agent_id=None):
        """Register the hooks of a configuration: its part below `hooks:`, as events with their hooks or as a flat list."""
        if isinstance(hooks_config, dict) and "hooks" in hooks_config:
            hooks_config = hooks_config["hooks"]
        if not IN_A_WORKER:
            _told(agent_id or "", hooks_config)
        for event, entries, override in _sections(hooks_config):
            for entry in entries:
                handler = entry.get("handler") or entry.get("callable")
                if entry.get("type", "python") == "command" or not handler:
                    continue  # only the fabric runs programs
                hook = PythonCallableHook(entry.get("name") or handler, handler, entry.get("matcher", "*"), entry.get("timeout", 30.0), entry.get("fail_closed", False))
                key = agent_id, HookType(event)
                (self._global.setdefault(key[1], []) if agent_id is None else self._agents.setdefault(key, [])).append(hook)
                if override and agent_id is not None:
                    self._overrides.add(key)

    async def __call__(self, event):
        """Answer as a hook, if a configuration names this object as the handler."""
        return await self.execute_hooks(event.hook_type, event.tool_name, json.dumps(event.tool_input), dict(event))

    def get_hooks_for_agent(self, agent_id, hook_type):
        key = agent_id, HookType(hook_type)
        first = [] if key in self._overrides else self._global.get(key[1], [])
        return first + self._agents.get(key, [])

    async def execute_hooks(self, hook_type, function_name, arguments, context=None, tool_output=None):
        """Run the matching hooks and combine their answers. A fail, and a stop before the tool, become a deny, because MassGen lacks
        these decisions.

        After the tool, updated_output has the output that a hook replaced; MassGen's own result lacks this field. hook_errors names
        other fields that the combined result cannot carry.
        """
        context = dict(context or {}, hook_type=HookType(hook_type).value)
        if tool_output is not None:
            context["tool_output"] = tool_output
        whole, contents = HookResult.allow(), []
        for hook in self.get_hooks_for_agent(context.get("agent_id"), hook_type):
            if not hook.matches(function_name):
                continue
            try:
                result = _result(await hook.execute(function_name, arguments, context), hook_type)
            except Exception as fault:
                result = hook._failed("Hook %s failed: %s" % (hook.name, fault))
            dropped = _dropped(hook, result, hook_type)
            whole.hook_errors += (result.hook_errors or []) + dropped
            if not result.allowed or dropped and hook.fail_closed:
                return HookResult.deny(result.reason if not result.allowed else dropped[0], hook_errors=whole.hook_errors)
            if result.decision == "ask":
                whole.decision, whole.reason = "ask", result.reason
            if result.modified_args is not None or result.updated_input is not None:
                arguments = result.modified_args or json.dumps(result.updated_input)
                whole.modified_args = arguments
            for inject in [result.inject, *(result.injections or [])]:
                if inject and inject.get("content"):
                    contents.append(inject["content"])
                    whole.inject = {"content": "\n".join(contents), "strategy": inject.get("strategy", "tool_result")}
            if _is_after(hook_type) and result.updated_output is not None:
                whole.updated_output = context["tool_output"] = result.updated_output
            if result.decision == "stop":
                break
        return whole


def _event_of(hook_type):
    """Return the fabric's name of an event."""
    name = HookType(hook_type).value
    return {"pre_call": "PreToolUse", "post_call": "PostToolUse"}.get(name, name)


def _path(function):
    """Return the dotted name by which a worker finds a function."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module == "__main__":
        main = sys.modules["__main__"]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec else os.path.splitext(os.path.basename(file))[0] if file else None
    if not module or not name or "<" in name:
        raise TypeError("%r is not a function of a module, so workers cannot import it; write a function at the top level of a module" % (function,))
    return module + "." + name


def _sections(config):
    """Yield the events of a configuration, each with its hooks and whether they override the global ones."""
    if isinstance(config, list):
        for entry in config:
            entry = dict(entry)
            yield entry.pop("type"), [entry], False
        return
    for event, section in config.items():
        override = isinstance(section, dict) and bool(section.get("override"))
        yield event, section.get("hooks") or [] if isinstance(section, dict) else section, override


def _register(agent_id, events, override=False):
    """Register hooks in the fabric. In a process that runs hooks for the fabric this does nothing, because the configuration names the hooks."""
    if IN_A_WORKER:
        return
    told = {event: [hook._entry() for hook in hooks] for event, hooks in events.items()}
    _told(agent_id, {event: {"override": True, "hooks": hooks} for event, hooks in told.items()} if override else told)


def _told(agent_id, hooks):
    argv = [os.environ.get("HOOKFABRIC_BROKER") or "broker", "hooks", "register", "-"] + (["--agent", agent_id] if agent_id else [])
    try:
        done = subprocess.run(argv, input=json.dumps(hooks), capture_output=True, text=True, timeout=90)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise RuntimeError("the hook is not registered: %s; put the program broker on the PATH, or set HOOKFABRIC_BROKER to its path" % fault) from None
    if done.returncode != 0:
        raise RuntimeError("the hook is not registered: " + (done.stderr.strip() or "%s ended with exit code %d" % (argv[0], done.returncode)))


async def _call(handler, event):
    """Call handler. A sync function runs in a thread."""
    if asyncio.iscoroutinefunction(handler) or asyncio.iscoroutinefunction(getattr(handler, "__call__", None)):
        return await handler(event)
    answer = await asyncio.get_running_loop().run_in_executor(None, handler, event)
    return await answer if hasattr(answer, "__await__") else answer


def _event(function_name, arguments, context):
    """Make the event of a tool call. Arguments that are not JSON become {"raw": arguments}."""
    try:
        tool_input = json.loads(arguments) if arguments else {}
    except ValueError:
        tool_input = {"raw": arguments}
    from datetime import datetime, timezone

    return HookEvent(
        context.get("hook_type", "PreToolUse"), context.get("session_id", ""), context.get("orchestrator_id", ""),
        context.get("agent_id"), datetime.now(timezone.utc), function_name, tool_input, context.get("tool_output"),
    )


def _result(answer, hook_type):
    """Convert a hook's answer to MassGen's decisions. After a tool, a stop stays, with its value as the new output."""
    if answer is None:
        return HookResult.allow()
    if isinstance(answer, dict):
        answer = HookResult.from_dict(answer)
    elif not isinstance(answer, HookResult):
        if not (hasattr(answer, "allowed") or hasattr(answer, "decision")):
            raise TypeError("the hook answered with a value of the type %s; return a HookResult, a dict or None" % type(answer).__name__)
        answer = HookResult(**{name: getattr(answer, name) for name in HookResult._fields if hasattr(answer, name)})
    decision = answer.decision
    if decision == "stop" and _is_after(hook_type):
        return HookResult(decision="stop", updated_output=answer.updated_output if answer.value is None else answer.value,
                          inject=answer.inject, injections=answer.injections, effects=answer.effects, hook_errors=answer.hook_errors)
    if not answer.allowed or decision in ("block", "deny", "fail", "reject", "stop"):
        reason = answer.reason or (answer.metadata.get("reason") if isinstance(answer.metadata, dict) else None)
        if decision == "stop" and not reason and answer.value is not None:
            reason = answer.value if isinstance(answer.value, str) else json.dumps(answer.value, default=str)
        return HookResult.deny(reason, hook_errors=answer.hook_errors)
    if decision not in (None, "allow", "approve", "ask", "continue"):
        raise ValueError("the decision %r is unknown; write allow, ask or deny" % (decision,))
    return answer


def _is_after(hook_type):
    return _event_of(hook_type) in ("PostToolUse", "ToolError")


def _dropped(hook, result, hook_type):
    """Return an error for each field of an answer that the combined result cannot carry."""
    names = ["value", "effects"] if _is_after(hook_type) else ["value", "effects", "updated_output"]
    return ["Hook %s: execute_hooks drops %s, which it cannot apply at %s" % (hook.name, name, _event_of(hook_type))
            for name in names if getattr(result, name) is not None]
