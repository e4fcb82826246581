# Types for type checkers. A test compares the names and arguments with those of the modules.
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Literal, TypeVar, Union

__all__ = [
    "HookDecision", "HookEvent", "HookResult", "HookType", "Message", "ToolCall", "ToolResult",
    "append_message", "drop_messages", "handle", "hook", "set_flag",
]

_Effect = dict[str, Any]
_Answer = Union[HookResult, dict[str, Any], None]
_Handler = Callable[[HookEvent], Union[_Answer, Awaitable[_Answer]]]
_Condition = Callable[[HookEvent], Any]
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_Role = Literal["system", "user", "assistant"]

class HookType(str, Enum):
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
    PRE_CALL = "pre_call"
    POST_CALL = "post_call"

class HookDecision(str, Enum):
    CONTINUE = "continue"
    RETRY = "retry"
    FAIL = "fail"
    STOP = "stop"
    REJECT = "reject"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

class HookEvent(Mapping[str, Any]):
    event_id: str
    hook_type: str
    session_id: str
    orchestrator_id: str
    agent_id: str
    runtime: str | None
    tool_name: str
    tool_kind: str | None
    tool_input: dict[str, Any]
    tool_args: str | None
    tool_output: Any
    tool_use_id: str | None
    history_ref: str | None
    cwd: str | None
    native: Any
    error: str | None
    message: Any
    prompt: str | None
    response: Any
    iteration: int

    def __init__(
        self, hook_type: str | HookType = "PreToolUse", session_id: str = "", orchestrator_id: str = "", agent_id: str | None = None,
        timestamp: datetime | str | None = None, tool_name: str = "", tool_input: dict[str, Any] | None = None, tool_output: Any = None,
        **more: Any,
    ) -> None: ...
    @property
    def timestamp(self) -> datetime | None: ...
    @property
    def labels(self) -> dict[str, str]: ...
    @property
    def event(self) -> str: ...
    @property
    def agent(self) -> str: ...
    # At events without them, these three and history have the value None. The types omit that, so that a hook of the right
    # events needs no check.
    @property
    def tool_call(self) -> ToolCall: ...
    @property
    def tool_result(self) -> ToolResult: ...
    @property
    def assistant_message(self) -> Message: ...
    @property
    def traceparent(self) -> str | None: ...
    @property
    def tracestate(self) -> str | None: ...
    @property
    def flags(self) -> dict[str, Any]: ...
    @property
    def history(self) -> list[Message]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> HookEvent: ...
    @classmethod
    def from_json(cls, text: str) -> HookEvent: ...
    def __getitem__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class HookResult:
    allowed: bool
    decision: str
    reason: str | None
    updated_input: dict[str, Any] | None
    modified_args: str | None
    inject: dict[str, Any] | None
    metadata: dict[str, Any]
    hook_errors: list[str]
    updated_output: Any
    value: Any
    effects: Sequence[_Effect] | None
    injections: Sequence[dict[str, Any]] | None

    def __init__(
        self, allowed: bool = True, decision: str | HookDecision = "allow", reason: str | None = None, updated_input: dict[str, Any] | None = None,
        modified_args: str | None = None, inject: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None,
        hook_errors: list[str] | None = None, updated_output: Any = None, value: Any = None, effects: Sequence[_Effect] | None = None,
        injections: Sequence[dict[str, Any]] | None = None, **more: Any,
    ) -> None: ...
    @classmethod
    def allow(cls, **more: Any) -> HookResult: ...
    @classmethod
    def deny(cls, reason: str | None = None, **more: Any) -> HookResult: ...
    @classmethod
    def ask(cls, reason: str | None = None, **more: Any) -> HookResult: ...
    @classmethod
    def retry(cls, reason: str | None = None, effects: Sequence[_Effect] | None = None, **more: Any) -> HookResult: ...
    @classmethod
    def fail(cls, reason: str | None = None, **more: Any) -> HookResult: ...
    @classmethod
    def reject(cls, reason: str | None = None, **more: Any) -> HookResult: ...
    @classmethod
    def stop(cls, value: Any, **more: Any) -> HookResult: ...
    def add_error(self, error: str) -> None: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> HookResult: ...
    @classmethod
    def from_json(cls, text: str) -> HookResult: ...

class ToolCall(dict[str, Any]):
    id: str | None
    name: str
    input: Any

class ToolResult(dict[str, Any]):
    id: str | None
    name: str
    output: Any
    error: str | None
    notes: list[str] | None

class Message(dict[str, Any]):
    role: str
    content: str
    tool_calls: list[ToolCall] | None
    tool_result: ToolResult | None
    native: Any
    def __init__(self, content: str = "", role: str = "assistant", **more: Any) -> None: ...

def append_message(role: _Role, content: str) -> _Effect: ...
def set_flag(**flags: Any) -> _Effect: ...
def drop_messages(first: int | None = None, last: int | None = None, role: str | None = None, containing: str | None = None) -> _Effect: ...
def hook(condition: _Condition) -> Callable[[_Decorated], _Decorated]: ...
def handle(
    decision: str | HookDecision = "continue", value: Any = None, effects: Sequence[_Effect | Callable[[HookEvent], Any]] | None = (),
    condition: _Condition | None = None, reason: str | None = None,
) -> _Handler: ...
