"""Hooks of an agent's loop: with conditions, effects and values of every make."""
import asyncio
import functools
import json
import os
import threading

import hookfabric
from hookfabric import HookDecision, HookEvent, HookResult, Message, ToolResult, append_message, drop_messages, handle, set_flag

# What goes wrong, by name, as a function and as a coroutine function.


def true(event):
    return True


def false(event):
    return None


def raises(*anything):
    raise ValueError("no database")


def dies(*anything):
    os._exit(7)


def exits(*anything):
    raise SystemExit(3)


class Odd:
    def __bool__(self):
        raise ValueError("no truth")


def odd(event):
    return Odd()


def later(function):
    async def whole(*given):
        await asyncio.sleep(0)
        return function(*given)

    return whole


async def sleeps(*anything):
    await asyncio.sleep(600)


def hangs(*anything):
    threading.Event().wait()


# Conditions.


def says(event):
    return HookResult.deny("no")


async def says_later(event):
    await asyncio.sleep(0)
    return HookResult.deny("no")


def silent(event):
    return None


def own_loop(event):
    return asyncio.run(says_later(event))


def wants(condition, function):
    """function with a condition, leaving the function itself alone."""

    @functools.wraps(function)
    def plain(event):
        return function(event)

    @functools.wraps(function)
    async def coroutine(event):
        return await function(event)

    return hookfabric.hook(condition=condition)(coroutine if asyncio.iscoroutinefunction(function) else plain)


for name in ("true", "false", "raises", "dies", "exits", "odd", "hangs"):
    condition = globals()[name]
    globals()[name + "_says"] = wants(condition, says)
    globals()[name + "_says_later"] = wants(condition, says_later)
    globals()["later_" + name + "_says"] = wants(later(condition), says)
    globals()["later_" + name + "_says_later"] = wants(later(condition), says_later)
raises_silent = wants(raises, silent)
raises_raises = wants(raises, raises)
later_raises_raises = wants(later(raises), raises)
true_raises = wants(true, raises)
false_raises = wants(false, raises)
true_own_loop = wants(later(true), own_loop)
sleeps_says = wants(sleeps, says)
sleeps_says_later = wants(sleeps, says_later)


async def told(event):
    """Does what the tool's name says, in its condition."""
    import trouble

    return await trouble.told_later(event)


told_says_later = wants(told, says_later)
partial_false = functools.partial(wants(false, says))


class Policy:
    """An object with a condition of its own."""

    def condition(self, event):
        return event.tool_name == "Write"

    def __call__(self, event):
        return HookResult.deny("no")

    @hookfabric.hook(condition=lambda event: event.tool_name == "Write")
    def method(self, event):
        return HookResult.deny("no")


policy = Policy()


class Locked:
    """An object whose condition is something else."""

    def __init__(self):
        self.condition = threading.Condition()

    def __call__(self, event):
        return HookResult.deny("no")


locked = Locked()


def unfit(event):
    return None


unfit.condition = "tool_name == 'Bash'"


# What a hook sees.


def status(event):
    """The status as the fabric's other side writes it."""
    fields = {name: getattr(event, name) for name in ("event", "agent", "iteration", "tool_call", "tool_result", "assistant_message")}
    return {"updated_input": {"status": fields, "flags": event.flags, "history": event.history}}


def reached(event):
    """By attribute what status has by key."""
    message, first = event.assistant_message, event.history[0]
    call = message.tool_calls[0]
    said = [message.role, message.content, call.id, call.name, call.input["q"], message.native, first.role, first.content]
    said.append(event.history[1].tool_result.output)
    said.append(event.history is event.history and event.tool_call is None and event.tool_result is None)
    for broken in (lambda: message.contents, lambda: setattr(call, "args", 1)):
        try:
            broken()
        except AttributeError as fault:
            said.append(str(fault))
    return {"reason": json.dumps(said)}


# Answers in few words.

retries = lambda event: HookResult.retry("once more", effects=[append_message("system", "Use tags."), set_flag(tries=1, old=None)])
fails = lambda event: HookResult.fail("no")
rejects = lambda event: HookResult.reject("no")
stops = lambda event: HookResult.stop(Message("from the cache"))
drops = lambda event: {"effects": [drop_messages(first=2, role="tool"), drop_messages(last=1, containing="x")]}

# Hooks put together. order tells which part was run when.


def noting(what):
    def note(event):
        event.tool_input.setdefault("order", []).append(what)

    return note


def told(event, current):
    current.input = {"order": event.tool_input.get("order", []) + ["value"], "n": current.input.get("n", 0) + 1}
    return current


def and_true(note):
    def condition(event):
        note(event)
        return True

    return condition


ordered = handle("continue", value=told, effects=[noting("first"), later(noting("second")), noting("third")], condition=and_true(noting("condition")))
ordered_sync = handle("continue", value=told, effects=[noting("first"), noting("second"), noting("third")], condition=and_true(noting("condition")))
ordered_later = handle(
    "continue", value=later(told), effects=[later(noting(n)) for n in ("first", "second", "third")], condition=later(and_true(noting("condition")))
)

upper = handle(value=lambda event, message: Message(message.content.upper()))
exclaims = handle(value=later(lambda event, message: Message(message.content + "!")))
guides = handle(HookDecision.RETRY, effects=[append_message("system", "Use tags."), lambda event: set_flag(seen=event.iteration)], reason="no tags")
cached = handle(HookDecision.STOP, value=lambda event: Message("cached: " + event.history[-1].content))
direct = handle("stop", value="direct")
tool_stop = handle("stop", value=lambda event, call: ToolResult(name=call.name, output={"cached": True}))


def enrich(event, result):
    if result.name == "fetch_data":
        result.output["count"] = len(result.output["items"])
    return result


enriched = handle(value=enrich)
renames = handle(value=lambda event, call: hookfabric.ToolCall(call, name="other"))
returns_nothing = handle(value=lambda event, current: None)
stops_nothing = handle("stop", value=lambda event: None)
several = handle(effects=[lambda event: [set_flag(a=1), set_flag(b=2)], lambda event: None])
no_effect = handle(effects=[lambda event: "text"])
rejected = handle("reject", reason="not this task")

for name in ("raises", "dies", "exits"):
    for word, function in ((name, globals()[name]), ("later_" + name, later(globals()[name]))):
        globals()["effect_" + word] = handle("continue", effects=[function, set_flag(unreached=True)])
        globals()["value_" + word] = handle("continue", value=function, effects=[set_flag(lost=True)])
        globals()["condition_" + word] = handle("fail", reason="no", condition=function)


def refused(event):
    """What is wrong with a hook is said where it is written."""
    said = []
    for wrong in (
        lambda: handle("perhaps"),
        lambda: handle(effects=noting("x")),
        lambda: handle(effects=["text"]),
        lambda: handle(value=lambda: 1),
        lambda: handle(condition="x"),
        lambda: hookfabric.hook(condition=True),
        lambda: hookfabric.nothing,
    ):
        try:
            wrong()
        except (AttributeError, TypeError, ValueError) as fault:
            said.append(type(fault).__name__)
    assert HookEvent("PreToolUse", tool_name="Bash").tool_call.name == "Bash"
    return {"reason": " ".join(said)}
