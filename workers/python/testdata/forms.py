"""Every form in which a hook may answer, and many in which it may not."""
import asyncio
import ctypes
import datetime
import functools
import os
import re
import sys

from hookfabric import HookResult


def nothing(event):
    return None


def empty(event):
    return {}


def canonical(event):
    return {"decision": "deny", "reason": "no"}


def massgen_dict(event):
    return {"allowed": False, "metadata": {"reason": "no"}}


def claude(event):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "sure?"}}


def asks(event):
    return HookResult.ask("sure?")


def disallows(event):
    return HookResult(allowed=False, decision="allow", reason="no")


def finds_nothing(event):
    result = HookResult(reason="no")
    result.allowed = re.match("ls", event.tool_name)
    return result


def finds(event):
    return HookResult(allowed=re.match("Bash", event.tool_name))


def modifies(event):
    return HookResult(updated_input={"command": "old"}, modified_args='{"command":"new"}')


def injects(event):
    return HookResult(inject={"content": "look", "strategy": "tool_result"})


def stops(event):
    return HookResult(decision="stop", value="over", injections=[{"content": "bye", "strategy": "user_message"}])


class Foreign:
    """A result of another system, as MassGen's own is."""

    def __init__(self):
        self.allowed = False
        self.decision = "deny"
        self.reason = "foreign"
        self.executed_hooks = []


class Described(Foreign):
    def to_dict(self):
        return {"decision": "deny", "reason": "described"}


def foreign(event):
    return Foreign()


def described(event):
    return Described()


async def later(event):
    await asyncio.sleep(0)
    return HookResult.deny("later")


class Policy:
    def __init__(self, reason):
        self.reason = reason

    async def __call__(self, event):
        return HookResult.deny(self.reason)

    def method(self, event):
        return HookResult.deny("of " + self.reason)

    @staticmethod
    def static(event):
        return HookResult.deny("static")


policy = Policy("an object")


def with_reason(reason, event):
    return HookResult.deny(reason)


async def later_with_reason(reason, event):
    return HookResult.deny(reason)


partial = functools.partial(with_reason, "partial")
later_partial = functools.partial(later_with_reason, "later partial")


@functools.wraps(later)
def wrapped(event):
    return later(event)


def own_loop(event):
    return asyncio.run(later(event))


def text(event):
    return "allow"


def true(event):
    return True


def listed(event):
    return [{"decision": "allow"}]


def returns_event(event):
    return event


def a_set(event):
    return {"updated_input": {"names": {"a"}}}


def a_nan(event):
    return {"updated_input": {"n": float("nan")}}


def some_bytes(event):
    return HookResult(reason=b"no")


def circular(event):
    answer = {}
    answer["updated_input"] = answer
    return answer


def twice(event):
    return {"updated_input": {1: "one", "1": "uno"}}


def denies_with_a_date(event):
    return HookResult.deny("no", metadata={"since": datetime.date(2026, 11, 21)})


def disallows_with_a_set(event):
    return {"allowed": None, "reason": "no", "metadata": {"paths": {"a"}}}


def blocks_at_length(event):
    return {"decision": "block", "reason": "no", "metadata": "x" * (1 << 20)}


def claude_denies_with_bytes(event):
    return {"reason": b"no", "hookSpecificOutput": {"permissionDecision": "deny"}}


def allows_with_a_date(event):
    return HookResult.allow(metadata={"since": datetime.date(2026, 11, 21)})


def unknown_decision(event):
    return {"decision": "DENY"}


def raises(event):
    raise ValueError("the tool %s is odd" % event.tool_name)


async def raises_later(event):
    await asyncio.sleep(0)
    raise ValueError("later")


def exits(event):
    sys.exit(3)


async def exits_later(event):
    sys.exit(3)


def interrupted(event):
    raise KeyboardInterrupt


def vanishes(event):
    print("the last words", flush=True)
    os._exit(7)


def crashes(event):
    ctypes.string_at(0)


def recurses(event):
    return recurses(event)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError


def unspeakable(event):
    raise Unspeakable


def pid(event):
    return {"reason": str(os.getpid())}


async def later_pid(event):
    return {"reason": str(os.getpid())}


number = 5
