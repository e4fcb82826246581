"""What benchmarks call."""
import time

from hookfabric import HookResult


def check(event):
    if "rm -rf" in event.tool_input.get("command", ""):
        return HookResult.deny("destructive")


async def check_later(event):
    return check(event)


def sometimes_hangs(event):
    if event.tool_name == "hang":
        time.sleep(3600)
    return check(event)
