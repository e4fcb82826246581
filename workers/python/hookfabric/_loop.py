"""Types and helpers for hooks of an agent's loop: messages, calls and results, the
effects, and handle, which makes a hook of a condition, effects, a value and a
decision. A process loads this module only if a hook uses it."""

import copy
from enum import Enum
import functools
import inspect
import json


class HookDecision(str, Enum):
    """The decisions of a hook. Each event permits some of them."""

    CONTINUE = "continue"
    RETRY = "retry"
    FAIL = "fail"
    STOP = "stop"
    REJECT = "reject"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class _Words(dict):
    """A JSON object whose fields are also attributes. An absent field has the value None."""

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
    """A call of a tool, before the tool runs."""

    __slots__ = ()
    _fields = ("id", "name", "input")


class ToolResult(_Words):
    """The result of a call."""

    __slots__ = ()
    _fields = ("id", "name", "output", "error", "notes")


class Message(_Words):
    """One message of a conversation. A message in the form of a model's API has
    only native, the original message."""

    __slots__ = ()
    _fields = ("role", "content", "tool_calls", "tool_result", "native")

    def __init__(self, content="", role="assistant", **more):
        super().__init__(role=role, content=content, **more)


def message_of(raw):
    """Convert a message of the event or the history to a Message, or return None if it is not a message."""
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
    """Convert a Chat Completions message, whose calls are one level deeper, to the fabric's form. Return other messages unchanged."""
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
    """Parse the JSON object in a string. Return the text itself if it has no JSON object."""
    if not isinstance(text, str):
        return text
    try:
        found = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def _once(pairs):
    """Refuse an object with a duplicate name, because two parsers can read it differently."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the object has a duplicate name")
    return found


def _is_message(raw):
    """Report whether raw is a message in the fabric's form: its fields have the right types, and at least one is known."""
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
    """Return the value that this event is about."""
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
    """Return the effect that adds a message to the conversation. role is system, user or assistant."""
    return {"append_message": {"role": role, "content": content}}


def set_flag(**flags):
    """Return the effect that sets flags, which later events carry. The value None removes a flag."""
    return {"set_flag": flags}


def drop_messages(first=None, last=None, role=None, containing=None):
    """Return the effect that removes messages: the first or last ones, those of a role,
    or those that contain a text. It keeps system messages unless role is system."""
    picks = {"first": first, "last": last, "role": role, "containing": containing}
    return {"drop_messages": {name: pick for name, pick in picks.items() if pick is not None}}


# Hooks.


def hook(condition):
    """Decorator: give a hook a condition, a function or coroutine function of the event.
    If it is false, the hook is not called and has no opinion."""
    if not callable(condition):
        raise TypeError("the condition is of the type %s; write a function of the event" % type(condition).__name__)

    def mark(function):
        function.condition = condition
        return function

    return mark


def handle(decision="continue", value=None, effects=(), condition=None, reason=None):
    """Make a hook. It evaluates the condition first, then the effects in their order,
    then the value, then the decision.

    condition is a function of the event.
    effects is a list. An effect is a dict, such as append_message returns, or a function
    of the event that returns a dict, a list of dicts or None. The agent runs elsewhere:
    only the effects that the hook returns change it.
    value replaces the value of the event. A function gets the event and a copy of the
    current value (a ToolCall, ToolResult or Message; at QueryEnd the response), or only
    the event, and returns the new value.
    reason is a text for the model or the user.

    Each function may be a coroutine function. Effects and value apply with any decision.
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
        """Do the steps in their order. The caller awaits what this generator yields."""
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
    """Return a list of effects: of one effect, of a list, or of None."""
    if made is None:
        return []
    made = made if isinstance(made, (list, tuple)) else [made]
    for one in made:
        if not isinstance(one, dict):
            raise TypeError("an effect is of the type %s; return a dict such as append_message(...) makes, a list of them, or None" % type(one).__name__)
    return list(made)


def _change(value):
    """Return value as a function of the event and the current value."""
    try:
        takes = inspect.signature(value)
    except ValueError:
        return value  # its signature is unknown
    try:
        takes.bind(None, None)
        return value
    except TypeError:
        takes.bind(None)
        return lambda event, current: value(event)


def _changed(event, decision, before, new):
    """Return the new value, or None if it equals the current one."""
    if decision == "stop":
        if new is None:
            raise TypeError("a stop at %s has the value None; return the value that the agent continues with" % event.hook_type)
        return new
    if new is None and before is not None:
        raise TypeError("the value function returned None at %s; return the new value, or the current one to keep it" % event.hook_type)
    return None if new == before else new


def _placed(event, decision, new):
    """Return the fields of an answer with the value new."""
    if decision == "stop":
        return {"value": new.output if isinstance(new, ToolResult) else new}
    if event.hook_type == "PreToolUse":
        if isinstance(new, ToolCall):
            if new.name != event.tool_name:
                raise ValueError("the value is a call of %r; a hook may change the input of a call, but not its tool" % new.name)
            new = new.input
        return {"updated_input": new}
    if event.hook_type in ("PostToolUse", "ToolError"):
        return {"updated_output": new.output if isinstance(new, ToolResult) else new}
    return {"value": new}


def _is_async(function):
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(type(function), "__call__", None))
