"""Hooks with type hints, for the type checker (`make types`)."""

from hookfabric import HookEvent, HookResult, append_message, handle, hook


@hook(lambda event: event.tool_name == "Bash")
def checks(event: HookEvent) -> HookResult:
    if "rm" in str(event.tool_input.get("command")):
        return HookResult.deny("no deletes")
    return HookResult.allow()


async def awaits(event: HookEvent) -> dict[str, str]:
    return {"decision": "deny", "reason": event.history[-1].content}


retries = handle(
    "retry",
    condition=lambda event: "sure" not in event.assistant_message.content,
    effects=[append_message("system", "Say how sure you are."), lambda event: None],
    reason="say how sure you are",
)
