"""A hook as it is written for MassGen; where that is not installed, the worker
brings a stand-in for what is imported here."""

from massgen.mcp_tools.hooks import HookEvent, HookResult


def validate_vote(event: HookEvent) -> HookResult:
    """Votes come with a reason."""
    if not event.tool_input.get("reason"):
        return HookResult.deny("a vote needs a reason")
    return HookResult.allow()
