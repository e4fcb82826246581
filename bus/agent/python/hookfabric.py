"""The hook fabric's client for agents written in Python.

For the Claude Agent SDK, one call adds the fabric's hooks to the hooks that you have::

    options = ClaudeAgentOptions(hooks=hookfabric.claude_hooks(existing=my_hooks, agent="agent1"))

In a loop of your own, ask before and after each tool call::

    fabric = hookfabric.Client(agent="agent1")
    verdict = fabric.ask({"hook_type": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}})

Or use the agent loop of this module, with in-process hooks beside the fabric's::

    agent = hookfabric.Agent("agent1", model=hookfabric.HTTPModel("anthropic", model="…", key_file="…"), client=fabric)

    @agent.tool(description="Add two numbers.")
    def add(a: int, b: int) -> int:
        return a + b

    agent.on(hookfabric.AgentEvent.BEFORE_FINAL_RESPONSE).when(
        lambda status: "<answer>" not in status.assistant_message.content
    ).handle(hookfabric.HookDecision.RETRY, effects=[{"append_message": {"content": "Use <answer> tags."}}])
    print(agent.run("What is 2 + 3?"))

All three ask the daemon (`agentshim serve`) on this machine. If it does not answer, they
start `agentshim hook`, which applies the last known policy. If that fails too, they refuse
the call, unless you set unreachable="allow".

This module is for agents. Hooks that run on workers import another module of the same name,
which the worker provides. One process uses only one of the two.

The module needs only the standard library. Install it with pip, or copy this file beside your program.
"""

from __future__ import annotations

import asyncio
import collections.abc
import concurrent.futures
import contextlib
import contextvars
import copy
import dataclasses
import email.utils
import enum
import functools
import http.client
import inspect
import itertools
import json
import logging
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
import typing
import urllib.parse
import uuid
from typing import Any, Awaitable, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

__all__ = [
    "Agent", "AgentEvent", "AgentStatus", "AssistantMessage", "Chunk", "Client", "Conversation", "EVENTS", "HTTPModel", "Hook", "HookDecision",
    "HumanMessage", "Message", "QueryFailed", "Registration", "Response", "SystemMessage", "Tool", "ToolCall", "ToolMessage", "ToolResult",
    "Unreachable", "claude_hooks", "message",
]

log = logging.getLogger("hookfabric")

#: The events of the Claude Agent SDK for which claude_hooks adds a hook by default.
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SubagentStop")

_FORMATS = ("anthropic", "openai", "openai-structured", "gemini", "grok")
_DECISIONS = ("continue", "allow", "ask", "deny", "retry", "stop", "fail")
_LARGEST = 64 << 20  # bytes of an answer
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
#: The only variables that `agentshim hook` inherits, because others may hold secrets.
_ENVIRONMENT = ("HOME", "PATH", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT")

JSON = Dict[str, Any]


class Unreachable(Exception):
    """Neither the daemon nor `agentshim hook` answered."""

    refused = False  # True: the daemon answered that the request is not valid


class _Call:
    """One call: its deadline, the event's id, and a way for another thread to abandon it."""

    def __init__(self, timeout: float) -> None:
        self.deadline = time.monotonic() + timeout - _margin(timeout)
        self.reserve = min(5.0, timeout / 4)  # seconds for agentshim hook if the daemon hangs
        self.event_id = _event_id()
        self._lock = threading.Lock()  # guards the fields below
        self._given_up = False
        self._end: Optional[Callable[[], None]] = None  # interrupts the wait under way

    @contextlib.contextmanager
    def waiting(self, end: Callable[[], None]) -> Iterator[None]:
        """Let give_up interrupt the wait in the with block, by calling end."""
        with self._lock:
            if self._given_up:
                raise Unreachable("the caller abandoned the call")
            self._end = end
        try:
            yield
        finally:
            with self._lock:
                self._end = None

    def give_up(self) -> None:
        """Abandon the call and interrupt its wait. A call that has ended is not affected."""
        with self._lock:
            self._given_up = True
            if self._end is not None:
                self._end()


class Client:
    """Asks the fabric for one agent. All methods may be called from any thread.

    agent is the agent's id (default: the event's agent_id, else runtime and session).
    daemon is the daemon's URL, or the file that has it (default: $HOOKFABRIC_DAEMON, else daemon.json in the state folder).
    state is the state folder (default: $HOOKFABRIC_STATE, else hookfabric below $XDG_STATE_HOME).
    agentshim is the program to run if the daemon does not answer (default: $HOOKFABRIC_AGENTSHIM, else agentshim on the PATH).
    start=True starts a daemon if none runs (default: False).
    unreachable decides calls that no broker judged: "deny" (default) or "allow". With "allow", the daemon and agentshim still
    deny calls that a known fail-closed hook guards. If neither answers, the client cannot know these hooks and allows the call.
    """

    def __init__(
        self,
        agent: Optional[str] = None,
        *,
        daemon: Optional[str] = None,
        state: Optional[str] = None,
        agentshim: Optional[str] = None,
        start: bool = False,
        unreachable: str = "deny",
    ) -> None:
        if unreachable not in ("deny", "allow"):
            raise ValueError(f'unreachable is {unreachable!r}; write "deny" or "allow"')
        self.agent = agent
        self.unreachable = unreachable
        self._state = state or os.environ.get("HOOKFABRIC_STATE") or _state_home()
        self._daemon = daemon or os.environ.get("HOOKFABRIC_DAEMON") or os.path.join(self._state, "daemon.json")
        self._agentshim = agentshim or os.environ.get("HOOKFABRIC_AGENTSHIM") or "agentshim"
        self._start = start
        self._starting = threading.Lock()  # guards _started
        self._started: "Optional[subprocess.Popen[bytes]]" = None
        # A call can wait for a person, so there is a thread for each call that an agent may have under way.
        self._threads = concurrent.futures.ThreadPoolExecutor(64, thread_name_prefix="hookfabric")
        self._idle: "List[tuple[tuple[int, str, int], http.client.HTTPConnection]]" = []  # connections for later calls, from any thread

    def ask(self, event: Mapping[str, Any], *, render: Optional[str] = None, timeout: float = 60.0) -> JSON:
        """Return the verdict on an event. Its hook_type names the event.

        render ("anthropic", "openai", "openai-structured", "gemini" or "grok") adds "messages" for that API to the verdict.
        Only the daemon renders: a verdict of agentshim has no messages. timeout is in seconds. If neither the daemon nor
        agentshim answers, unreachable decides and ask returns a verdict all the same.
        """
        return self._ask(_Call(timeout), event, render)

    def _ask(self, call: _Call, event: Mapping[str, Any], render: Optional[str] = None, **how: str) -> JSON:
        event = dict(event)
        if self.agent and not event.get("agent_id"):
            event["agent_id"] = self.agent
        kind = event.get("hook_type")
        if not isinstance(kind, str) or not kind:
            raise ValueError('the event has no hook_type; write for example {"hook_type": "PreToolUse", ...}')
        with contextlib.suppress(ValueError):  # other events, such as SessionStart, keep their names
            event["hook_type"] = kind = AgentEvent(kind).value
        if render and render not in _FORMATS:
            raise ValueError(f"render is {render!r}; write one of {', '.join(_FORMATS)}")
        query = {"unreachable": self.unreachable, **({"render": render} if render else {}), **how}
        try:
            verdict = self._judge(call, "generic", kind, _path("v1", "events", kind, **query), event)
        except Unreachable as why:
            return self._unjudged(kind, why)
        if render and "messages" not in verdict:
            log.warning("the verdict on %s has no messages; only an answer of the daemon has them", kind)
        return verdict

    def ack(self, *event_ids: Optional[str], agent: Optional[str] = None, timeout: float = 5.0) -> None:
        """Acknowledge that the agent has read the content of these verdicts, named by their event_id.

        The fabric delivers content again if it is not acknowledged. `agentshim hook` acknowledges its verdicts itself; these
        have no event_id, and ack skips them. For an agent that never calls ack, the next event acknowledges. Raises Unreachable.
        """
        agent = agent or self.agent
        if not agent:
            raise ValueError("ack needs the agent's id; write Client(agent=...), or ack(..., agent=...)")
        ids = [event for event in event_ids if event]
        if ids:
            self._ack(_Call(timeout), ids, agent)

    def _ack(self, call: _Call, ids: Sequence[str], agent: str) -> None:
        self._post(call, "/v1/ack", {"agent_id": agent, "event_ids": list(ids)}, call.deadline)

    def mode(self, vote_only: Optional[bool] = None, *, agent: Optional[str] = None, timeout: float = 5.0) -> bool:
        """Return whether the agent is in vote-only mode: answers of other agents then reach it by a restart, not during its turn.

        vote_only=True or False sets the mode first, in all sessions of the agent; None (default) only reads it. Raises Unreachable.
        """
        body = self._about(agent, **({} if vote_only is None else {"vote_only": vote_only}))
        call = _Call(timeout)
        return self._post(call, "/v1/mode", body, call.deadline).get("vote_only") is True

    def checkpoint(self, *, agent: Optional[str] = None, timeout: float = 5.0) -> None:
        """Report that the agent starts again. Its next event delivers the answers that were deferred until then. Raises Unreachable."""
        call = _Call(timeout)
        self._post(call, "/v1/checkpoint", self._about(agent), call.deadline)

    def _about(self, agent: Optional[str], **more: Any) -> JSON:
        agent = agent or self.agent
        if not agent:
            raise ValueError("the call needs the agent's id; write Client(agent=...), or agent=...")
        return {"agent_id": agent, **more}

    def render(self, format: str, conversation: "Conversation", *, timeout: float = 30.0) -> JSON:
        """Return a conversation as members of an API's request. The daemon renders it, or else `agentshim render`.

        Raises ValueError if the API cannot represent the conversation, and Unreachable.
        """
        return self._rendered(_Call(timeout), format, conversation.to_dict(), "render")

    def read(self, format: str, answer: Mapping[str, Any], *, timeout: float = 30.0) -> "AssistantMessage":
        """Convert an API's answer to a message. Raises ValueError if it is not an answer of that API, and Unreachable."""
        return _assistant(self._rendered(_Call(timeout), format, answer, "read"))

    def _rendered(self, call: _Call, format: str, payload: Mapping[str, Any], verb: str) -> JSON:
        try:
            return self._post(call, _path("v1", verb, format=format), payload, call.deadline - call.reserve)
        except Unreachable as why:
            if why.refused:
                raise ValueError(str(why)) from None  # agentshim would refuse it, too
            log.info("the daemon did not %s: %s", verb, why)
            daemon = why
        with _neither(daemon):
            argv = [self._program(), "render", "--format", format, *(["--read"] if verb == "read" else [])]
        code, stdout, stderr = self._child(call, argv, payload)
        if code != 0:
            raise Unreachable(f"agentshim render ended with exit code {code}: {_short(stderr)}")
        return _object(stdout, "the answer of agentshim render")

    def hook(self, runtime: str, event: str, payload: Mapping[str, Any], *, timeout: float = 60.0) -> JSON:
        """Send a runtime's own hook payload, and return the answer in that runtime's protocol. Raises Unreachable."""
        return self._hook(_Call(timeout), runtime, event, payload)

    def _hook(self, call: _Call, runtime: str, event: str, payload: Mapping[str, Any]) -> JSON:
        query = {"unreachable": self.unreachable, **({"agent": self.agent} if self.agent else {})}
        return self._judge(call, runtime, event, _path("hook", runtime, event, **query), payload)

    def close(self) -> None:
        """Close the connections and end the threads. A daemon that this client started keeps running."""
        self._threads.shutdown(wait=False)
        self.__del__()

    def __del__(self) -> None:
        idle, self._idle = getattr(self, "_idle", ()), []
        for _, connection in idle:
            connection.close()

    def _judge(self, call: _Call, runtime: str, event: str, path: str, payload: Mapping[str, Any]) -> JSON:
        """Ask the daemon about one event, and `agentshim hook` if the daemon fails, within the call's deadline."""
        try:
            return _decided(runtime, self._post(call, path, payload, call.deadline - call.reserve), "the daemon's answer")
        except Unreachable as why:
            log.info("the daemon did not judge %s: %s", event, why)
            daemon = why
            if self._start:
                self._start_daemon()
        return _decided(runtime, self._shim(call, runtime, event, payload, daemon), "the answer of agentshim hook")

    def _unjudged(self, kind: str, why: Unreachable) -> JSON:
        if self.unreachable == "deny":
            decision = _CONTRACT.get(kind, _NOTHING).blocking or "continue"
        else:
            decision = "continue"
        log.warning("neither the daemon nor agentshim judged %s; the answer is %s: %s", kind, decision, why)
        verdict: JSON = {"decision": decision, "hook_errors": [str(why)]}
        if decision != "continue":
            verdict["reason"] = _refusal(why)
        return verdict

    # The daemon.

    def _post(self, call: _Call, path: str, body: Mapping[str, Any], deadline: float) -> JSON:
        return self._http(call, "POST", path, json.dumps(body).encode(), deadline)

    def _get(self, call: _Call, path: str) -> JSON:
        return self._http(call, "GET", path, None, call.deadline)

    def _http(self, call: _Call, method: str, path: str, data: Optional[bytes], deadline: float) -> JSON:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Unreachable("the call's deadline has passed")
        host, port, token = self._find()
        where, whole = (os.getpid(), host, port), False  # a forked process must not share connections
        connection = self._connection(where)
        # The timer also ends an answer that the daemon sends too slowly.
        watchdog: Optional[threading.Timer] = None
        try:
            connection.timeout = left
            if connection.sock is None:
                connection.connect()
            sock: Any = connection.sock  # the connection drops it before the answer is read
            sock.settimeout(left)
            watchdog = threading.Timer(left, _hang_up, [sock])
            watchdog.daemon = True
            watchdog.start()
            with call.waiting(lambda: _hang_up(sock)):
                connection.request(method, path, data, {
                    "Authorization": "Bearer " + token, "Content-Type": "application/json",
                    "Hook-Id": call.event_id, "Hook-Left": f"{int(left * 1000)}ms"})
                response = connection.getresponse()
                answer = _whole_body(response)
            whole = response.isclosed() and not response.will_close
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as err:
            raise Unreachable(f"the daemon at {host}:{port} did not answer: {err or type(err).__name__}") from err
        finally:
            if watchdog is not None:
                watchdog.cancel()
            if whole and len(self._idle) < 16:
                self._idle.append((where, connection))
            else:
                connection.close()
        if response.status == 204:
            return {}
        if response.status != 200:
            why = Unreachable(f"the daemon answered {response.status}: {_short(answer)}")
            why.refused = response.status == 400
            raise why
        if len(answer) > _LARGEST:  # a part of an answer can have another meaning
            raise Unreachable(f"the daemon's answer is larger than {_LARGEST} bytes")
        return _object(answer, "the daemon's answer")

    def _connection(self, where: "tuple[int, str, int]") -> http.client.HTTPConnection:
        """Return an idle connection that is still open, or a new one."""
        with contextlib.suppress(IndexError):
            while True:
                made_for, connection = self._idle.pop()
                if made_for == where and _silent(connection.sock):
                    return connection
                connection.close()
        return http.client.HTTPConnection(*where[1:])  # http.client uses no proxies

    def _find(self) -> "tuple[str, int, str]":
        """Return the daemon's host and port, and the token that identifies this user."""
        where, token_file = self._daemon, os.environ.get("HOOKFABRIC_DAEMON_TOKEN_FILE") or os.path.join(self._state, "daemon.token")
        if not where.startswith("http://"):
            found = _object(_own(where), where)
            where, token_file = str(found.get("url", "")), os.path.join(os.path.dirname(where), str(found.get("token_file", "")))
        url = urllib.parse.urlsplit(where)
        try:
            port = url.port or 80
        except ValueError as err:
            raise Unreachable(f"the daemon's address {where!r} is not valid: {err}") from err
        if url.scheme != "http" or url.hostname not in _LOOPBACK:
            raise Unreachable(f"the daemon's address is {where!r}; it must be an http:// URL on loopback, so that the token does not leave this machine")
        token = _own(token_file).decode(errors="replace").strip()
        if any(not 32 < ord(c) < 127 for c in token):  # http.client's error would show the token
            raise Unreachable(f"{token_file} has no valid token; remove it and start 'agentshim serve' again")
        return url.hostname, port, token

    def _start_daemon(self) -> None:
        """Start a daemon for later calls. It ends by itself if another daemon runs."""
        with self._starting:
            if self._started is not None and self._started.poll() is None:
                return
            try:
                self._started = subprocess.Popen(
                    [self._program(), "serve", "--state", self._state, "--idle", "30m"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True, env=_environment())
            except (OSError, Unreachable) as err:
                log.warning("agentshim serve cannot be started: %s", err)

    # The shim.

    def _program(self) -> str:
        program = shutil.which(self._agentshim)
        if program is None:
            raise Unreachable(f"the program {self._agentshim!r} was not found; put agentshim on the PATH or name it in HOOKFABRIC_AGENTSHIM")
        return program

    def _shim(self, call: _Call, runtime: str, event: str, payload: Mapping[str, Any], daemon: Unreachable) -> JSON:
        left = call.deadline - time.monotonic()
        if left <= 0:
            raise Unreachable("the daemon did not answer in time, and no time is left for agentshim hook")
        with _neither(daemon):
            program = self._program()
        argv = [program, "hook", "--runtime", runtime, "--event", event, "--event-id", call.event_id, "--state", self._state,
                "--timeout", f"{max(int(left * 1000), 1)}ms", "--unreachable", self.unreachable]
        if self.agent:
            argv += ["--agent", self.agent]
        return _said(runtime, event, *self._child(call, argv, payload))

    def _child(self, call: _Call, argv: List[str], payload: Mapping[str, Any]) -> "tuple[int, bytes, bytes]":
        """Run a program with the payload on stdin. Return its exit code, stdout and stderr."""
        left = call.deadline - time.monotonic()
        try:
            child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     start_new_session=True, env=_environment())
        except OSError as err:
            raise Unreachable(f"{argv[0]} cannot be started: {err}") from err
        try:
            with call.waiting(lambda: _kill(child)):
                stdout, stderr = child.communicate(json.dumps(payload).encode(), timeout=max(left, 0))
        except subprocess.TimeoutExpired as err:
            raise Unreachable(f"{argv[0]} did not answer in time") from err
        finally:
            _reap(child)
        return child.returncode, stdout, stderr


# The Claude Agent SDK.


def claude_hooks(
    existing: Optional[Mapping[str, Sequence[Any]]] = None,
    agent: Optional[str] = None,
    timeout: float = 60.0,
    *,
    client: Optional[Client] = None,
    events: Sequence[str] = EVENTS,
    unreachable: str = "deny",
) -> Dict[str, List[Any]]:
    """Return hooks for ClaudeAgentOptions(hooks=...): the existing ones, then the fabric's.

    existing is not changed, and hooks of the fabric in it are not added a second time.
    agent is the agent's id (default: claude-<session>).
    timeout is the SDK's timeout in seconds; the hooks answer a little earlier.
    client is the client to use (default: a new one with agent and unreachable).
    events are the SDK's names of the events to ask about.

    The values are HookMatcher objects if claude_agent_sdk can be imported, else dicts with the same fields.
    """
    if timeout <= 0:
        raise ValueError(f"timeout is {timeout}; write seconds above 0")
    client = client or Client(agent, unreachable=unreachable)
    hooks: Dict[str, List[Any]] = {event: list(matchers) for event, matchers in (existing or {}).items()}
    for event in events:
        there = hooks.setdefault(event, [])
        if not any(getattr(callback, "hookfabric", False) for matcher in there for callback in _callbacks(matcher)):
            there.append(_matcher(_callback(client, event, timeout), timeout))
    return hooks


def _callbacks(matcher: Any) -> Sequence[Any]:
    return (matcher.get("hooks") if isinstance(matcher, Mapping) else getattr(matcher, "hooks", None)) or ()


def _matcher(callback: Callable[..., Awaitable[JSON]], timeout: float) -> Any:
    """Return a matcher for all tools, because the fabric's configuration names the tools of each hook."""
    try:
        from claude_agent_sdk import HookMatcher  # type: ignore[import]
    except ImportError:
        return {"matcher": None, "hooks": [callback], "timeout": timeout}
    try:
        return HookMatcher(matcher=None, hooks=[callback], timeout=timeout)
    except TypeError:  # an older SDK without timeouts
        return HookMatcher(matcher=None, hooks=[callback])


def _callback(client: Client, event: str, timeout: float) -> Callable[[JSON, Optional[str], Any], Awaitable[JSON]]:
    async def ask_the_fabric(input_data: JSON, tool_use_id: Optional[str], context: Any) -> JSON:
        payload = dict(input_data)
        payload.setdefault("hook_event_name", event)
        if tool_use_id and not payload.get("tool_use_id"):
            payload["tool_use_id"] = tool_use_id
        call = _Call(timeout - _margin(timeout))  # includes the wait for a thread
        try:
            asked = asyncio.get_running_loop().run_in_executor(client._threads, client._hook, call, "claude", event, payload)
            return await asyncio.wait_for(asked, timeout - _margin(timeout))
        except Exception as why:  # the SDK needs an answer after every failure
            return _claude_unjudged(client, event, why)
        finally:
            call.give_up()  # the SDK may have cancelled it

    setattr(ask_the_fabric, "hookfabric", True)
    return ask_the_fabric


def _claude_unjudged(client: Client, event: str, why: BaseException) -> JSON:
    log.warning("neither the daemon nor agentshim judged %s (unreachable=%s): %s", event, client.unreachable, why or type(why).__name__)
    if client.unreachable != "deny":
        return {}
    return _claude_refusal(event, _refusal(why))


def _claude_refusal(event: str, reason: str) -> JSON:
    """Return a refusal in the SDK's form, or {} at an event that cannot be refused."""
    if event == "PreToolUse":
        return {"hookSpecificOutput": {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason}}
    if event == "PermissionRequest":
        return {"hookSpecificOutput": {"hookEventName": event, "decision": {"behavior": "deny", "message": reason}}}
    if event == "UserPromptSubmit":
        return {"decision": "block", "reason": reason}
    return {}


def _said(runtime: str, event: str, code: int, stdout: bytes, stderr: bytes) -> JSON:
    """Read the answer of `agentshim hook`. Exit code 2 is a refusal with its reason on stderr."""
    if code == 2 and runtime == "claude":
        return _claude_refusal(event, _short(stderr) or "the shim refused the call and gave no reason")
    if code != 0 and not (runtime == "generic" and code == 1 and stdout.strip()):
        raise Unreachable(f"agentshim hook ended with exit code {code}: {_short(stderr)}")
    if stderr.strip():
        log.warning("%s", _short(stderr))
    if not stdout.strip() and runtime == "generic":
        raise Unreachable("agentshim hook gave no verdict")
    return _object(stdout, "the answer of agentshim hook")


def _decided(runtime: str, value: JSON, what: str) -> JSON:
    """Return value. In the generic form it must have a decision; in a runtime's own form it may be empty."""
    if runtime == "generic" and value.get("decision") not in _DECISIONS:
        raise Unreachable(f"{what} has no known decision")
    return value


# The contract of the events: which event permits which decision.


class AgentEvent(str, enum.Enum):
    """The events of an agent's loop. A value is the fabric's name of the event.

    AgentEvent also accepts the names of its members, such as "QUERY_END", and "Stop" for BEFORE_FINAL_RESPONSE.
    """

    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    BEFORE_LLM_CALL = "BeforeLLMCall"
    AFTER_LLM_CALL = "AfterLLMCall"
    BEFORE_TOOL_EXECUTION = "PreToolUse"
    AFTER_TOOL_EXECUTION = "PostToolUse"
    ON_TOOL_ERROR = "ToolError"
    BEFORE_FINAL_RESPONSE = "BeforeFinalResponse"
    QUERY_END = "QueryEnd"

    @classmethod
    def _missing_(cls, value: object) -> "Optional[AgentEvent]":
        return cls.__members__.get("BEFORE_FINAL_RESPONSE" if value == "Stop" else value) if isinstance(value, str) else None


class HookDecision(str, enum.Enum):
    """The decision of a hook. ALLOW, ASK and DENY are for tool calls; a DENY after a call is feedback to the model."""

    CONTINUE = "continue"
    RETRY = "retry"
    FAIL = "fail"
    STOP = "stop"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class _Contract(NamedTuple):
    """What an event permits. A test compares this table with the fabric's own."""

    decisions: Tuple[str, ...]
    stop: str = ""  # the value of a stop: message, tool_result or response
    rewrite: str = ""  # what a hook may replace: input, output, message or response
    chains: bool = False  # True: the first decisive result ends the chain; False: only a stop ends it, and earlier results stay
    blocking: str = ""  # the decision when a fail-closed hook fails; empty: the failure is only recorded


_CONTRACT: Dict[str, _Contract] = {
    "SessionStart": _Contract(("continue",)),
    "UserPromptSubmit": _Contract(("continue", "deny"), chains=True, blocking="deny"),
    "BeforeLLMCall": _Contract(("continue", "fail", "stop"), "message", "", True, "fail"),
    "AfterLLMCall": _Contract(("continue", "retry", "fail", "stop"), "message", "message", True, "fail"),
    "PreToolUse": _Contract(("continue", "allow", "ask", "deny", "fail", "stop"), "tool_result", "input", True, "deny"),
    "PostToolUse": _Contract(("continue", "deny", "fail", "stop"), "tool_result", "output"),
    "ToolError": _Contract(("continue", "deny", "fail", "stop"), "tool_result", "output"),
    "BeforeFinalResponse": _Contract(("continue", "retry", "fail", "stop"), "message", "message", True, "fail"),
    "QueryEnd": _Contract(("continue", "fail", "stop"), "response", "response"),
    "SessionEnd": _Contract(("continue",)),
}

_NOTHING = _Contract(())  # for an unknown event


def _terminal(event: str, decision: str) -> bool:
    """Report whether this decision ends the chain of hooks."""
    contract = _CONTRACT.get(event, _NOTHING)
    return bool(contract.stop) if decision == "stop" else contract.chains and decision in ("deny", "fail", "retry")


def _ended(event: str, verdict: JSON) -> bool:
    """Report whether a verdict ends the chain: by its decision, or by a stop after a fail, which stays a fail."""
    decision: str = verdict.get("decision", "")
    trail: Any = verdict.get("executed_hooks")
    return _terminal(event, decision) or decision == "fail" and bool(trail) and _terminal(event, trail[-1].get("decision", ""))


# Folding: what one hook's outcome contributes to the verdict, and how several combine. The fabric folds the outcomes of remote
# hooks in the same way. A test feeds the same outcomes to both.

_MAX_RESULT, _MAX_REASON, _MAX_EFFECTS, _MAX_FLAGS, _MAX_FLAG, _MAX_FLAG_VALUE = 1 << 20, 4 << 10, 64, 256, 128, 16 << 10
_SAYING = {
    "deadline": "did not answer before its deadline",
    "error": "failed",
    "no_worker": "no worker serves its pool",
    "lost": "its worker was lost before it answered",
    "busy": "every worker of its pool stayed busy until its deadline",
    "load_error": "its handler cannot be loaded",
}
_STOP_VALUES = {"message": "a message: a string, or an object whose role is not system, user or tool", "tool_result": "a tool result: any JSON value except null",
                "response": "a response: any JSON value except null", "": "none"}


_RESULT = {"decision", "reason", "updated_input", "updated_output", "value", "effects", "injections", "hook_errors"}


def _settle(hook: JSON, outcome: JSON) -> JSON:
    """Return a hook's part of the verdict. Illegal parts of its answer become errors, and its failure policy decides failures."""
    s = _Settling(hook, outcome.get("kind") or "ok")
    if outcome.get("error"):
        s.note(outcome["error"])
    elif s.kind != "ok":
        s.note(_SAYING[s.kind])
    if s.kind in ("ok", "error"):
        s.take(outcome.get("result") or {})
    if s.kind != "ok":
        s.apply_policy()
    s.strip()
    executed = {"hook": s.name, "decision": s.out.get("decision"), "reason": s.out.get("reason"), "outcome": s.kind, "duration": outcome.get("took"),
                "worker": outcome.get("worker"), "mode": hook.get("mode"), "error": s.failure}
    s.out["executed_hooks"] = [{k: v for k, v in executed.items() if v}]
    return s.out


class _Settling:
    def __init__(self, hook: JSON, kind: str) -> None:
        self.hook, self.name, self.event = hook, hook["name"], hook["event"]
        self.contract = _CONTRACT.get(self.event, _NOTHING)
        self.kind = "deadline" if kind == "late" else kind if kind == "ok" or kind in _SAYING else "error"
        self.out: JSON = {}
        self.failure = ""  # the first error

    def note(self, what: str) -> None:
        """Record an error without changing the outcome."""
        what = _cut(what, _MAX_REASON)
        self.failure = self.failure or what
        self.out.setdefault("hook_errors", []).append(f"hook {_quoted(self.name)}: {what}")

    def fault(self, what: str) -> None:
        """Make the outcome an error: the failure policy decides."""
        self.note(what)
        self.kind = "error"

    def misshapen(self, what: str) -> None:
        """Record a malformed change. For a fail-closed hook this is a failure: the call must not pass unchanged."""
        if self.hook.get("fail_closed"):
            self.fault(what)
        else:
            self.note(what)

    def take(self, result: JSON) -> None:
        size = _size(result)
        if size > _MAX_RESULT:
            self.fault(f"answered with {size} bytes; an answer has at most {_MAX_RESULT}")
            result = {"decision": result.get("decision"), "reason": _cut(result.get("reason") or "", _MAX_REASON)}
        for error in result.get("hook_errors") or ():
            self.note(error)
        self.decide(result)
        self.updates(result)
        self.value(result)
        self.effects(result.get("effects") or [])
        self.inject(result.get("injections") or [])

    def decide(self, result: JSON) -> None:
        decision, legal = result.get("decision") or "", self.contract.decisions
        if not decision and not result.keys() <= _RESULT and all(result.get(field) is None for field in _RESULT - {"decision", "reason"}):
            decision = "(no known member)"
        if decision == "reject" and "fail" in legal:
            decision = "fail"
        if decision in ("", "continue") or decision == "allow" and decision not in legal:
            return
        if decision not in legal:
            self.fault(f"decided {_quoted(_cut(decision, 40))}; at {self.event} write one of {', '.join(legal)}")
        elif decision == "stop" and not _fits_stop(result.get("value"), self.contract.stop):
            self.fault(f"decided stop without its value; at {self.event} a stop needs {_STOP_VALUES[self.contract.stop]}")
        else:
            self.out["decision"] = decision
            if result.get("reason"):
                self.out["reason"] = result["reason"]
            if decision == "allow" and self.hook.get("auto_approve"):
                self.out["auto_approve"] = True

    def updates(self, result: JSON) -> None:
        for field, of in (("updated_input", "input"), ("updated_output", "output")):
            if result.get(field) is None:
                continue
            if self.contract.rewrite == of:
                self.replace(field, result[field])
            else:
                self.note(f"{field} dropped: {self.event} has no tool {of} to rewrite")

    def value(self, result: JSON) -> None:
        value, of = result.get("value"), self.contract.rewrite
        if value is None:
            return
        if self.out.get("decision") == "stop":
            self.out["value"] = value
        elif result.get("decision") == "stop" and "stop" in self.contract.decisions:
            pass  # decide has already reported this value
        elif of in ("input", "output") and result.get("updated_" + of) is not None:
            self.note(f"value dropped: updated_{of} already replaces the tool's {of}")
        elif of:
            self.replace("value", value)
        elif "stop" in self.contract.decisions:
            self.note(f"value dropped: at {self.event} only a stop has a value")
        else:
            self.note(f"value dropped: a hook at {self.event} cannot set a value")

    def replace(self, field: str, value: Any) -> None:
        of = self.contract.rewrite
        if self.hook.get("readonly"):
            self.fault(f"{field} dropped: the hook is readonly; configure readonly: false for a hook that rewrites")
        elif of == "input" and not isinstance(value, dict):
            self.misshapen(f"{field} dropped: it must be the tool's whole input as a JSON object")
        elif of == "message" and not _models_message(value):
            self.misshapen(f"{field} dropped: a message must be a string, or an object whose role is not system, user or tool")
        else:
            self.out["updated_" + of if of in ("input", "output") else "value"] = value

    def effects(self, effects: List[Any]) -> None:
        if len(effects) > _MAX_EFFECTS:
            self.misshapen(f"the answer has {len(effects)} effects; only the first {_MAX_EFFECTS} apply")
        for effect in effects[:_MAX_EFFECTS]:
            wrong = _effect_fault(effect)
            if wrong:
                self.misshapen(f"effect dropped: {wrong}")
            else:
                self.out.setdefault("effects", []).append(effect)

    def inject(self, injections: List[JSON]) -> None:
        for injection in injections:
            strategy = injection.get("strategy") or "tool_result"
            if not injection.get("content"):
                continue
            if strategy not in ("tool_result", "user_message"):
                self.note(f"the injection strategy {_quoted(_cut(strategy, 40))} is unknown, so tool_result applies; write tool_result or user_message")
                strategy = "tool_result"
            self.out.setdefault("injections", []).append({"content": injection["content"], "strategy": strategy, "hook": self.name})

    def apply_policy(self) -> None:
        """Apply the failure policy. A refusal in a failed hook's answer stays; an allow is dropped."""
        if self.out.get("decision") == "allow":
            self.drop("decision", "reason", "auto_approve")
        if not self.hook.get("fail_closed") and self.kind != "load_error":
            return
        if not self.contract.blocking or _terminal(self.event, self.out.get("decision", "")):
            return
        why = "guards this call" if self.kind == "load_error" else "is fail-closed"
        self.out["decision"] = self.contract.blocking
        self.out["reason"] = f"hook {_quoted(self.name)} {why} and gave no answer: {self.failure}"
        self.drop("auto_approve")

    def strip(self) -> None:
        """Drop the rewrites from a result that ends the chain."""
        if _terminal(self.event, self.out.get("decision", "")):
            self.drop("updated_input", "updated_output")
            if self.out["decision"] != "stop":
                self.drop("value")

    def drop(self, *fields: str) -> None:
        for field in fields:
            self.out.pop(field, None)


def _fold(event: str, a: JSON, b: JSON) -> JSON:
    """Combine the verdicts of two neighbouring runs of hooks; a ran before b. {} means no opinion."""
    if _ended(event, a):
        return a
    trail = {field: a.get(field, []) + b.get(field, []) for field in ("executed_hooks", "hook_errors", "injections")}
    if _CONTRACT.get(event, _NOTHING).chains and _terminal(event, b.get("decision", "")):
        end = {**b, **trail}
    else:
        end = {**a, **trail, "effects": a.get("effects", []) + b.get("effects", [])}
        for field in ("updated_input", "updated_output", "value"):
            if field in b:
                end[field] = b[field]  # b's hook saw the value of a
        rank_a, rank_b = _RANK.get(a.get("decision", ""), 0), _RANK.get(b.get("decision", ""), 0)
        if rank_a < rank_b:
            for field in ("decision", "reason", "auto_approve"):
                end.pop(field, None)
                if field in b:
                    end[field] = b[field]
        elif rank_a == rank_b > 0 and b.get("auto_approve"):
            end["auto_approve"] = True
    return {k: v for k, v in end.items() if v != []or k in ("updated_output", "value")}


def _with_feedback(event: str, verdict: JSON) -> JSON:
    """Inject the reasons of denies that another decision replaced, at events where a deny is feedback to the agent."""
    if _CONTRACT.get(event, _NOTHING).chains:
        return verdict
    injections = list(verdict.get("injections", ()))
    for row in verdict.get("executed_hooks", ()):
        reason = row.get("reason")
        if row.get("decision") != "deny" or not reason or verdict.get("decision") == "deny" and reason == verdict.get("reason"):
            continue
        if not any((one.get("hook"), one.get("content")) == (row["hook"], reason) for one in injections):
            injections.append({"content": reason, "strategy": "tool_result", "hook": row["hook"]})
    return {**verdict, "injections": injections} if injections else verdict


#: The order of decisions where none ends the chain: the highest wins, and the first of equals keeps its reason.
_RANK = {"allow": 1, "ask": 2, "deny": 2, "stop": 3, "fail": 4}


def _models_message(value: Any) -> bool:
    """Report whether value can be a model's message: a text, or an object without another author's role."""
    if isinstance(value, dict):
        role = value.get("role")
        return not (isinstance(role, str) and role in ("system", "user", "tool"))
    return isinstance(value, str)


def _fits_stop(value: Any, kind: str) -> bool:
    return _models_message(value) if kind == "message" else kind in ("tool_result", "response") and value is not None


def _size(result: JSON) -> int:
    size = sum(len(_bytes(result.get(field) or "")) for field in ("decision", "reason"))
    size += sum(len(_dumps(result[field])) for field in ("updated_input", "updated_output", "value") if field in result)
    size += sum(len(_dumps(effect)) for effect in result.get("effects") or ())
    size += sum(len(_bytes(i.get("content") or "")) + len(_bytes(i.get("strategy") or "")) for i in result.get("injections") or ())
    return size + sum(len(_bytes(error)) for error in result.get("hook_errors") or ())


# Effects as data.


def _effect_fault(effect: Any) -> str:
    """Return what is wrong with an effect, as a sentence; empty if it is valid."""
    example = '{"append_message": {"role": "system", "content": "…"}}'
    if not isinstance(effect, dict):
        return f"an effect is a JSON object such as {example}, not {_kind(effect)}"
    if len(effect) != 1:
        return f"an effect has one member, append_message, set_flag or drop_messages, and this one has {len(effect)}"
    name, body = next(iter(effect.items()))
    if name not in ("append_message", "set_flag", "drop_messages"):
        return f"there is no effect {_quoted(name[:40])}; write append_message, set_flag or drop_messages"
    if not isinstance(body, dict):
        return f"{name} is {_kind(body)}; write an object such as {example}"
    if name == "set_flag":
        return _flags_fault(body)
    for field, kind in (("role", str), ("content", str)) if name == "append_message" else (("first", int), ("last", int), ("role", str), ("containing", str)):
        if body.get(field) is not None and (not isinstance(body[field], kind) or isinstance(body[field], bool)):
            written = _dumps(body[field]).decode()
            is_what = written if kind is int and isinstance(body[field], float) else _kind(body[field])
            return f"the effect's {name}.{field} is {is_what}; it must be {'a string' if kind is str else 'a whole number'}"
    if name == "append_message":
        return _append_fault(body)
    for field in sorted(body):
        if field not in ("first", "last", "role", "containing"):  # without the unknown filter, the effect would remove more than intended
            return f"drop_messages has no {_quoted(field[:40])}; write first, last, role or containing"
    return _drop_fault(body)


def _append_fault(body: JSON) -> str:
    if (body.get("role") or "system") not in ("system", "user", "assistant"):
        return f"append_message has the role {_quoted(body['role'][:40])}; write system, user or assistant"
    return "" if body.get("content") else "append_message has no content; write the text"


def _drop_fault(body: JSON) -> str:
    first, last, role = body.get("first") or 0, body.get("last") or 0, body.get("role") or ""
    if first < 0 or last < 0:
        return "drop_messages counts from 1; write first or last as a number above 0"
    if first and last:
        return "drop_messages has first and last; write one of them"
    if not (first or last or role or body.get("containing")):
        return "drop_messages picks nothing; write first, last, role or containing"
    if role not in ("", "system", "user", "assistant", "tool"):
        return f"drop_messages has the role {_quoted(role[:40])}; write system, user, assistant or tool"
    return ""


def _flags_fault(flags: JSON) -> str:
    if not 0 < len(flags) <= _MAX_FLAGS:
        return f"set_flag sets {len(flags)} flags; set 1 to {_MAX_FLAGS}"
    for name, value in flags.items():
        if not 0 < len(_bytes(name)) <= _MAX_FLAG:
            return f"set_flag has a name of {len(_bytes(name))} bytes; write 1 to {_MAX_FLAG}"
        if len(_dumps(value)) > _MAX_FLAG_VALUE:
            return f"the flag {_quoted(name[:40])} has {len(_dumps(value))} bytes; write at most {_MAX_FLAG_VALUE}"
    return ""


def _apply_effect(effect: JSON, history: "List[Message]", flags: JSON) -> str:
    """Apply a valid effect. Return an error as a sentence, or an empty string."""
    if "append_message" in effect:
        body = effect["append_message"]
        history.append(_ROLES[body.get("role") or "system"](body["content"]))
    elif "drop_messages" in effect:
        dropped = _dropped(history, **{k: v for k, v in effect["drop_messages"].items() if v and k in ("first", "last", "role", "containing")})
        history[:] = [message for i, message in enumerate(history) if i not in dropped]
    else:
        for name, value in effect["set_flag"].items():
            if value is None:
                flags.pop(name, None)
            elif name in flags or len(flags) < _MAX_FLAGS:
                flags[name] = value
            else:
                return f"the flag {_quoted(name[:40])} was not set: the agent has {_MAX_FLAGS} flags already"
    return ""


def _dropped(history: "Sequence[Message]", first: int = 0, last: int = 0, role: str = "", containing: str = "") -> Set[int]:
    """Return the indexes of the messages to remove. A call and its results are removed together; a call that still runs stays."""
    fit = [i for i, message in enumerate(history) if (message.role == role if role else message.role != "system") and (not containing or _contains(message, containing))]
    picked = set(fit[:first] if first else fit[-last:] if last else fit)
    for turn, is_open in _turns(history):
        if picked.intersection(turn):
            picked = picked.difference(turn) if is_open else picked.union(turn)
    return picked


def _turns(history: "Sequence[Message]") -> "List[tuple[List[int], bool]]":
    """Return, for each message with calls, the indexes of it and its results, and whether a call has no result yet."""
    turns: List[List[int]] = []
    for i, message in enumerate(history):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            turns.append([i])
        elif isinstance(message, ToolMessage) and turns:
            turns[-1].append(i)
    return [(turn, len(turn) - 1 < len(history[turn[0]].tool_calls)) for turn in turns]  # type: ignore[attr-defined]


# Messages, calls and their results.


@dataclasses.dataclass
class ToolCall:
    """A call that the model requests. input is an object, or the model's text if that is not a JSON object."""

    id: str = ""
    name: str = ""
    input: Any = dataclasses.field(default_factory=dict)

    def to_dict(self) -> JSON:
        return {**_sparse(id=self.id), "name": self.name, "input": _plain(self.input)}


@dataclasses.dataclass
class ToolResult:
    """The result of a call. result is any JSON; a non-empty error says why the call failed or was not made.

    notes are texts of hooks beside the result.
    """

    tool_name: str = ""
    tool_call_id: str = ""
    result: Any = None
    error: Optional[str] = None
    notes: List[str] = dataclasses.field(default_factory=list)

    @property
    def status(self) -> str:
        """"success" or "error"."""
        return "error" if self.error else "success"

    def to_dict(self) -> JSON:
        d = _sparse(id=self.tool_call_id, name=self.tool_name, error=self.error or "", notes=[str(note) for note in self.notes])
        d.setdefault("name", "")
        if self.result is not None or not self.error:
            d["output"] = _plain(self.result)
        return d


class Message:
    """A message of a conversation, independent of any API."""

    role = ""
    content: str = ""

    def to_dict(self) -> JSON:
        return {"role": self.role, "content": str(self.content or "")}


@dataclasses.dataclass
class SystemMessage(Message):
    """An instruction to the model."""

    content: str = ""
    role = "system"


@dataclasses.dataclass
class HumanMessage(Message):
    """A message of the user, or of a hook."""

    content: str = ""
    role = "user"


@dataclasses.dataclass
class AssistantMessage(Message):
    """A message of the model. native is the original message of its API, with members that this class lacks."""

    content: str = ""
    tool_calls: List[ToolCall] = dataclasses.field(default_factory=list)
    native: Any = None
    role = "assistant"

    def to_dict(self) -> JSON:
        return {**super().to_dict(), **_sparse(tool_calls=[call.to_dict() for call in self.tool_calls], native=_plain(self.native))}


@dataclasses.dataclass
class ToolMessage(Message):
    """The result of a call, as a message to the model."""

    result: ToolResult = dataclasses.field(default_factory=ToolResult)
    role = "tool"

    @property
    def content(self) -> str:  # type: ignore[override]
        """The result, or its error, as a text."""
        if self.result.error:
            return self.result.error
        return self.result.result if isinstance(self.result.result, str) else _dumps(_plain(self.result.result)).decode()

    def to_dict(self) -> JSON:
        return {"role": self.role, "content": "", "tool_result": self.result.to_dict()}


def message(value: Mapping[str, Any]) -> Message:
    """Convert a dict in the fabric's form, as to_dict returns it, to a message."""
    role, result = value.get("role") or "assistant", value.get("tool_result") or {}
    if role == "tool":
        return ToolMessage(ToolResult(result.get("name") or "", result.get("id") or "", result.get("output"), result.get("error"), list(result.get("notes") or ())))
    return _assistant(value) if role == "assistant" else _ROLES[role](value.get("content") or "")


_M = typing.TypeVar("_M", bound=Message)


def _checked(message: _M) -> _M:
    """Convert each call of a message to a ToolCall."""
    if isinstance(message, AssistantMessage):
        message.tool_calls = [_call(call) for call in message.tool_calls or ()]
    return message


def _message_of(value: Any) -> Message:
    if isinstance(value, Message):
        return _checked(value)
    if isinstance(value, Mapping):
        return message(value)
    raise TypeError(f"the conversation has {_kind(value)} in it; append a SystemMessage, HumanMessage, AssistantMessage or ToolMessage")


_ROLES: Dict[str, Callable[[str], Message]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AssistantMessage}


def _text(message: Message) -> str:
    return str(message.content or "")


def _contains(message: Message, part: str) -> bool:
    if isinstance(message, ToolMessage):
        return part in _text(ToolMessage(ToolResult(result=message.result.result))) or part in (message.result.error or "")
    return part in _text(message)


def _assistant(value: Any) -> AssistantMessage:
    """Convert a model's answer to a message: an AssistantMessage, a text, or an object in the fabric's form."""
    if isinstance(value, AssistantMessage):
        return _checked(value)
    if isinstance(value, str):
        return AssistantMessage(value)
    if not isinstance(value, Mapping) or value.get("role") not in (None, "", "assistant"):
        raise TypeError(f"{_kind(value)} is not a message of a model; return an AssistantMessage, a text, or "
                        '{"role": "assistant", "content": "…", "tool_calls": […]}')
    value = _completion(value)
    calls, content = value.get("tool_calls") or [], value.get("content")
    if not isinstance(content, str) and content is not None or not isinstance(calls, list) or not _says(value):
        return AssistantMessage(native=dict(value))  # an object in a runtime's own form
    return AssistantMessage(content or "", [_call(call) for call in calls], value.get("native"))


def _says(value: Mapping[str, Any]) -> bool:
    """Report whether an object is a message in the fabric's form. An object in another form must not become an empty message."""
    known = {"role", "content", "tool_calls", "tool_result", "native"}
    if any(isinstance(call, Mapping) and not call.get("name") for call in value.get("tool_calls") or ()):
        return False
    return isinstance(value.get("content"), str) or bool(value.get("tool_calls")) or value.get("native") is not None or set(value) <= known


def _completion(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a Chat Completions message, whose calls are one level deeper, to the fabric's form. Return other messages unchanged."""
    calls = value.get("tool_calls")
    if not isinstance(calls, list) or not any(isinstance(call, Mapping) and not call.get("name") for call in calls):
        return value
    ours = []
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not function.get("name"):
            return value
        ours.append({"id": call.get("id"), "name": function["name"], "input": _arguments(function.get("arguments"))})
    return {**value, "tool_calls": ours, "native": dict(value)}


def _arguments(text: Any) -> Any:
    """Parse the JSON object in a string. Return the text itself if it has no JSON object."""
    try:
        found = (json.loads(text, object_pairs_hook=_once) if text.strip() else {}) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def _once(pairs: Sequence[Tuple[str, Any]]) -> JSON:
    """Refuse an object with a duplicate name, because two parsers can read it differently."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the object has a duplicate name")
    return found


def _revised(old: AssistantMessage, value: Any) -> AssistantMessage:
    """Return the message that replaces old. A text replaces only its content and keeps its calls. A changed message loses native,
    because that describes the old one."""
    new = dataclasses.replace(old, content=value) if isinstance(value, str) else _assistant(value)
    if new.native == old.native and (new.content != old.content or new.tool_calls != old.tool_calls):
        return dataclasses.replace(new, native=None)
    return new


def _call(value: Any) -> ToolCall:
    if isinstance(value, ToolCall):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f'a tool call is {_kind(value)}; write {{"id": "…", "name": "…", "input": {{}}}}')
    return ToolCall(str(value.get("id") or ""), str(value.get("name") or ""), value.get("input", {}))


@dataclasses.dataclass
class Response:
    """The result of a query.

    status is one of answered, stopped (a hook gave the answer), failed (by a hook or the loop), rejected (a hook denied the prompt),
    terminated, cancelled, model_error and max_iterations. No hook can change it. error says why there is no answer. reason is
    the reason of the hook that ended the query. iterations counts the model calls.
    """

    content: str = ""
    status: str = "answered"
    message: Optional[AssistantMessage] = None
    error: str = ""
    reason: str = ""
    iterations: int = 0
    hook_errors: List[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return self.content

    def to_dict(self) -> JSON:
        return {"content": self.content, "status": self.status, "iterations": self.iterations,
                **_sparse(message=self.message and self.message.to_dict(), error=self.error, reason=self.reason, hook_errors=self.hook_errors[:200])}


class QueryFailed(Exception):
    """A query ended without an answer. response has the details; if the model failed, __cause__ is its exception."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"the query ended as {response.status}: {response.error or response.reason or 'no reason was given'}")
        self.response = response


# In-process hooks.


@dataclasses.dataclass
class AgentStatus:
    """The argument of conditions, effects and values. A field that the event lacks has the value None. Each hook sees the changes of the
    hooks before it."""

    event: AgentEvent
    agent: "Agent"
    iteration: int
    tool_call: Optional[ToolCall] = None
    tool_result: Optional[ToolResult] = None
    assistant_message: Optional[AssistantMessage] = None
    error: Optional[str] = None


class Registration:
    """A hook under construction. handle or reject registers it."""

    def __init__(self, agent: "Agent", event: AgentEvent, name: str, fail_closed: bool, timeout: float) -> None:
        self._agent, self._event, self._name, self._fail_closed, self._timeout = agent, event, name, fail_closed, timeout
        self._conditions: List[Callable[..., Any]] = []

    def when(self, condition: Callable[[AgentStatus], Any]) -> "Registration":
        """Run the hook only if condition(status), sync or async, is true. If called several times, all conditions must be true.

        A condition that raises an exception counts as true, and the response's hook_errors say so. One that exceeds the hook's
        timeout is a failure of the hook."""
        if not callable(condition):
            raise TypeError(f"the condition is {_kind(condition)}; write a function of one argument, the status")
        self._conditions.append(condition)
        return self

    def handle(
        self,
        decision: "Union[HookDecision, str]" = HookDecision.CONTINUE,
        value: Any = None,
        effects: "Union[None, Callable[..., Any], JSON, Sequence[Any]]" = None,
        *,
        reason: str = "",
        inject: "Union[None, str, JSON, Sequence[Any]]" = None,
        fail_closed: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> "Hook":
        """Define what the hook does, and register it. It runs all effects in order, then the value, then the decision.

        effects are functions of the status, sync or async, or data such as {"set_flag": {"seen": True}}.
        value is the new value, or a function of the status and the current value.
        inject is content for the model: a text, or {"content", "strategy"}.
        timeout is in seconds. A hook that fails or exceeds it has no opinion; with fail_closed it refuses.
        Raises RuntimeError if the event does not permit the decision or the value.
        """
        hook = Hook(self._event, self._name, tuple(self._conditions), _word(decision), value, _listed(effects), reason, _injections(inject),
                    self._fail_closed if fail_closed is None else fail_closed, self._timeout if timeout is None else timeout)
        hook._check()
        return self._agent._add(hook)

    def reject(self, reason: str) -> "Hook":
        """End the query with this reason."""
        return self.handle(HookDecision.FAIL, reason=reason)


class Hook:
    """A registered hook. remove() unregisters it."""

    def __init__(self, event: AgentEvent, name: str, conditions: Tuple[Callable[..., Any], ...], decision: str, value: Any,
                 effects: List[Any], reason: str, injections: List[JSON], fail_closed: bool, timeout: float) -> None:
        self.event, self.name, self.decision = event, name, decision
        self._conditions, self._value, self._effects, self._reason, self._injections = conditions, value, effects, reason, injections
        self._fail_closed, self._timeout = fail_closed, timeout
        self._agent: Optional[Agent] = None

    def remove(self) -> None:
        if self._agent is not None and self in self._agent._hooks:
            self._agent._hooks.remove(self)

    def _check(self) -> None:
        contract, event = _CONTRACT[self.event.value], self.event
        if not all(isinstance(text, str) for text in (self._reason, *(one.get(k, "") for one in self._injections for k in ("content", "strategy")))):
            raise TypeError("a reason must be a text, and so must the content and the strategy of an injection")
        if self.decision not in contract.decisions:
            raise RuntimeError(f"{event.name} does not permit {self.decision.upper()}; write one of {', '.join(d.upper() for d in contract.decisions)}")
        if self.decision == "stop" and self._value is None:
            raise RuntimeError(f"a STOP at {event.name} needs a value: {_STOP_VALUES[contract.stop]}")
        if self._value is not None and self.decision != "stop" and not contract.rewrite:
            raise RuntimeError(f"{event.name} has nothing that a value can replace" + ("; only a STOP has a value there" if contract.stop else ""))
        if self._timeout <= 0:
            raise ValueError(f"the hook's timeout is {self._timeout}; write seconds above 0")
        for effect in self._effects:
            wrong = "" if callable(effect) else _effect_fault(effect)
            if wrong:
                raise RuntimeError(f"{wrong}; or write a function of the status")

    async def _run(self, agent: "Agent", run: "_Query", moment: "_Moment") -> "Optional[tuple[JSON, Any]]":
        """Return the hook's outcome and its value, or None if its condition is false."""
        began, value = time.monotonic(), None
        end = began + self._timeout
        outcome: JSON = {"result": {}}
        errors: List[str] = []
        try:
            if not await self._holds(agent, moment, end, errors):
                return None
            for effect in self._effects:
                end += await agent._apply(run, effect, moment, end)
            value = await self._replacement(agent, moment, end)
            outcome["result"] = self._says(moment, value)
        except _TooLate as late:
            outcome.update(kind="deadline", error="; ".join([*errors, str(late)]))
        except Exception as err:
            log.warning("the hook %r failed at %s", self.name, self.event.value, exc_info=True)
            outcome.update(kind="error", error="; ".join([*errors, _failure(err)]))
        else:
            outcome["result"].update(_sparse(hook_errors=errors))
        outcome["took"] = f"{(time.monotonic() - began) * 1000:.3f}ms"
        return outcome, value

    async def _holds(self, agent: "Agent", moment: "_Moment", end: float, errors: List[str]) -> bool:
        for condition in self._conditions:
            try:
                if not await _called(condition, (moment.status(agent),), end):
                    return False
            except _TooLate:
                raise  # the hook's timeout is over
            except Exception as err:  # its result is unknown, so the hook runs
                errors.append(f"its condition failed and counts as true: {_failure(err)}")
        return True

    async def _replacement(self, agent: "Agent", moment: "_Moment", end: float) -> Any:
        if not callable(self._value):
            return copy.deepcopy(self._value)
        arguments = (moment.status(agent), copy.deepcopy(moment.value))
        value = await _called(self._value, arguments[:_arity(self._value, 2)], end)
        if value is None:
            raise TypeError(f"its value function returned None; at {self.event.name} return the current value, changed or not")
        return value

    def _says(self, moment: "_Moment", value: Any) -> JSON:
        says = _sparse(decision=self.decision, reason=self._reason, injections=self._injections)
        if value is not None:
            says.update(moment.written(value, self.decision == "stop"))
        return says

    def _card(self) -> JSON:
        return {"name": self.name, "event": self.event.value, "fail_closed": self._fail_closed}


# One event of a query.


class _Moment:
    """One event, with the value as the hooks before have left it.

    call is the tool's call if the value is its result. place is the call's index in its turn; None: the event is not about a tool.
    mute=True asks the fabric to deliver no waiting content.
    """

    def __init__(self, event: AgentEvent, iteration: int, value: Any = None, *, call: Optional[ToolCall] = None, prompt: str = "",
                 mute: bool = False, place: Optional[int] = None) -> None:
        self.event, self.iteration, self.before = event, iteration, value
        self.value: Any = value
        self.stop: Any = None
        self.call, self.prompt, self.mute, self.place = call, prompt, mute, place

    def status(self, agent: "Agent") -> AgentStatus:
        """Return a copy for one hook, so that a hook cannot change what others see."""
        shown = copy.deepcopy(self.value)
        status = AgentStatus(self.event, agent, self.iteration)
        if isinstance(shown, ToolCall):
            status.tool_call = shown
        elif isinstance(shown, ToolResult):
            status.tool_result = shown
            status.error = shown.error if self.event is AgentEvent.ON_TOOL_ERROR else None
        elif isinstance(shown, AssistantMessage):
            status.assistant_message = shown
        return status

    def body(self) -> JSON:
        """Return the event in the fabric's form."""
        body: JSON = {"hook_type": self.event.value, **_sparse(iteration=self.iteration, prompt=self.prompt)}
        if self.call is not None:
            call = self.value if isinstance(self.value, ToolCall) else self.call
            body.update(tool_name=call.name, tool_input=_plain(call.input) if isinstance(call.input, Mapping) else {}, **_sparse(tool_use_id=call.id))
        if isinstance(self.value, ToolResult):
            body.update(_sparse(error=self.value.error or ""))
            if self.value.result is not None or not self.value.error:
                body["tool_output"] = _plain(self.value.result)
        elif isinstance(self.value, AssistantMessage):
            body["message"] = self.value.to_dict()
        elif isinstance(self.value, Response):
            body["response"] = self.value.to_dict()
        return body

    def written(self, value: Any, stop: bool) -> JSON:
        """Convert a hook's value to the fabric's form. Raises TypeError for a wrong type."""
        contract = _CONTRACT[self.event.value]
        kind = contract.stop if stop else contract.rewrite
        if kind == "message":
            return {"value": value if isinstance(value, str) else _assistant(value).to_dict()}
        if kind == "tool_result":
            return {"value": _output(value)}
        if kind == "response":
            return {"value": value.to_dict() if isinstance(value, Response) else _strict(value)}
        if kind == "output":
            return {"updated_output": _output(value)}
        if isinstance(value, ToolCall):
            if value.name != self.value.name:
                raise TypeError(f"its value is a call of another tool, {value.name!r}; a hook may change only the input of a call")
            value = value.input
        if not isinstance(value, Mapping):
            raise TypeError(f"its value is {_kind(value)}; return the ToolCall, or its input as a dict")
        return {"updated_input": _strict(value)}

    def rewrite(self, verdict: JSON, typed: Any = None) -> None:
        """Apply a verdict to the value. typed is the original value of an in-process hook. Raises TypeError if the verdict's value
        has a wrong type."""
        chains, stopped = _CONTRACT[self.event.value].chains, "value" in verdict
        if chains and verdict.get("decision") == "stop":
            self.stop = typed
        elif chains and _terminal(self.event.value, verdict.get("decision", "")):
            self.value = self.before  # a decision that ends the chain discards earlier changes
        elif isinstance(self.value, ToolCall) and "updated_input" in verdict:
            if not isinstance(verdict["updated_input"], dict):
                raise TypeError(f"the input is {_kind(verdict['updated_input'])}; write the tool's whole input as an object")
            self.value = dataclasses.replace(self.value, input=verdict["updated_input"])
        elif isinstance(self.value, ToolResult) and (stopped or "updated_output" in verdict):
            whole = isinstance(typed, ToolResult)  # an in-process hook may also set the error
            output = _plain(typed.result) if whole else verdict["value" if stopped else "updated_output"]
            # The value of a stop replaces the whole result, with its error.
            error = typed.error if whole else None if stopped else self.value.error
            self.value = dataclasses.replace(self.value, result=output, error=error)
        elif isinstance(self.value, AssistantMessage) and "value" in verdict:
            self.value = _revised(self.value, verdict["value"])
        elif isinstance(self.value, Response) and "value" in verdict:
            self.value = _answered(self.value, verdict["value"])

    def answer(self, verdict: JSON) -> ToolResult:
        """Return the result that a hook gave in place of the tool's."""
        result = ToolResult(self.value.name, self.value.id, verdict["value"])
        return dataclasses.replace(result, result=_plain(self.stop.result), error=self.stop.error) if isinstance(self.stop, ToolResult) else result


def _output(value: Any) -> Any:
    """Return a tool's output as JSON. For a result without an output, this is its error."""
    if isinstance(value, ToolResult):
        value = value.error if value.result is None and value.error else value.result
    return "" if value is None else _strict(value)


def _answered(response: Response, value: Any) -> Response:
    """Return the response with another answer. Its status does not change."""
    content, message = value, response.message
    if isinstance(value, dict):
        content = value.get("content", response.content)
        if isinstance(value.get("message"), (dict, str)):
            message = _closing(_assistant(value["message"]))
            content = message.content if content == response.content else content
    if not isinstance(content, str):
        content = _dumps(content).decode()
    if message is not None and message.content != content:
        message = dataclasses.replace(message, content=content, native=None)
    return dataclasses.replace(response, content=content, message=message)


# Tools.


@dataclasses.dataclass
class Tool:
    """A function that the model may call. schema is a JSON Schema of its input, an object."""

    name: str
    description: str
    schema: JSON
    function: Callable[..., Any]

    @classmethod
    def of(cls, function: Callable[..., Any], name: str = "", description: str = "", schema: Optional[JSON] = None) -> "Tool":
        """Make a tool of a function. By default its type hints give the schema, and its docstring the description."""
        return cls(name or function.__name__, description or inspect.getdoc(function) or "", schema or _schema_of(function), function)

    def to_dict(self) -> JSON:
        return {"name": self.name, **_sparse(description=self.description), "schema": self.schema}

    async def call(self, arguments: Any) -> Any:
        """Call the function. Raises ValueError if the arguments do not match the schema."""
        if not isinstance(arguments, Mapping):
            raise _BadCall(f"the input of {self.name} is {_kind(arguments)}; it must be an object")
        wrong = _misfit(self.schema, dict(arguments), "the input")
        if wrong:
            raise _BadCall(wrong)
        return await _called(functools.partial(self.function, **arguments))


class _BadCall(ValueError):
    """The call cannot be made. The text is for the model."""


def _schema_of(function: Callable[..., Any]) -> JSON:
    hints, properties, required, more = typing.get_type_hints(function), {}, [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"the tool {function.__name__} has the parameter {parameter}; tools get their arguments by name")
        else:
            properties[name] = _schema(hints.get(name, Any))
            if parameter.default is parameter.empty:
                required.append(name)
    return {"type": "object", "properties": properties, **_sparse(required=required), "additionalProperties": more}


_TYPES: Dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", tuple: "array", dict: "object", type(None): "null"}


def _schema(hint: Any) -> JSON:
    """Return the JSON Schema of a type hint. For an unknown hint it is {}, which permits any value."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is Union or type(hint).__name__ == "UnionType":
        return {"anyOf": [_schema(one) for one in arguments]}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [one.value for one in hint]}
    if origin in (list, set, frozenset, collections.abc.Sequence):
        return {"type": "array", **_sparse(items=_schema(arguments[0]) if arguments else {})}
    if origin in (dict, collections.abc.Mapping):
        return {"type": "object", **_sparse(additionalProperties=_schema(arguments[1]) if arguments else {})}
    return {}


def _misfit(schema: Any, value: Any, where: str) -> str:
    """Return why value does not match a schema, or an empty string. It checks types, names and enums, which models get wrong."""
    if not isinstance(schema, dict):
        return "" if schema is not False else f"{where} is not permitted"
    if "enum" in schema and not any(type(one) is type(value) and one == value for one in schema["enum"]):
        return f"{where} is {_short(_dumps(value))}; it must be one of {_short(_dumps(schema['enum']))}"
    if "anyOf" in schema and not any(_misfit(one, value, where) == "" for one in schema["anyOf"]):
        return f"{where} is {_kind(value)}, which matches none of the permitted types"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{where} is {_kind(value)}; its type must be {' or '.join(kinds)}"
    if isinstance(value, list):
        wrong = (_misfit(schema.get("items", {}), one, f"{where}[{i}]") for i, one in enumerate(value))
    elif isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                return f"{where} has no {name}, which is required"
        known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        wrong = (_misfit(known.get(name, other), one, f"{where}.{name}") for name, one in value.items())
    else:
        return ""
    return next((one for one in wrong if one), "")


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and value.is_integer()
    return next((isinstance(value, one) for one, name in _TYPES.items() if name == kind), True)


# The loop.


@dataclasses.dataclass
class Conversation:
    """The argument of a model: the messages so far, the tools, and the number of this model call."""

    messages: List[Message]
    tools: List[Tool]
    iteration: int = 1

    def to_dict(self) -> JSON:
        return {"messages": [message.to_dict() for message in self.messages], "tools": [tool.to_dict() for tool in self.tools]}


@dataclasses.dataclass
class Chunk:
    """A piece of the agent's output, for display. kind is text, tool_call, tool_result, injection, retry, restart or end.

    The last chunk of a query is an end. The text of an injection begins with [INJECTION]."""

    kind: str
    text: str
    source: str = ""

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass
class _Draft:
    """The conversation and the flags as one effect sees and changes them. A late effect changes only its draft."""

    agent: "Agent"
    history: List[Message]
    flags: JSON


_draft: "contextvars.ContextVar[Optional[_Draft]]" = contextvars.ContextVar("hookfabric_draft", default=None)


class _Over(Exception):
    """The query ended without an answer. error says why; reason is the reason that a hook gave."""

    def __init__(self, status: str, error: str, reason: str = "") -> None:
        super().__init__(error)
        self.status, self.error, self.reason = status, error, reason


class _Restart(Exception):
    """This verdict starts the turn again."""

    def __init__(self, verdict: JSON) -> None:
        super().__init__("the turn restarts")
        self.verdict, self.reason = verdict, str(verdict["restart"].get("reason") or "")
        self.content = str(verdict["restart"].get("content") or self.reason)


@dataclasses.dataclass
class _Done:
    """A finished call: its result, texts to add after all results, and how it ends the turn or the query."""

    result: ToolResult
    texts: List[str] = dataclasses.field(default_factory=list)
    events: List[Optional[str]] = dataclasses.field(default_factory=list)  # ids of the events whose content is in notes and texts
    ends: Optional[Exception] = None


@dataclasses.dataclass
class _Brought:
    """The items of the fabric's queue that an event delivered. stands: they are in the conversation. If the query ends before that,
    the loop does not acknowledge them, and the fabric delivers them again."""

    items: Set[Tuple[Optional[str], int]]
    stands: bool = False


@dataclasses.dataclass
class _Query:
    """One query under way."""

    prompt: str
    lock: asyncio.Lock
    slots: asyncio.Semaphore
    over: asyncio.Event  # set as soon as ends is not empty
    iteration: int = 0
    ended: str = "answered"
    put_off: int = 0  # how often waiting content postponed the end
    last: str = ""  # why the loop calls the model again
    places: Dict[int, int] = dataclasses.field(default_factory=dict)  # the index of the call whose hooks added a message, by the message's id()
    hook_errors: List[str] = dataclasses.field(default_factory=list)
    ends: str = ""  # why calls that have not started are not made


class Agent:
    """An agent loop. It calls the model, then the tools that the model requests, until the model requests no more.

    At each event the loop asks hooks, which can change the conversation, replace the value of the event, and decide how to go on.
    In-process hooks (see on) run in the order of registration. With a client, the fabric's hooks run after them, or before them
    with order="remote-first". A decision that ends the chain ends it for both kinds. A restart or terminate of the fabric always
    takes effect. If the loop cannot read a rewrite of the fabric, it blocks, at events where a failed hook can block.
    Sync functions run in threads of their own and do not block the event loop.

    model(conversation), sync or async, returns a str, an AssistantMessage or a dict in the fabric's form.
    client asks the fabric (default: None, in-process hooks only).
    max_iterations bounds the model calls of a query, retries included.
    final_retries bounds how often waiting content postpones the end of a query. After that the content waits for the next query.
    approve(call, reason), sync or async, answers an ASK until the turn ends. Without it, such a call is not made.
    output(chunk) gets what happens, in Chunks.
    parallel is the number of tools that may run at a time.
    event_timeout bounds each request to the fabric, in seconds.

    Events carry the conversation if a hook of the fabric needs it. After a change of the fabric's configuration, the first event
    still follows the old one. A new hook that needs the conversation then fails once, and its failure policy decides.
    A hook's answer has at most 1 MiB with its value. A larger one is an error of the hook.
    """

    def __init__(
        self,
        name: str = "agent",
        *,
        model: Optional[Callable[[Conversation], Any]] = None,
        system: str = "",
        client: Optional[Client] = None,
        tools: Sequence[Union[Tool, Callable[..., Any]]] = (),
        order: str = "local-first",
        max_iterations: int = 15,
        final_retries: int = 3,
        approve: Optional[Callable[[ToolCall, str], Any]] = None,
        output: Optional[Callable[[Chunk], Any]] = None,
        parallel: int = 8,
        event_timeout: float = 60.0,
        session_id: str = "",
    ) -> None:
        if order not in ("local-first", "remote-first"):
            raise ValueError(f'order is {order!r}; write "local-first" or "remote-first"')
        if max_iterations < 1 or parallel < 1 or event_timeout <= 0:
            raise ValueError("max_iterations and parallel must be at least 1, and event_timeout must be above 0")
        self.name, self.model, self.system, self.client = name, model, system, client
        self.session_id = session_id or _event_id()
        self.tools: Dict[str, Tool] = {}
        for one in tools:
            self._add_tool(one if isinstance(one, Tool) else Tool.of(one))
        self._order, self._max_iterations, self._final_retries, self._parallel = order, max_iterations, final_retries, parallel
        self._approve, self._output, self._event_timeout = approve, output, event_timeout
        self._hooks: List[Hook] = []
        self._history: List[Message] = []
        self._flags: JSON = {}
        self._running = threading.Lock()  # the running query holds it
        self._owed: Dict[str, _Brought] = {}  # delivered content that the model has not read, by event
        self._needs: Set[str] = set()  # the events at which some hook of the fabric needs the conversation
        self._needs_of: Any = None  # the configuration's version for _needs; None: not known yet
        self._needs_known = False

    # The public interface.

    @property
    def conversation_history(self) -> List[Message]:
        """The messages so far. Effects may append to this list, change it or assign a new one."""
        draft = _draft.get()
        return draft.history if draft is not None and draft.agent is self else self._history

    @conversation_history.setter
    def conversation_history(self, messages: Sequence[Message]) -> None:
        there = self.conversation_history
        there[:] = list(messages)
        if there is self._history:
            self._owed = {}  # the fabric delivers unread content of the old list again

    @property
    def flags(self) -> JSON:
        """Values that effects and hooks keep. Events carry them to the fabric's hooks."""
        draft = _draft.get()
        return draft.flags if draft is not None and draft.agent is self else self._flags

    @flags.setter
    def flags(self, flags: Mapping[str, Any]) -> None:
        kept, there = dict(flags), self.flags
        there.clear()
        there.update(kept)

    def on(self, event: Union[AgentEvent, str], *, name: str = "", fail_closed: bool = False, timeout: float = 30.0) -> Registration:
        """Begin a hook: on(event).when(condition).handle(decision, value, effects). timeout is in seconds."""
        if event in ("SessionStart", "SessionEnd"):
            raise ValueError(f"a loop has no {event}, because it has queries and no sessions; write UserPromptSubmit or QueryEnd, or send the "
                             "event with Client.ask")
        try:
            at = AgentEvent(event)
        except ValueError:
            raise ValueError(f"a loop has no event {event!r}; write one of {', '.join('AgentEvent.' + one.name for one in AgentEvent)}") from None
        return Registration(self, at, name, fail_closed, timeout)

    def tool(self, function: Optional[Callable[..., Any]] = None, *, name: str = "", description: str = "", schema: Optional[JSON] = None) -> Any:
        """Decorator: make a function, sync or async, a tool of the agent."""
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self._add_tool(Tool.of(function, name, description, schema))
            return function

        return add if function is None else add(function)

    def run(self, query: str, *, new_conversation: bool = False) -> Response:
        """Run a query and return the response. Raises QueryFailed if it ends without an answer."""
        running = True
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            running = False
        if running:
            raise RuntimeError("run was called inside a running event loop; write 'await agent.arun(...)' there")
        return asyncio.run(self.arun(query, new_conversation=new_conversation))

    async def arun(self, query: str, *, new_conversation: bool = False) -> Response:
        """Like run, on the caller's event loop. The conversation continues that of the last query, unless new_conversation is True."""
        if self.model is None:
            raise RuntimeError("the agent has no model; write Agent(..., model=...)")
        if not self._running.acquire(blocking=False):
            raise RuntimeError("the agent already runs a query; wait for its end, or use another Agent")
        try:
            return await self._whole(query, new_conversation)
        finally:
            self._owed = {event: brought for event, brought in self._owed.items() if brought.stands}
            self._running.release()

    # A query from its beginning to its end.

    async def _whole(self, query: str, is_new: bool) -> Response:
        run = _Query(query, asyncio.Lock(), asyncio.Semaphore(self._parallel), asyncio.Event())
        response, cause = Response(), None
        try:
            response.message = await self._answer(run, is_new)
            response.status = run.ended
        except _Over as over:
            response.status, response.reason, response.error, cause = over.status, over.reason, over.error, over.__cause__
        except asyncio.CancelledError as err:
            response.status, response.error, cause = "cancelled", "the query was cancelled", err
        except BaseException as err:  # the hooks at QueryEnd must learn of every failure
            response.status, response.error, cause = "failed", _failure(err), err
        try:
            self._close_calls(f"The call was not finished, because the query ended: {response.error or response.reason or response.status}")
        except Exception as err:  # an effect left something that is not a message; the query ends all the same
            run.hook_errors.append(f"the conversation has an invalid message: {_failure(err)}")
        response.content = _text(response.message) if response.message else ""
        response.iterations, response.hook_errors = run.iteration, run.hook_errors
        response, failed = await self._end(run, response)
        if response.content and not failed:
            self._show("text", response.content)
        self._show("end", response.error)
        if isinstance(cause, BaseException) and not isinstance(cause, Exception):
            raise cause
        if response.status not in ("answered", "stopped"):
            raise QueryFailed(response) from cause
        return response

    async def _end(self, run: _Query, response: Response) -> "tuple[Response, bool]":
        """Ask the hooks at QueryEnd, once, also if the query is cancelled. Return the response, and whether they failed the query."""
        moment = _Moment(AgentEvent.QUERY_END, run.iteration, response, mute=True)
        ending = asyncio.ensure_future(self._judged(run, moment))
        patience: Optional[float] = _GRACE if response.status == "cancelled" else None
        cancelled: Optional[asyncio.CancelledError] = None
        end = None if patience is None else time.monotonic() + patience
        while not ending.done() and (end is None or time.monotonic() < end):
            try:
                await asyncio.wait({ending}, timeout=None if end is None else max(end - time.monotonic(), 0))
            except asyncio.CancelledError as err:
                cancelled, end = err, end or time.monotonic() + _GRACE
        if not ending.done():
            ending.cancel()
            run.hook_errors.append(f"the hooks at QueryEnd did not finish within {_GRACE:g} s")
        elif not ending.cancelled() and ending.exception() is not None:
            run.hook_errors.append(f"the hooks at QueryEnd: {_failure(ending.exception())}")
        if cancelled is not None:
            raise cancelled
        response = dataclasses.replace(moment.value, hook_errors=run.hook_errors)
        failed = _ending(moment, ending.result()) if ending.done() and not ending.cancelled() and ending.exception() is None else None
        if not isinstance(failed, _Over) or failed.status != "failed":
            return response, False
        if response.error:  # keep the first error
            return dataclasses.replace(response, error=f"{response.error}; {failed}"), True
        return dataclasses.replace(response, status=failed.status, error=str(failed), reason=failed.reason), True

    async def _answer(self, run: _Query, is_new: bool) -> AssistantMessage:
        self._needs_of = self._needs_of if self._needs_known else None
        if is_new:
            self._begin()
        elif not self._history and self.system:
            self._history.append(SystemMessage(self.system))
        try:
            asked = await self._decided(run, _Moment(AgentEvent.USER_PROMPT_SUBMIT, 0, prompt=run.prompt))
            if asked.get("decision") == "deny":
                raise _Over("rejected", "a hook denied the prompt: " + (asked.get("reason") or "no reason was given"), asked.get("reason") or "")
            self._history.append(HumanMessage(run.prompt))
            self._tell(run, asked)
        except _Restart as restart:
            self._restarted(run, restart)
        while run.iteration < self._max_iterations:
            run.iteration += 1
            try:
                message = await self._turn(run)
            except _Restart as restart:
                self._restarted(run, restart)
                continue
            if message is not None:
                return message
        raise _Over("max_iterations", f"the query has no answer after {self._max_iterations} model calls (max_iterations): {run.last}")

    async def _turn(self, run: _Query) -> Optional[AssistantMessage]:
        """Make one model call and its tool calls. Return the answer, or None if the loop needs another model call."""
        try:
            before = await self._decided(run, _Moment(AgentEvent.BEFORE_LLM_CALL, run.iteration))
            if before.get("decision") == "stop":
                return self._stopped(run, before)
            self._tell(run, before)
        except _Restart as restart:
            self._restarted(run, restart)
        message = await self._modelled(run)
        moment = _Moment(AgentEvent.AFTER_LLM_CALL, run.iteration, message)
        after = await self._decided(run, moment)
        if after.get("decision") == "stop":
            return self._stopped(run, after)
        if after.get("decision") == "retry":  # the message is discarded
            self._again(run, after)
            return None
        message = moment.value
        self._history.append(message)
        if message.tool_calls:
            if message.content:
                self._show("text", _text(message))
            await self._call_tools(run, message, after)
            return None
        self._tell(run, after)
        return await self._final(run, message)

    async def _final(self, run: _Query, message: AssistantMessage) -> Optional[AssistantMessage]:
        moment = _Moment(AgentEvent.BEFORE_FINAL_RESPONSE, run.iteration, message,
                         mute=run.put_off >= self._final_retries or run.iteration == self._max_iterations)
        final = await self._decided(run, moment)
        if final.get("decision") == "retry":
            run.put_off += any(injection.get("sequence") for injection in final.get("injections", ()))
            self._again(run, final)
            return None
        if final.get("decision") == "stop":
            return self._stopped(run, final)
        self._history[:] = [moment.value if one is message else one for one in self._history]
        self._tell(run, final)
        answer: AssistantMessage = moment.value
        return answer

    def _stopped(self, run: _Query, verdict: JSON) -> AssistantMessage:
        """End the query with a hook's message. Calls in it are dropped, because the loop would not make them."""
        message, run.ended = _closing(_assistant(verdict["value"])), "stopped"
        self._history.append(message)
        self._tell(run, verdict)
        return message

    def _begin(self, *texts: str) -> None:
        """Begin a new conversation with these texts of the user."""
        self._history[:] = [SystemMessage(self.system)] if self.system else []
        self._history.extend(HumanMessage(text) for text in texts if text)
        self._owed = {}  # the fabric delivers unread content again

    def _restarted(self, run: _Query, restart: _Restart) -> None:
        self._begin(run.prompt, restart.content)
        self._note_brought(restart.verdict)
        run.last = "the fabric restarted the turn" + (f": {restart.reason}" if restart.reason else "")
        self._show("restart", restart.content)
        self._tell(run, restart.verdict)

    def _again(self, run: _Query, verdict: JSON) -> None:
        """Prepare another attempt, and tell the model the hook's reason."""
        hook = next((one.get("hook") for one in verdict.get("executed_hooks", ()) if one.get("decision") == "retry"), None)
        reason, most = str(verdict.get("reason") or ""), self._max_iterations
        run.last = f"{'hook ' + _quoted(hook) if hook else 'the fabric'} asked for another attempt" + (f": {reason}" if reason else "")
        attempt = f"(attempt {run.iteration + 1} of {most})" if run.iteration < most else f"({most} of {most} attempts were made)"
        if reason.strip():
            self._history.append(HumanMessage(f"{reason} {attempt}"))
        self._show("retry", f"{reason.strip() or 'once more'} {attempt}")
        self._tell(run, verdict)

    # The model.

    async def _modelled(self, run: _Query) -> AssistantMessage:
        tools = [dataclasses.replace(tool, schema=copy.deepcopy(tool.schema)) for tool in self.tools.values()]
        try:  # the model gets copies, which it may change
            said = await _called(self.model, (Conversation(copy.deepcopy(self._history), tools, run.iteration),))  # type: ignore[arg-type]
            message = copy.deepcopy(_assistant(said))
        except Exception as err:
            raise _Over("model_error", f"the model call failed: {_failure(err)}") from err
        owed, self._owed = [event for event, brought in self._owed.items() if brought.stands], {}
        if owed and self.client is not None:  # the model has read it
            try:
                await self._asked(self.client, lambda call: self.client._ack(call, owed, self.name), 5.0)  # type: ignore[union-attr]
            except Exception as err:
                log.warning("delivered content could not be acknowledged; the fabric may deliver it again: %s", _failure(err))
        return message

    # The tools.

    async def _call_tools(self, run: _Query, message: AssistantMessage, after: JSON) -> None:
        """Make the calls of a message in parallel. Their results follow the message in its order."""
        run.ends = ""
        run.over.clear()
        run.places.clear()
        tasks = [asyncio.ensure_future(self._one_call(run, call, place)) for place, call in enumerate(message.tool_calls)]
        cancelled: Optional[asyncio.CancelledError] = None
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as err:
            cancelled, run.ends = err, "the query was cancelled"
            run.over.set()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_GRACE)  # lets hooks learn what ran
        done = [_done(task, call) for task, call in zip(tasks, message.tool_calls)]
        at = next((i + 1 for i, one in enumerate(self._history) if one is message), None)
        if at is not None:  # None: an effect removed the message
            said = sorted(self._history[at:], key=lambda one: run.places.get(id(one), -1))
            self._history[at:] = [ToolMessage(one.result) for one in done] + said
            self._stand(*(event for one in done for event in one.events))
        run.last = "the last message of the model calls tools"
        self._tell(run, after)
        for one in done:
            self._history.extend(HumanMessage(text) for text in one.texts)
        if cancelled is not None:
            raise cancelled
        for end in sorted((one.ends for one in done if one.ends), key=lambda why: isinstance(why, _Restart)):
            raise end  # the first end of the query, else the first restart

    async def _one_call(self, run: _Query, call: ToolCall, place: int) -> _Done:
        async with run.slots:
            done = await self._made_call(run, call, place)
        if done.ends is not None:
            run.ends = run.ends or "another call of the turn ended it"
            run.over.set()
        self._show("tool_result", _text(ToolMessage(done.result)), call.name)
        return done

    async def _made_call(self, run: _Query, call: ToolCall, place: int) -> _Done:
        done = _Done(ToolResult(call.name, call.id))
        if run.ends:
            return _not_made(done, "was not made", run.ends)
        if not isinstance(call.input, Mapping):  # the tool will not run, so there is no PreToolUse
            done.result.error = f"the call did not run: its input is {_kind(call.input)}; it must be a JSON object"
            return await self._after_call(run, call, place, done)
        moment = _Moment(AgentEvent.BEFORE_TOOL_EXECUTION, run.iteration, call, call=call, place=place)
        verdict = await self._judged(run, moment)
        self._settle_call(run, moment, verdict, done)
        decision, why = verdict.get("decision"), verdict.get("reason") or ""
        if isinstance(done.ends, _Restart):
            return _not_made(done, "did not run, since the turn restarts", done.ends.reason)
        if done.ends is not None:
            return _not_made(done, "did not run, since the query ends", str(done.ends))
        if decision == "deny":
            return _not_made(done, "was denied and did not run", why)
        if decision == "ask" and not await self._approved(run, moment.value, why):
            return _not_made(done, "did not run, since no person approved it", why)
        if decision == "stop":
            given = moment.answer(verdict)
            done.result.result, done.result.error = given.result, given.error
            return done
        if run.ends:
            return _not_made(done, "was not made", run.ends)
        self._show("tool_call", _dumps(_plain(moment.value.input)).decode(), call.name)
        await self._run_tool(moment.value, done.result)
        return await self._after_call(run, moment.value, place, done)

    async def _after_call(self, run: _Query, call: ToolCall, place: int, done: _Done) -> _Done:
        """Ask the hooks about the result of a call, at PostToolUse or ToolError."""
        event = AgentEvent.ON_TOOL_ERROR if done.result.error else AgentEvent.AFTER_TOOL_EXECUTION
        moment = _Moment(event, run.iteration, dataclasses.replace(done.result, notes=[]), call=call, place=place)
        verdict = await self._judged(run, moment)
        why, notes = verdict.get("reason") or "", done.result.notes
        done.result = dataclasses.replace(moment.value, tool_name=done.result.tool_name, tool_call_id=done.result.tool_call_id, notes=notes)
        if verdict.get("decision") == "deny":
            notes.append("Feedback on this result: " + (why or "a hook objects to it, without a reason"))
        elif verdict.get("decision") == "fail":
            notes.append("This result ended the query: " + (why or "a hook says so, without a reason"))
        self._settle_call(run, moment, verdict, done)
        return done

    def _settle_call(self, run: _Query, moment: _Moment, verdict: JSON, done: _Done) -> None:
        """Store how a verdict ends the call, and its injections. The injections of a restart belong to the new turn."""
        done.ends = _ending(moment, verdict)
        if not isinstance(done.ends, _Restart):
            self._take(run, verdict, done.result.notes, done.texts)
            done.events.append(verdict.get("event_id"))

    async def _approved(self, run: _Query, call: ToolCall, why: str) -> bool:
        """Ask approve, until the turn ends."""
        if self._approve is None:
            return False
        asked = asyncio.ensure_future(_called(self._approve, (copy.deepcopy(call), why)))
        over = asyncio.ensure_future(run.over.wait())
        try:
            await asyncio.wait({asked, over}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise RuntimeError(run.ends)
            return bool(asked.result())
        except Exception as err:
            run.hook_errors.append(f"asking for approval of {call.name} failed: {_failure(err)}")
            return False
        finally:
            asked.cancel()
            over.cancel()

    async def _run_tool(self, call: ToolCall, result: ToolResult) -> None:
        tool = self.tools.get(call.name)
        try:
            if tool is None:
                raise _BadCall(f"there is no tool {_quoted(call.name)}; there is {', '.join(self.tools) or 'none'}")
            output = await tool.call(call.input)
            result.result = _plain(output.result if isinstance(output, ToolResult) else output)
            result.error = output.error if isinstance(output, ToolResult) else None
        except asyncio.CancelledError:  # the tool may have done a part of its work
            result.error = "the query was cancelled while the tool ran"
        except Exception as err:
            result.error = str(err) if isinstance(err, _BadCall) else _failure(err)

    def _close_calls(self, why: str) -> None:
        """Add a result to each call without one, because APIs refuse calls without results."""
        for turn, is_open in reversed(_turns(self._history)):
            if is_open:
                calls = list(self._history[turn[0]].tool_calls)  # type: ignore[attr-defined]
                for i in turn[1:]:
                    result = self._history[i].result  # type: ignore[attr-defined]
                    had = next((call for call in calls if (call.id, call.name) == (result.tool_call_id, result.tool_name)), None)
                    calls = [call for call in calls if call is not had]
                self._history[turn[-1] + 1:turn[-1] + 1] = [ToolMessage(ToolResult(call.name, call.id, error=why)) for call in calls]

    # Asking the hooks about a moment.

    async def _decided(self, run: _Query, moment: _Moment) -> JSON:
        """Return the verdict on a moment. Raises if it ends the query or starts the turn again."""
        verdict = await self._judged(run, moment)
        ends = _ending(moment, verdict)
        if ends is not None:
            raise ends
        return verdict

    async def _judged(self, run: _Query, moment: _Moment) -> JSON:
        """Ask the in-process hooks and the fabric, in the agent's order, and fold their verdicts."""
        steps = [self._judged_here, self._judged_by_the_fabric]
        verdict: JSON = {}
        for step in steps if self._order == "local-first" else reversed(steps):
            if not _ended(moment.event.value, verdict):
                one = await step(run, moment)
                verdict = {**_fold(moment.event.value, verdict, one), **{k: v[k] for v in (verdict, one) for k in ("restart", "terminate", "event_id") if k in v}}
        run.hook_errors.extend(verdict.get("hook_errors", ()))
        return _with_feedback(moment.event.value, verdict)

    async def _judged_here(self, run: _Query, moment: _Moment) -> JSON:
        verdict: JSON = {}
        for hook in [hook for hook in self._hooks if hook.event is moment.event]:
            asked = await hook._run(self, run, moment)
            if asked is None:
                continue
            one = _settle(hook._card(), asked[0])
            moment.rewrite(one, asked[1])
            verdict = _fold(moment.event.value, verdict, one)
            if _ended(moment.event.value, verdict):
                break
        return verdict

    async def _judged_by_the_fabric(self, run: _Query, moment: _Moment) -> JSON:
        client = self.client
        if client is None:
            return {}
        if self._needs_of is None:
            await self._learn_needs(client, 0)
        flags = {str(name): _plain(value) for name, value in self._flags.items()}
        body: JSON = {**moment.body(), "agent_id": self.name, "session_id": self.session_id, **_sparse(flags=flags)}
        if moment.event.value in self._needs:
            body["history"] = [message.to_dict() for message in self._history]
        else:  # a new hook that needs the conversation must not take it for an empty one
            body["history_ref"] = "lost:no hook was known to need it when the event was asked about"
        how = {"ack": "explicit", **({"deliver": "none"} if moment.mute else {})}  # the next event must not acknowledge
        ask = client._ask
        verdict: JSON = await self._asked(client, lambda call: ask(call, body, **how), self._event_timeout)
        verdict = _permitted(moment.event.value, verdict)
        if self._needs_of != verdict.get("config_version", self._needs_of):
            await self._learn_needs(client, verdict["config_version"])
        self._note_brought(verdict)
        for effect in verdict.get("effects", ()):
            try:
                wrong = _effect_fault(effect)
                if wrong:
                    raise ValueError(wrong)
                await self._apply(run, effect, moment)
            except ValueError as err:
                verdict.setdefault("hook_errors", []).append(f"effect dropped: {err}")
        try:
            moment.rewrite(verdict)
        except TypeError as err:  # the value must not pass unchanged
            verdict = _blocked(moment.event.value, verdict, f"a rewrite was dropped: {err}")
            if _CONTRACT[moment.event.value].chains and _terminal(moment.event.value, verdict.get("decision", "")):
                moment.value = moment.before
        return verdict

    def _note_brought(self, verdict: JSON) -> None:
        """Remember delivered content, to acknowledge it once the model has read it. Drop injections that the conversation already has."""
        there = {item for brought in self._owed.values() if brought.stands for item in brought.items}
        injections, kept, all_items = verdict.get("injections") or (), [], set()
        for injection in injections:
            items = {(verdict.get("fabric"), number) for number in injection.get("sequences") or [injection.get("sequence")] if number}
            if not items or items - there:
                kept.append(injection)
            all_items |= items
        verdict["injections"] = kept
        if verdict.get("event_id") and (injections or verdict.get("restart") or verdict.get("workspaces")):
            self._owed[verdict["event_id"]] = _Brought(all_items)

    def _stand(self, *events: Optional[str]) -> None:
        """Record that the content of these events is in the conversation."""
        for event in events:
            if event in self._owed:
                self._owed[event].stands = True

    async def _asked(self, client: Client, ask: Callable[[_Call], Any], timeout: float) -> Any:
        """Ask in one of the client's threads. Abandon the call if the query is cancelled."""
        call = _Call(timeout)
        try:
            return await asyncio.get_running_loop().run_in_executor(client._threads, ask, call)
        finally:
            call.give_up()

    async def _learn_needs(self, client: Client, version: Any) -> None:
        """Ask at which events a hook needs the conversation. Only these events carry it."""
        self._needs_of, self._needs_known = version, False
        try:  # after a failure, the next query asks again
            needs: JSON = await self._asked(client, lambda call: client._get(call, _path("v1", "needs", agent=self.name)), 5.0)
            # The daemon's answer may be older than the verdict. The loop then asks again after the next verdict.
            self._needs = {str(event) for event in needs.get("history") or ()}
            self._needs_of, self._needs_known = needs.get("config_version") or version, True
        except Exception as err:
            log.info("cannot learn at which events hooks need the conversation: %s", _failure(err))

    # Changes by hooks.

    async def _apply(self, run: _Query, effect: Any, moment: _Moment, end: float = 0.0) -> float:
        """Apply one effect on a draft, and adopt the draft if the effect ends in time. Effects run one at a time, so that each sees
        the changes of the others. Return the seconds that it waited for others, which do not count against the hook's timeout."""
        came = time.monotonic()
        async with run.lock:
            waited = time.monotonic() - came
            draft = _Draft(self, list(self._history), dict(self._flags))
            if callable(effect):
                await _called(effect, (moment.status(self),), end + waited, draft)
                draft.history[:] = [_message_of(one) for one in draft.history]
            else:
                wrong = _apply_effect(effect, draft.history, draft.flags)
                if wrong:
                    raise ValueError(wrong)
            if moment.place is not None:
                there = set(map(id, self._history))
                run.places.update((id(one), moment.place) for one in draft.history if id(one) not in there)
            self._history[:] = draft.history
            self._flags.clear()
            self._flags.update(draft.flags)
            return waited

    def _tell(self, run: _Query, verdict: JSON) -> None:
        """Add injections as messages, at events without a tool's result."""
        texts: List[str] = []
        self._take(run, verdict, texts, texts)
        for text in texts:
            self._history.append(HumanMessage(text))
        self._stand(verdict.get("event_id"))

    def _take(self, run: _Query, verdict: JSON, notes: List[str], texts: List[str]) -> None:
        for injection in verdict.get("injections", ()):
            content = str(injection.get("content") or "")
            if content.strip():
                (texts if injection.get("strategy") == "user_message" else notes).append(content)
                source = str(injection.get("source") or injection.get("hook") or "")
                self._show("injection", f"[INJECTION] {source + ': ' if source else ''}{content}", source)

    def _show(self, kind: str, text: str, source: str = "") -> None:
        if self._output is not None:
            try:
                self._output(Chunk(kind, text, source))
            except Exception:
                log.warning("the agent's output failed", exc_info=True)

    def _add(self, hook: Hook) -> Hook:
        hook._agent = self
        taken = {one.name for one in self._hooks}
        numbers = (f"{hook.event.name.lower()}-{n}" for n in itertools.count(1))
        hook.name = hook.name or next(name for name in numbers if name not in taken)
        self._hooks.append(hook)
        return hook

    def _add_tool(self, tool: Tool) -> None:
        if tool.name in self.tools:
            raise ValueError(f"the agent already has a tool {tool.name!r}; give the new one another name")
        self.tools[tool.name] = tool


_GRACE = 5.0  # seconds that hooks have after a query was cancelled


def _ending(moment: _Moment, verdict: JSON) -> Optional[Exception]:
    """Return the exception by which a verdict ends the query or the turn, or None."""
    if isinstance(verdict.get("terminate"), dict):
        reason = str(verdict["terminate"].get("reason") or "")
        return _Over("terminated", "the fabric terminated the run: " + (reason or "no reason was given"), reason)
    if verdict.get("decision") == "fail":
        reason = str(verdict.get("reason") or "")
        return _Over("failed", f"a hook failed the query at {moment.event.value}: " + (reason or "no reason was given"), reason)
    return _Restart(verdict) if isinstance(verdict.get("restart"), dict) else None


def _not_made(done: _Done, how: str, why: str) -> _Done:
    """Set the result of a call that is not made, as a text for the model."""
    done.result.error = f"The call {how}: {why or 'no reason was given'}"
    return done


def _done(task: "asyncio.Task[_Done]", call: ToolCall) -> _Done:
    """Return a task's call, also if it failed or was cancelled."""
    if not task.done() or task.cancelled():
        return _not_made(_Done(ToolResult(call.name, call.id)), "was not finished", "the query was cancelled")
    broken = task.exception()
    if broken is None:
        return task.result()
    return _not_made(_Done(ToolResult(call.name, call.id), ends=_Over("failed", _failure(broken))), "was not finished", _failure(broken))


def _closing(message: AssistantMessage) -> AssistantMessage:
    """Return the message without its calls, because a query that ends makes no more calls."""
    return dataclasses.replace(message, tool_calls=[], native=None) if message.tool_calls else message


def _permitted(event: str, verdict: JSON) -> JSON:
    """Return the verdict. If the event does not permit its decision, or the value of a stop is malformed, return a refusal."""
    contract, decision = _CONTRACT[event], verdict.get("decision")
    if decision == "stop" and contract.stop and not _fits_stop(verdict.get("value"), contract.stop):
        said = f"the fabric decided stop at {event} without its value: {_STOP_VALUES[contract.stop]}"
    elif decision in contract.decisions or decision == "allow":
        return verdict
    else:
        said = f"the fabric decided {decision!r} at {event}; this program knows {', '.join(contract.decisions)}"
    return _blocked(event, {**verdict, "decision": "continue", "reason": ""}, said)


def _blocked(event: str, verdict: JSON, said: str) -> JSON:
    """Replace a verdict that this program cannot obey by the decision for a failed fail-closed hook."""
    blocking = _CONTRACT[event].blocking
    changed: JSON = {**verdict, "hook_errors": [*verdict.get("hook_errors", ()), said], **({"decision": blocking, "reason": said} if blocking else {})}
    changed.pop("value", None)
    return changed


# Calling functions of users.


class _TooLate(Exception):
    """A function exceeded its deadline."""


async def _called(function: Callable[..., Any], arguments: Tuple[Any, ...] = (), end: Optional[float] = None, draft: Optional[_Draft] = None) -> Any:
    """Call a function, sync or async, until end. A sync function runs in a thread of its own, which is abandoned at the deadline."""
    async def call() -> Any:
        _draft.set(draft)
        try:
            answer = function(*arguments) if _is_async(function) else await _in_thread(function, arguments)
            return await answer if inspect.isawaitable(answer) else answer
        except (Exception, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as err:  # such as sys.exit: it ends no agent
            raise RuntimeError(_failure(err)) from err

    task = asyncio.ensure_future(call())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # an abandoned task fails silently
    try:
        await asyncio.wait({task}, timeout=None if end is None else max(end - time.monotonic(), 0))
        if not task.done():
            raise _TooLate("it did not finish before its deadline")
        if task.cancelled():
            raise RuntimeError("it cancelled itself")
        return task.result()
    finally:
        task.cancel()


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


def _in_thread(function: Callable[..., Any], arguments: Tuple[Any, ...]) -> "asyncio.Future[Any]":
    loop = asyncio.get_running_loop()
    future: "asyncio.Future[Any]" = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: Optional[BaseException]) -> None:
        if not future.done():
            future.set_result(result) if error is None else future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = context.run(function, *arguments)
        except Exception as err:
            error = err if not isinstance(err, StopIteration) else RuntimeError(_failure(err))  # a future refuses StopIteration
        except BaseException as err:  # such as sys.exit: it ends no agent
            error = RuntimeError(_failure(err))
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="hookfabric-call", daemon=True).start()
    return future


def _arity(function: Callable[..., Any], most: int) -> int:
    """Return how many positional arguments a function takes, at most most."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return most
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return most
    return min(most, sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters))


def _word(decision: Any) -> str:
    word = decision.value if isinstance(decision, enum.Enum) else decision
    return "fail" if word == "reject" else str(word)


def _listed(some: Any) -> List[Any]:
    return [] if some is None else list(some) if isinstance(some, (list, tuple)) else [some]


def _injections(some: Any) -> List[JSON]:
    return [one if isinstance(one, dict) else {"content": str(one)} for one in _listed(some)]


# Models behind HTTP.


class HTTPModel:
    """A model behind an HTTP API, for Agent(model=...). The daemon, or agentshim, renders the requests and reads the answers.

    format is anthropic, openai (also for compatible APIs), openai-structured, gemini or grok.
    url is the API's address, with or without the version (default: the vendor's). Plain HTTP is permitted only on loopback.
    key_file is a file with the key, read before each attempt; or key is the key. Logs and exceptions do not contain it.
    client renders (default: a new Client).
    max_tokens bounds an answer (default: the API's own bound, or 8192 where the API requires one).
    timeout bounds an attempt, in seconds. retries bounds how often a call is repeated after a temporary failure.
    options are added to each request.
    """

    def __init__(self, format: str, *, model: str, url: Optional[str] = None, key_file: Optional[str] = None, key: Optional[str] = None,
                 client: Optional[Client] = None, max_tokens: Optional[int] = None, timeout: float = 600.0, retries: int = 4,
                 options: Optional[JSON] = None) -> None:
        if format not in _FORMATS:
            raise ValueError(f"format is {format!r}; write one of {', '.join(_FORMATS)}")
        if key and key_file:
            raise ValueError("both key and key_file are set; write one of them")
        self.format, self.model, self._url = format, model, _model_url(url or _VENDORS[format])
        self._key_file, self._key, self._client, self._options = key_file, key, client or Client(), options or {}
        self._max_tokens, self._timeout, self._retries = max_tokens, timeout, retries

    def __repr__(self) -> str:
        return f"HTTPModel({self.format!r}, model={self.model!r})"

    async def __call__(self, conversation: Conversation) -> AssistantMessage:
        request = await _in_thread(self._client.render, (self.format, conversation))
        body = _dumps({**self._settings(), **self._options, **request})
        for attempt in itertools.count():
            answer, why, wait = await self._attempt(body)
            if answer is not None:
                message: AssistantMessage = await _in_thread(self._client.read, (self.format, answer))
                return message
            if wait is None or attempt >= self._retries:
                raise RuntimeError(why) from None
            log.info("%s; the call is repeated", why)
            await asyncio.sleep(wait or min(0.5 * 2 ** attempt, 30) * random.uniform(0.5, 1))
        raise AssertionError("unreachable: the loop above returns or raises")

    def _settings(self) -> JSON:
        most = self._max_tokens
        if self.format == "gemini":
            return {"generationConfig": {"maxOutputTokens": most}} if most else {}
        if self.format == "anthropic":
            return {"model": self.model, "max_tokens": most or 8192}
        # OpenAI's newer models accept only the first name, compatible APIs only the second.
        name = "max_completion_tokens" if self._url.hostname == "api.openai.com" else "max_tokens"
        return {"model": self.model, **({name: most} if most else {})}

    async def _attempt(self, body: bytes) -> "tuple[Optional[JSON], str, Optional[float]]":
        """Return the API's answer, an error, and the seconds until the next attempt. The seconds are 0 if the API names no time, and
        None if the call must not be repeated."""
        make = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection, key = make(str(self._url.hostname), self._url.port, timeout=self._timeout), self._secret()
        end = time.monotonic() + self._timeout
        watchdog = asyncio.get_running_loop().call_later(self._timeout, _give_up, connection)
        try:
            status, headers, answer = await _in_thread(self._post, (connection, body, key))
        except (OSError, http.client.HTTPException, AttributeError) as err:
            why = f"did not answer within {self._timeout:g} s" if time.monotonic() >= end else f"did not answer: {_failure(err)}"
            return None, self._redacted(f"the model at {self._url.hostname} {why}", key), 0
        finally:
            watchdog.cancel()
            _give_up(connection)  # also after a cancellation
        if status != 200:
            passes = status in (408, 429) or status >= 500 and status != 501
            return None, self._redacted(f"the model at {self._url.hostname} answered {status}: {_short(answer)}", key), _wish(headers) if passes else None
        if len(answer) > _LARGEST:
            return None, f"the model's answer is larger than {_LARGEST} bytes", None
        try:
            return _object(answer, "the model's answer"), "", None
        except Unreachable as err:
            return None, self._redacted(str(err), key), None

    def _post(self, connection: http.client.HTTPConnection, body: bytes, key: str) -> "tuple[int, Any, bytes]":
        version, below = _PATHS.get(self.format, ("/v1", "/chat/completions"))
        path = self._url.path.rstrip("/")
        path = path[:-len(version)] if path.endswith(version) else path
        model = self.model[len("models/"):] if self.model.startswith("models/") else self.model
        connection.request("POST", path + version + below.format(model=urllib.parse.quote(model, safe="")), body,
                           {"Content-Type": "application/json", **self._headers(key)})
        response = connection.getresponse()  # no redirects: they would carry the key elsewhere
        return response.status, response.headers, _whole_body(response)

    def _headers(self, key: str) -> Dict[str, str]:
        if self.format == "anthropic":
            return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
        if not key:
            return {}
        return {"x-goog-api-key": key} if self.format == "gemini" else {"Authorization": "Bearer " + key}

    def _secret(self) -> str:
        key = self._key or ""
        if self._key_file:
            with open(self._key_file, encoding="utf-8", errors="replace") as f:
                _check_private(self._key_file, os.fstat(f.fileno()))
                key = f.read(64 << 10).strip()
            if not key:
                raise ValueError("the model's key is empty; write the key into its file")
        if any(not 32 < ord(c) < 127 for c in key):
            raise ValueError("the model's key has spaces, line breaks or characters outside of ASCII; write only the key")
        return key

    def _redacted(self, text: str, key: str) -> str:
        return text.replace(key, "[the key]") if key else text


_VENDORS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com", "openai-structured": "https://api.openai.com",
            "gemini": "https://generativelanguage.googleapis.com", "grok": "https://api.x.ai"}
#: The API's version, which users may write into the URL, and the path after it.
_PATHS = {"anthropic": ("/v1", "/messages"), "gemini": ("/v1beta", "/models/{model}:generateContent")}


def _model_url(url: str) -> urllib.parse.SplitResult:
    """Parse a model's URL. Errors do not show parts that may be secret."""
    try:
        parts = urllib.parse.urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise ValueError("the model's URL cannot be read; write one such as https://api.example.com") from None
    if not host or parts.scheme not in ("http", "https") or port == 0:
        raise ValueError("the model's URL cannot be read; write one such as https://api.example.com")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"the model's URL at {host} has a password, a query or a fragment; write the key into a file, and name that")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise ValueError(f"the model's URL at {host} is plain HTTP; to other machines, conversations and keys need TLS: write https")
    return parts


def _give_up(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        _hang_up(connection.sock)


def _wish(headers: Any) -> Optional[float]:
    """Return the seconds of Retry-After: 0 if it is absent, None if it is longer than 120 s."""
    text = headers.get("Retry-After") or "0"
    try:
        wish = float(text)
    except ValueError:
        try:
            wish = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError, IndexError, OverflowError):
            return 0
    return max(wish, 0) if wish <= 120 else None


# Files, processes and connections.


def _object(data: bytes, what: str) -> JSON:
    """Parse data as a JSON object. Empty data is {}, which means no opinion."""
    if not data.strip():
        return {}
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as err:
        raise Unreachable(f"{what} is not JSON: {err}") from err
    if not isinstance(value, dict):
        raise Unreachable(f"{what} is not a JSON object")
    return value


def _check_private(path: str, info: os.stat_result) -> None:
    """Refuse a secret file that other users can access. Its owner may, and so may its group if it is root's or this process's."""
    if not hasattr(os, "geteuid") or not stat.S_ISREG(info.st_mode):
        return
    if info.st_mode & stat.S_IRWXO:
        raise ValueError(f"every user of this machine can reach the secret in {path}; run 'chmod 600 {path}', or in Kubernetes set defaultMode: 0440")
    if info.st_mode & stat.S_IRWXG and os.geteuid() != 0 and info.st_gid not in (0, os.getegid(), *os.getgroups()):
        raise ValueError(f"the group {info.st_gid} can reach the secret in {path}, and this process is not in it; "
                         f"run 'chmod 600 {path}', or give the file a group of this user")


def _own(path: str) -> bytes:
    """Read a small file that only this user or root can write. An attacker who names the daemon could answer in its place."""
    try:
        with open(path, "rb") as f:
            info = os.fstat(f.fileno())
            if hasattr(os, "geteuid") and (info.st_uid not in (os.geteuid(), 0) or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
                raise Unreachable(f"{path} can be written by another user; it must belong to you and have mode 0600")
            return f.read(64 << 10)
    except OSError as err:
        raise Unreachable(f"there is no daemon: {err}; start one with 'agentshim serve'") from err


def _path(*names: str, **query: str) -> str:
    return "/" + "/".join(urllib.parse.quote(name, safe="") for name in names) + "?" + urllib.parse.urlencode(query)


def _environment() -> Dict[str, str]:
    return {k: v for k, v in os.environ.items() if k in _ENVIRONMENT or k.startswith("HOOKFABRIC_")}


@contextlib.contextmanager
def _neither(daemon: Unreachable) -> Iterator[None]:
    """Add the daemon's error to that of a missing agentshim, because the daemon is usually what is missing."""
    try:
        yield
    except Unreachable as why:
        raise Unreachable(f"{daemon}; and {why}") from None


def _kill(child: "subprocess.Popen[bytes]") -> None:
    """Kill a child and its process group, if it still runs."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL) if hasattr(os, "killpg") else child.kill()
        except OSError:
            pass


def _reap(child: "subprocess.Popen[bytes]") -> None:
    _kill(child)
    child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe:
            try:
                pipe.close()
            except OSError:
                pass


def _whole_body(response: http.client.HTTPResponse) -> bytes:
    """Read a response, at most one byte more than the limit. Raises if the connection broke before its end: the part received
    may be empty, which would mean no opinion."""
    answer, length = response.read(_LARGEST + 1), response.headers.get("Content-Length", "")
    if length.isdecimal() and len(answer) < min(int(length), _LARGEST + 1):
        raise http.client.IncompleteRead(answer, int(length) - len(answer))
    return answer


def _hang_up(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _silent(sock: socket.socket) -> bool:
    """Report whether an idle connection is usable: the peer has neither closed it nor sent unrequested data."""
    try:
        sock.setblocking(False)
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _event_id() -> str:
    """Return a UUID of version 7, which older standard libraries cannot make."""
    bits = (int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")) & ((1 << 128) - 1)
    return str(uuid.UUID(int=bits & ~(0xF << 76 | 3 << 62) | 7 << 76 | 2 << 62))


def _refusal(why: BaseException) -> str:
    return f"no broker judged this call: {why or type(why).__name__}. Start 'agentshim serve', or ask the operator of the fabric."


def _short(data: bytes) -> str:
    return data[:4096].decode(errors="replace").strip()


def _margin(timeout: float) -> float:
    """Return by how many seconds an answer must precede its deadline, as on the fabric's own hops."""
    return min(max(timeout * 0.05, 0.02), timeout / 2)


def _state_home() -> str:
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "hookfabric")


# JSON and texts.


def _plain(value: Any) -> Any:
    """Convert value to JSON types. A value that JSON cannot represent becomes its text."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_fallback))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _strict(value: Any) -> Any:
    """Convert value to JSON types. Raises TypeError if JSON cannot represent it."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_fallback))
    except (ValueError, RecursionError) as err:
        raise TypeError(f"its value cannot be written as JSON: {err}") from err


def _fallback(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, (set, frozenset)) else str(value)


def _dumps(value: Any) -> bytes:
    return _bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _cut(text: str, most: int) -> str:
    """Cut text to at most most bytes, and mark the cut with an ellipsis."""
    data = _bytes(text)
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore") + "…"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _sparse(**members: Any) -> JSON:
    return {name: value for name, value in members.items() if value not in (None, "", 0, [], {})}


def _kind(value: Any) -> str:
    """Return the JSON type of a value, with an article."""
    if value is None:
        return "null"
    for types, name in ((bool, "a boolean"), (str, "a string"), ((int, float), "a number"), ((list, tuple), "a list"), (Mapping, "an object")):
        if isinstance(value, types):  # type: ignore[arg-type]
            return name
    return f"a {type(value).__name__}"


def _failure(err: Optional[BaseException]) -> str:
    text = str(err).strip()
    return f"{type(err).__name__}: {text}" if text else type(err).__name__
