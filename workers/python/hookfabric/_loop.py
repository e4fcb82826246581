"""The words for hooks of an agent's whole loop: what they see of it beside the
event's fields, the effects they may ask for, and hooks put together of a
condition, effects, a value and a decision. Only hooks that use it load it."""

import copy
from enum import Enum
import functools
import inspect
import json


class HookDecision(str, Enum):
    """What a hook of the loop may decide; which of them an event knows is its own."""

    CONTINUE = "continue"
    RETRY = "retry"
    FAIL = "fail"
    STOP = "stop"
    REJECT = "reject"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class _Words(dict):
    """A JSON object whose fields are attributes as well; one that is not there is None."""

    __slots__ = ()
    _fields = ()

    def __getattr__(self, name):
        if name in self._fields:
            return self.get(name)
        raise AttributeError("a %s has no %r; it has %s" % (type(self).__name__, name, ", ".join(self._fields)))

    def __setattr__(self, name, value):
        if name not in self._fields:
            raise AttributeError("a %s has no %r; it has %s" % (type(self).__name__, name, ", ".join(self._fields)))
        self[name] = value


class ToolCall(_Words):
    """A call of a tool that is to be made."""

    __slots__ = ()
    _fields = ("id", "name", "input")


class ToolResult(_Words):
    """What came of a call."""

    __slots__ = ()
    _fields = ("id", "name", "output", "error", "notes")


class Message(_Words):
    """One message of a conversation. Of a message that is in the shape of some
    model's API, and not in this one, native is all there is."""

    __slots__ = ()
    _fields = ("role", "content", "tool_calls", "tool_result", "native")

    def __init__(self, content="", role="assistant", **more):
        super().__init__(role=role, content=content, **more)


def message_of(raw):
    """What the event or the history says as a Message; None if it is none."""
    if isinstance(raw, str):
        return Message(raw)
    if not isinstance(raw, dict):
        return None
    raw = _completion(raw)
    if not _is_message(raw):
        return Message(native=raw)
    fields = dict(raw, role=raw.get("role") or "assistant", content=raw.get("content") or "")
    if raw.get("tool_calls"):
        fields["tool_calls"] = [ToolCall(call or {}) for call in raw["tool_calls"]]
    if raw.get("tool_result"):
        fields["tool_result"] = ToolResult(raw["tool_result"])
    return Message(**fields)


def _completion(raw):
    """A message of Chat Completions, whose calls stand one level deeper, as one of ours; any other is as it was."""
    calls = raw.get("tool_calls")
    if not isinstance(calls, list) or all(not isinstance(call, dict) or call.get("name") for call in calls):
        return raw
    ours = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not function.get("name"):
            return raw
        ours.append({"id": call.get("id"), "name": function["name"], "input": _arguments(function.get("arguments"))})
    return dict(raw, tool_calls=ours, native=raw)


def _arguments(text):
    """The object in a string; where it holds none, what the model wrote."""
    if not isinstance(text, str):
        return text
    try:
        found = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def _once(pairs):
    """An object in which no name stands twice; of such a one two readers make different things."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _is_message(raw):
    """Whether raw has the fields of a message, and not others of the same names, and nothing but others."""
    calls, result = raw.get("tool_calls"), raw.get("tool_result")
    return (
        _has(raw, str, "role", "content")
        and (isinstance(raw.get("content"), str) or bool(calls) or result is not None or raw.get("native") is not None or set(raw) <= set(Message._fields))
        and (calls is None or isinstance(calls, list) and all(_has(call, str, "id", "name") and call and call.get("name") for call in calls))
        and _has(result, str, "id", "name", "error")
        and (result is None or _has(result, list, "notes") and all(isinstance(n, (str, type(None))) for n in result.get("notes") or ()))
    )


def _has(fields, kind, *names):
    if fields is None:
        return True
    return isinstance(fields, dict) and all(isinstance(fields.get(name), (kind, type(None))) for name in names)


def current_of(event):
    """The value that flows through the loop at the moment of event."""
    if event.hook_type == "PreToolUse":
        return ToolCall(id=event.tool_use_id, name=event.tool_name, input=event.tool_input)
    if event.hook_type in ("PostToolUse", "ToolError"):
        return ToolResult(id=event.tool_use_id, name=event.tool_name, output=event.tool_output, error=event.error)
    if event.hook_type in ("AfterLLMCall", "BeforeFinalResponse"):
        return message_of(event.message)
    if event.hook_type == "QueryEnd":
        return event.response
    return None


# Effects.


def append_message(role, content):
    """The effect that adds a message to the conversation; role is system, user or assistant."""
    return {"append_message": {"role": role, "content": content}}


def set_flag(**flags):
    """The effect that sets flags, which later events carry; None takes one away."""
    return {"set_flag": flags}


def drop_messages(first=None, last=None, role=None, containing=None):
    """The effect that takes messages out: so many from the beginning or the end,
    of a role, containing a text. System messages stay unless role says system."""
    picks = {"first": first, "last": last, "role": role, "containing": containing}
    return {"drop_messages": {name: pick for name, pick in picks.items() if pick is not None}}


# Hooks.


def hook(condition):
    """A decorator that gives a hook a condition: a function, or coroutine function,
    of the event. Where it is false, the hook has no opinion and is not called."""
    if not callable(condition):
        raise TypeError("a condition is a function of the event, not %s" % type(condition).__name__)

    def mark(function):
        function.condition = condition
        return function

    return mark


def handle(decision="continue", value=None, effects=(), condition=None, reason=None):
    """A hook put together: its condition is asked first, then come the effects in
    their order, then the value, then the decision.

    condition is called with the event. An effect is a dict, such as append_message
    makes, or a function of the event that returns one, a list of them or None: the
    agent is elsewhere, so that only what is returned changes it. value replaces what
    flows through the loop; a function is called with the event and a copy of what
    it is so far (a ToolCall, ToolResult or Message; at QueryEnd the response), or
    with the event alone, and returns the new one. Each may be a coroutine function.
    Effects and value are made whatever the decision is.
    """
    decision = _decision(decision)
    if not isinstance(effects, (list, tuple)) and effects is not None:
        raise TypeError("effects is of the type %s; write a list" % type(effects).__name__)
    effects = list(effects or ())
    for effect in effects:
        if not callable(effect):
            _effects(effect)
    change = _change(value) if callable(value) else None

    def steps(event):
        """The work in its order; what it yields is to be awaited."""
        made = []
        for effect in effects:
            one = effect(event) if callable(effect) else effect
            made += _effects((yield one) if hasattr(one, "__await__") else one)
        fields = {"decision": decision}
        if reason is not None:
            fields["reason"] = reason
        if made:
            fields["effects"] = made
        new = value
        if change:
            before = current_of(event)
            new = change(event, copy.deepcopy(before))
            if hasattr(new, "__await__"):
                new = yield new
            new = _changed(event, decision, before, new)
        if new is not None:
            fields.update(_placed(event, decision, new))
        return fields

    def answer(event):
        work = steps(event)
        try:
            waits = next(work)
        except StopIteration as end:
            return end.value
        return _await(work, waits)

    async def answer_later(event):
        found = answer(event)
        return await found if hasattr(found, "__await__") else found

    whole = answer_later if any(map(_is_async, effects + [value])) else answer
    return hook(condition)(whole) if condition is not None else whole


async def _await(work, waits):
    try:
        while True:
            waits = work.send(await waits)
    except StopIteration as end:
        return end.value


def _decision(decision):
    try:
        return HookDecision(decision).value
    except ValueError:
        raise ValueError("the decision %r is unknown; write one of %s" % (decision, ", ".join(d.value for d in HookDecision))) from None


def _effects(made):
    """The effects in what an effect has returned, or is."""
    if made is None:
        return []
    made = made if isinstance(made, (list, tuple)) else [made]
    for one in made:
        if not isinstance(one, dict):
            raise TypeError("an effect is of the type %s; return a dict such as append_message(...) makes, a list of them, or None" % type(one).__name__)
    return list(made)


def _change(value):
    """value as a function of the event and what flows through the loop."""
    try:
        takes = inspect.signature(value)
    except ValueError:
        return value  # it does not say
    try:
        takes.bind(None, None)
        return value
    except TypeError:
        takes.bind(None)
        return lambda event, current: value(event)


def _changed(event, decision, before, new):
    """What a value has made of before; None: nothing."""
    if decision == "stop":
        if new is None:
            raise TypeError("the value of a stop is None at %s; return what the agent is to go on with" % event.hook_type)
        return new
    if new is None and before is not None:
        raise TypeError("the value is None at %s; return what is to take the place of the one before" % event.hook_type)
    return None if new == before else new


def _placed(event, decision, new):
    """The fields of an answer that say new at event."""
    if decision == "stop":
        return {"value": new.output if isinstance(new, ToolResult) else new}
    if event.hook_type == "PreToolUse":
        if isinstance(new, ToolCall):
            if new.name != event.tool_name:
                raise ValueError("the value is a call of %r; the input of a call can be changed, not its tool" % new.name)
            new = new.input
        return {"updated_input": new}
    if event.hook_type in ("PostToolUse", "ToolError"):
        return {"updated_output": new.output if isinstance(new, ToolResult) else new}
    return {"value": new}


def _is_async(function):
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(type(function), "__call__", None))
