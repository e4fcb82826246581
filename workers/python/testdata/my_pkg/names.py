"""Every name that MassGen's guides use of its hooks, in hooks of the fabric."""
import asyncio
import json
import time

from massgen.mcp_tools.hooks import (
    BackgroundToolCompleteHook,
    GeneralHookManager,
    HighPriorityTaskReminderHook,
    HookEvent,
    HookResult,
    HookType,
    HumanInputHook,
    MidStreamInjectionHook,
    PatternHook,
    PermissionClientSession,
    PythonCallableHook,
    RoundTimeoutPostHook,
    RoundTimeoutPreHook,
    RoundTimeoutState,
    SubagentCompleteHook,
)

reminder = HighPriorityTaskReminderHook()
updates = MidStreamInjectionHook()
updates.set_callback(lambda: "agent2 has a new answer")


def guard(event: HookEvent) -> HookResult:
    return HookResult.deny("not with " + event.tool_name) if event.tool_name == "Delete" else HookResult.allow()


manager = GeneralHookManager()
manager.register_global_hook(HookType.PRE_TOOL_USE, PythonCallableHook("guard", guard))
manager.register_agent_hook("agent-1", HookType.POST_TOOL_USE, updates, override=True)


def checks(event):
    assert HookType("BEFORE_TOOL_EXECUTION") is HookType.PRE_TOOL_USE and HookType("Stop") is HookType.BEFORE_FINAL_RESPONSE
    asyncio.run(_checks())
    try:
        from massgen.mcp_tools.hooks import NoSuchHook
    except ImportError as missing:
        return HookResult.deny(str(missing))


async def _checks():
    context = {"agent_id": "a"}

    async def content(hook, tool="Bash", **more):
        result = await hook.execute(tool, "{}", dict(context, **more))
        return (result.inject or {}).get("content", ""), (result.inject or {}).get("strategy")

    done = json.dumps({"task": {"priority": "high", "status": "completed"}})
    text, strategy = await content(reminder, "mcp__plan__update_task_status", tool_output=done)
    assert "SYSTEM REMINDER" in text and strategy == "user_message", text
    assert (await content(reminder, "Bash", tool_output=done))[0] == "" and (await content(reminder, "update_task_status", tool_output="{"))[0] == ""

    people = HumanInputHook()
    people.set_pending_input("stop", target_agents=["a"])
    assert people.has_pending_input() and (await content(people))[0] == "\n[Human Input]: stop\n"
    assert (await content(people))[0] == "" and not people.has_pending_input()

    async def results():
        return [("s1", {"status": "completed", "answer": "42"}), ("s2", {"status": "failed", "error": "no"})]

    text, strategy = await content(SubagentCompleteHook(get_pending_results=results, injection_strategy="user_message"))
    assert "(2 completed)" in text and "42" in text and "Error: no" in text and strategy == "user_message", text
    text, _ = await content(BackgroundToolCompleteHook(get_completed_jobs=lambda: [{"job_id": "j", "tool_name": "build", "result": "x" * 700}]))
    assert "- [j] build (completed)" in text and "x" * 600 + "..." in text and "x" * 601 not in text, text

    state = RoundTimeoutState()
    ends = ("end", lambda: time.time() - 100, lambda: 0, 60, 30, 10, "a", state)
    soft, hard = RoundTimeoutPostHook(*ends), RoundTimeoutPreHook(*ends)
    assert (await hard.execute("Bash", "{}")).allowed  # never before the warning
    assert "TIME LIMIT" in (await content(soft))[0] and (await content(soft))[0] == ""
    state.soft_timeout_fired_at -= 60
    for _ in range(RoundTimeoutState.MAX_CONSECUTIVE_DENIALS):
        assert not (await hard.execute("Bash", "{}")).allowed
    assert state.force_terminate and (await hard.execute("mcp__massgen__vote", "{}")).allowed
    soft.reset_for_new_round()
    assert state.soft_timeout_fired_at is None and not state.force_terminate

    class Session:
        url = "here"

        async def call_tool(self, name, arguments=None):
            return name

    class Permissions:
        async def pre_tool_use_hook(self, name, arguments):
            return name != "rm", "never"

    session = PermissionClientSession(Session(), Permissions())
    refused = await session.call_tool("rm", {})
    assert refused.isError and refused.content[0].text == "Error: Permission denied for tool 'rm': never"
    assert await session.call_tool("ls", {}) == "ls" and session.url == "here"

    flat = GeneralHookManager()
    flat.register_hooks_from_config([{"type": "PreToolUse", "callable": "my_pkg.names.guard", "matcher": "Delete"}])
    assert not (await flat.execute_hooks(HookType.PRE_TOOL_USE, "Delete", "{}")).allowed
    assert issubclass(PythonCallableHook, PatternHook)
