"""A hook of MassGen. If MassGen is not installed, the worker provides a replacement for the imported names."""

from massgen.mcp_tools.hooks import HookEvent, HookResult


def validate_vote(event: HookEvent) -> HookResult:
    """A vote needs a reason."""
    if not event.tool_input.get("reason"):
        return HookResult.deny("a vote needs a reason")
    return HookResult.allow()
