"""Types for hooks written in Python: the event that a hook gets, and its answers.

A hook is a function (or coroutine function) of one argument, a HookEvent. It
returns a HookResult, a dict in the same form, or None for no opinion. Any other
value is an error of the hook. A hook may have an attribute condition, a function
or coroutine function of the event. It is then called only if that returns true.
"""

from collections.abc import Mapping
from enum import Enum
import json

__all__ = [
    "HookDecision", "HookEvent", "HookResult", "HookType", "Message", "ToolCall", "ToolResult",
    "append_message", "drop_messages", "handle", "hook", "set_flag",
]


def __getattr__(name):
    """Load the names for an agent's loop when they are first used."""
    if name not in __all__:
        raise AttributeError("module 'hookfabric' has no attribute %r" % name)
    from hookfabric import _loop

    return getattr(_loop, name)


class HookType(str, Enum):
    """The events that hooks may see."""

    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    BEFORE_LLM_CALL = "BeforeLLMCall"
    AFTER_LLM_CALL = "AfterLLMCall"
    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    TOOL_ERROR = "ToolError"
    BEFORE_FINAL_RESPONSE = "BeforeFinalResponse"
    QUERY_END = "QueryEnd"
    # MassGen's older names, which its own code still uses.
    PRE_CALL = "pre_call"
    POST_CALL = "post_call"

    @classmethod
    def _missing_(cls, value):
        return cls.__members__.get(_SEED_NAMES.get(value))


# Names that other systems give to events. HookType accepts them, too.
_SEED_NAMES = {
    "BEFORE_LLM_CALL": "BEFORE_LLM_CALL", "AFTER_LLM_CALL": "AFTER_LLM_CALL", "BEFORE_TOOL_EXECUTION": "PRE_TOOL_USE",
    "AFTER_TOOL_EXECUTION": "POST_TOOL_USE", "ON_TOOL_ERROR": "TOOL_ERROR", "BEFORE_FINAL_RESPONSE": "BEFORE_FINAL_RESPONSE",
    "QUERY_END": "QUERY_END", "Stop": "BEFORE_FINAL_RESPONSE",
}


class HookEvent(Mapping):
    """One event of one agent.

    Every field is an attribute. An absent field has the value None ("" for ids and
    tool_name, {} for tool_input and labels, 0 for iteration). As a mapping, the event
    has the JSON values of to_dict: MassGen's eight fields always, the others only if
    present. The timestamp is a datetime as an attribute and a string in the mapping.

    More attributes help hooks of an agent's loop:
    event and agent are the event's type and the agent's id.
    tool_call is set before a tool runs, tool_result after it, and assistant_message
    at AfterLLMCall and BeforeFinalResponse. At other events they have the value None.
    flags are the agent's flags (default: {}).
    history is a list of messages, for hooks with `needs: [history]`.
    The fields of these objects are attributes, too.

    traceparent and tracestate are the event's position in a trace, in the form of
    W3C Trace Context. Without tracing they have the value None.
    """

    __slots__ = ("__dict__", "__weakref__", "_history", "_trace")

    event_id = ""
    runtime = tool_kind = tool_args = tool_use_id = history_ref = cwd = native = None
    error = message = prompt = response = None
    iteration = 0

    def __init__(
        self, hook_type="PreToolUse", session_id="", orchestrator_id="", agent_id=None,
        timestamp=None, tool_name="", tool_input=None, tool_output=None, **more,
    ):
        fields = self.__dict__
        fields["hook_type"] = hook_type.value if isinstance(hook_type, Enum) else hook_type
        fields["session_id"] = session_id
        fields["orchestrator_id"] = orchestrator_id
        fields["agent_id"] = agent_id
        fields["timestamp"] = timestamp if timestamp is None or isinstance(timestamp, str) else timestamp.isoformat()
        fields["tool_name"] = tool_name
        fields["tool_input"] = {} if tool_input is None else tool_input
        fields["tool_output"] = tool_output
        fields.update(more)

    @property
    def timestamp(self):
        text = self.__dict__["timestamp"]
        return None if text is None else _when(text)

    @property
    def labels(self):
        return self.__dict__.get("labels") or {}

    @property
    def event(self):
        return self.hook_type

    @property
    def agent(self):
        return self.agent_id

    @property
    def tool_call(self):
        return self._current() if self.hook_type == "PreToolUse" else None

    @property
    def tool_result(self):
        return self._current() if self.hook_type in ("PostToolUse", "ToolError") else None

    @property
    def assistant_message(self):
        return self._current() if self.hook_type in ("AfterLLMCall", "BeforeFinalResponse") else None

    def _current(self):
        from hookfabric import _loop

        return _loop.current_of(self)

    @property
    def traceparent(self):
        return getattr(self, "_trace", (None, None))[0]

    @property
    def tracestate(self):
        return getattr(self, "_trace", (None, None))[1] or None

    @property
    def flags(self):
        return self.__dict__.get("flags") or {}

    @property
    def history(self):
        raw = self.__dict__.get("history")
        if raw is None:
            return None
        if not hasattr(self, "_history"):
            from hookfabric import _loop

            self._history = [_loop.message_of(message) for message in raw]
        return self._history

    def to_dict(self):
        return dict(self.__dict__)

    def to_json(self):
        return json.dumps(self.__dict__)

    @classmethod
    def from_dict(cls, fields):
        return cls(**fields)

    @classmethod
    def from_json(cls, text):
        return cls(**json.loads(text))

    def __getitem__(self, name):
        return self.__dict__[name]

    def __iter__(self):
        return iter(self.__dict__)

    def __len__(self):
        return len(self.__dict__)

    def __eq__(self, other):
        return Mapping.__eq__(self, other)

    __hash__ = None

    def __repr__(self):
        return "HookEvent(%s)" % ", ".join("%s=%r" % field for field in self.__dict__.items())


def _when(text):
    """Parse a timestamp. Python before 3.11 parses few forms itself."""
    from datetime import datetime, timezone

    main, zone = (text[:-1], "+00:00") if text.endswith("Z") else (text[:-6], text[-6:])
    if zone[:1] not in ("+", "-"):
        main, zone = text, ""
    main, _, fraction = main.partition(".")
    when = datetime.fromisoformat(main + (("." + (fraction + "000000")[:6]) if fraction else "") + zone)
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)


class HookResult:
    """The answer of a hook. The fields are those of a hook's JSON answer.

    A false allowed is a deny, regardless of decision. modified_args, a JSON string,
    takes precedence over updated_input. HookResult() without arguments is an allow.
    """

    _fields = (
        "allowed", "decision", "reason", "updated_input", "modified_args", "inject",
        "metadata", "hook_errors", "updated_output", "value", "effects", "injections",
    )
    _explaining = ("reason", "metadata", "stopReason", "systemMessage", "suppressOutput")  # no opinion by themselves

    def __init__(
        self, allowed=True, decision="allow", reason=None, updated_input=None, modified_args=None, inject=None,
        metadata=None, hook_errors=None, updated_output=None, value=None, effects=None, injections=None, **more,
    ):
        self.decision = decision.value if isinstance(decision, Enum) else decision
        self.allowed = allowed
        if not allowed:
            self.decision = "deny"
        elif self.decision == "deny":
            self.allowed = False
        self.reason = reason
        self.updated_input = updated_input
        self.modified_args = modified_args
        self.inject = inject
        self.metadata = {} if metadata is None else metadata
        self.hook_errors = [] if hook_errors is None else hook_errors
        self.updated_output = updated_output
        self.value = value
        self.effects = effects
        self.injections = injections
        self.__dict__.update(more)  # such as executed_hooks, which the worker ignores

    @classmethod
    def allow(cls, **more):
        return cls(**more)

    @classmethod
    def deny(cls, reason=None, **more):
        return cls(allowed=False, decision="deny", reason=reason, **more)

    @classmethod
    def ask(cls, reason=None, **more):
        return cls(decision="ask", reason=reason, **more)

    @classmethod
    def retry(cls, reason=None, effects=None, **more):
        """Make the model try again. The effects can improve its next attempt."""
        return cls(decision="retry", reason=reason, effects=effects, **more)

    @classmethod
    def fail(cls, reason=None, **more):
        return cls(decision="fail", reason=reason, **more)

    @classmethod
    def reject(cls, reason=None, **more):
        """The same as fail, by another name."""
        return cls(decision="reject", reason=reason, **more)

    @classmethod
    def stop(cls, value, **more):
        """End the query with value as its message. At a tool call, value is the call's result; at QueryEnd, the response."""
        return cls(decision="stop", value=value, **more)

    def add_error(self, error):
        self.hook_errors.append(error)

    def to_dict(self):
        fields = {name: getattr(self, name) for name in self._fields if getattr(self, name) is not None}
        fields["allowed"] = bool(self.allowed)
        if self.allowed and self.decision in ("continue", "stop", "fail", "reject", "retry"):
            del fields["allowed"]  # allowed is only for tool calls
        return fields

    def to_json(self):
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, fields):
        """Make a HookResult of a dict. Raises ValueError for an unknown field if all known fields only explain, because it may be a refusal."""
        unknown = [name for name in fields if name not in cls._fields + cls._explaining + ("executed_hooks",)]
        if unknown and not any(name in fields and name not in cls._explaining for name in cls._fields):
            raise ValueError("the answer %r has an unknown field and none that decides or changes anything; write one of %s" % (fields, ", ".join(cls._fields)))
        return cls(**fields)

    @classmethod
    def from_json(cls, text):
        return cls.from_dict(json.loads(text))

    def __eq__(self, other):
        return self.__dict__ == other.__dict__ if isinstance(other, HookResult) else NotImplemented

    __hash__ = None

    def __repr__(self):
        return "HookResult(%s)" % ", ".join("%s=%r" % item for item in self.to_dict().items())
