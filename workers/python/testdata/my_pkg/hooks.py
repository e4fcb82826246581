"""Hooks as people have them who wrote them for MassGen."""
import asyncio
import json

from massgen.mcp_tools.hooks import (
    GeneralHookManager,
    HookEvent,
    HookResult,
    HookType,
    PythonCallableHook,
)


def my_audit_hook(event: HookEvent) -> HookResult:
    """Log all tool calls for auditing."""
    print(f"Tool called: {event.tool_name}")
    print(f"Arguments: {event.tool_input}")
    return HookResult.allow()


# Register the hook
manager = GeneralHookManager()
hook = PythonCallableHook("audit", my_audit_hook, matcher="*")
manager.register_global_hook(HookType.PRE_TOOL_USE, hook)


def validate_writes(event):
    if event.tool_input.get("path", "").startswith("/etc/"):
        return HookResult.deny(reason="no writes to " + event.tool_input["path"])
    return HookResult.allow()


async def log_outputs(event: HookEvent) -> HookResult:
    await asyncio.sleep(0)
    return HookResult(inject={"content": "seen: %s" % event.tool_output, "strategy": "user_message"})


validator = PythonCallableHook("validate", validate_writes, matcher="Write|Edit")


def checks(event):
    """What the classes promise, asked as their users do."""
    result = HookResult(allowed=False, reason="r")
    assert result.decision == "deny" and HookResult(decision="deny").allowed is False
    assert HookResult().decision == "allow" and HookResult.allow().allowed
    assert HookResult.ask("why").decision == "ask" and HookResult.ask("why").allowed
    assert HookResult.from_dict(result.to_dict()) == result
    assert HookResult.from_dict({"allowed": None}).decision == "deny" and HookResult.from_dict({}).allowed
    misspelt = [{"desicion": "deny", name: value} for name, value in {"reason": "no", "metadata": {}, "stopReason": "no", "systemMessage": "no", "executed_hooks": []}.items()]
    for answer in misspelt + [{"desicion": "deny"}, {"hookSpecificOutput": {"permissionDecision": "deny"}}]:
        try:
            raise AssertionError("read as %r" % HookResult.from_dict(answer))
        except ValueError:
            pass
    assert HookResult.from_dict({"executed_hooks": []}).executed_hooks == []
    assert HookResult.from_dict({"reason": "seen"}).reason == "seen" and HookResult.from_dict({"decision": "ask", "rule": 7}).decision == "ask"
    assert HookType.PRE_TOOL_USE.value == "PreToolUse" and HookType("pre_call") is HookType.PRE_CALL

    def slow(event):
        raise RuntimeError("broken")

    async def run():
        arguments = json.dumps({"path": "/etc/passwd"})
        denied = await validator.execute("Write", arguments, {"agent_id": "a"})
        assert denied.decision == "deny" and denied.reason == "no writes to /etc/passwd", denied
        assert (await validator.execute("Read", arguments)).decision == "allow"
        assert (await PythonCallableHook("h", "my_pkg.hooks.validate_writes").execute("Write", arguments)).decision == "deny"
        assert (await PythonCallableHook("h", "no_such.module").execute("Write", "")).decision == "deny"
        late = PythonCallableHook("h", lambda event: asyncio.sleep(60), timeout=0.01)
        assert (await late.execute("x", "")).hook_errors == ["Hook h timed out"]
        failing = await PythonCallableHook("h", slow).execute("x", "{}")
        assert failing.allowed and failing.hook_errors == ["Hook h failed: broken"], failing
        assert (await PythonCallableHook("h", slow, fail_closed=True).execute("x", "{}")).reason == "Hook h failed: broken"
        for said, decision, errors in (
            ("block", "deny", []),
            ("continue", "continue", []),
            ("DENY", "allow", ["Hook h failed: the decision 'DENY' is unknown; write allow, ask or deny"]),
        ):
            told = await PythonCallableHook("h", lambda event: {"decision": said}).execute("x", "{}")
            assert (told.decision, told.hook_errors) == (decision, errors), told
        strict = PythonCallableHook("h", lambda event: {"decision": "DENY"}, fail_closed=True)
        assert (await strict.execute("x", "{}")).decision == "deny"
        manager.register_agent_hook("a", HookType.PRE_TOOL_USE, validator)
        whole = await manager.execute_hooks(HookType.PRE_TOOL_USE, "Write", arguments, {"agent_id": "a"})
        assert whole.decision == "deny", whole
        assert (await manager.execute_hooks(HookType.PRE_TOOL_USE, "Write", arguments)).decision == "allow"

    asyncio.run(run())
    return HookResult.deny("all as it was")
