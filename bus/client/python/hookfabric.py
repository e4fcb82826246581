"""Hooks of the fabric for agents that are written in Python.

For the Claude Agent SDK, one call makes the fabric's hooks out of the daemon's answers,
beside the hooks that are there already::

    options = ClaudeAgentOptions(hooks=hookfabric.claude_hooks(existing=my_hooks, agent="agent1"))

For a loop of your own, ask before and after each tool call::

    fabric = hookfabric.Client(agent="agent1")
    verdict = fabric.ask({"hook_type": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}})

Or have the loop made for you, with hooks of your own beside the fabric's::

    agent = hookfabric.Agent("agent1", model=hookfabric.HTTPModel("anthropic", model="…", key_file="…"), client=fabric)

    @agent.tool(description="Add two numbers.")
    def add(a: int, b: int) -> int:
        return a + b

    agent.on(hookfabric.AgentEvent.BEFORE_FINAL_RESPONSE).when(
        lambda status: "<answer>" not in status.assistant_message.content
    ).handle(hookfabric.HookDecision.RETRY, effects=[{"append_message": {"content": "Use <answer> tags."}}])
    print(agent.run("What is 2 + 3?"))

All speak to `agentshim serve` on this machine, and where it does not answer, start
`agentshim hook` instead, which knows the last known policy. A call that nobody can
judge is refused unless you say unreachable="allow".

This is the file for agents. Handlers, which workers run, import another module of the
same name that the worker brings along; the two never meet in one process.
Standard library only; copy the file to where your agent's modules are.
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

#: The moments of the Claude Agent SDK that are asked about unless you name others.
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SubagentStop")

_FORMATS = ("anthropic", "openai", "openai-structured", "gemini", "grok")
_DECISIONS = ("continue", "allow", "ask", "deny", "retry", "stop", "fail")
_LARGEST = 64 << 20  # bytes of an answer
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
#: What `agentshim hook` may see of this process's environment, which may hold secrets.
_ENVIRONMENT = ("HOME", "PATH", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT")

JSON = Dict[str, Any]


class Unreachable(Exception):
    """Nobody answered: neither the daemon nor `agentshim hook`."""

    refused = False  # the daemon did answer, that the request is faulty


class _Call:
    """One call: its deadline, its id whoever judges it, and a way to give it up from another thread."""

    def __init__(self, timeout: float) -> None:
        self.deadline = time.monotonic() + timeout - _margin(timeout)
        self.reserve = min(5.0, timeout / 4)  # what is left for the shim if the daemon hangs
        self.event_id = _event_id()
        self._lock = threading.Lock()  # guards what follows
        self._given_up = False
        self._end: Optional[Callable[[], None]] = None  # ends what is waited for

    @contextlib.contextmanager
    def waiting(self, end: Callable[[], None]) -> Iterator[None]:
        """What is waited for within is ended by end once the call is given up."""
        with self._lock:
            if self._given_up:
                raise Unreachable("the call was given up")
            self._end = end
        try:
            yield
        finally:
            with self._lock:
                self._end = None

    def give_up(self) -> None:
        """Nobody waits for the answer any more; of a call that is over, this says nothing."""
        with self._lock:
            self._given_up = True
            if self._end is not None:
                self._end()


class Client:
    """What one agent asks the fabric by. It may be used from any thread.

    agent is the agent's id; None: what events say, else runtime and session.
    daemon is the daemon's URL, or the file that names it; None: $HOOKFABRIC_DAEMON, else
    daemon.json in the state folder. state is that folder; None: $HOOKFABRIC_STATE, else
    hookfabric below $XDG_STATE_HOME. agentshim is the program; None: $HOOKFABRIC_AGENTSHIM,
    else agentshim on the PATH. start: a daemon that is not there is started.
    unreachable says what becomes of calls that nobody could judge: "deny" or "allow". What a fail-closed
    hook is known to guard the daemon and agentshim deny all the same; where neither answers, nobody knows that.
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
        self._started: Optional[subprocess.Popen] = None
        # Calls wait for people, too: as many threads as an agent may have calls under way.
        self._threads = concurrent.futures.ThreadPoolExecutor(64, thread_name_prefix="hookfabric")
        self._idle: "List[tuple[tuple[int, str, int], http.client.HTTPConnection]]" = []  # kept for the next call of any thread

    def ask(self, event: Mapping[str, Any], *, render: Optional[str] = None, timeout: float = 60.0) -> JSON:
        """The verdict about an event in the canonical form; hook_type says which.

        render ("anthropic", "openai", "openai-structured", "gemini", "grok") has the
        daemon add the messages for that API. Without a daemon there are none: then only
        the verdict is there. Where nobody answers, the verdict is that of unreachable.
        """
        return self._ask(_Call(timeout), event, render)

    def _ask(self, call: _Call, event: Mapping[str, Any], render: Optional[str] = None, **how: str) -> JSON:
        event = dict(event)
        if self.agent and not event.get("agent_id"):
            event["agent_id"] = self.agent
        kind = event.get("hook_type")
        if not isinstance(kind, str) or not kind:
            raise ValueError('the event has no hook_type; write for example {"hook_type": "PreToolUse", ...}')
        if render and render not in _FORMATS:
            raise ValueError(f"render is {render!r}; write one of {', '.join(_FORMATS)}")
        query = {"unreachable": self.unreachable, **({"render": render} if render else {}), **how}
        try:
            verdict = self._judge(call, "generic", kind, _path("v1", "events", kind, **query), event)
        except Unreachable as why:
            return self._unjudged(kind, why)
        if render and "messages" not in verdict:
            log.warning("the verdict about %s comes without messages, since the daemon did not give it", kind)
        return verdict

    def ack(self, *event_ids: Optional[str], agent: Optional[str] = None, timeout: float = 5.0) -> None:
        """Say that the agent has what these verdicts brought, by their event_id.

        A verdict without one, which `agentshim hook` gave, is acknowledged already.
        An agent that never says so says it by asking on. What it does not say
        comes again. Raises Unreachable.
        """
        agent = agent or self.agent
        if not agent:
            raise ValueError("nobody is named who acknowledges; write Client(agent=...), or ack(..., agent=...)")
        ids = [event for event in event_ids if event]
        if ids:
            self._ack(_Call(timeout), ids, agent)

    def _ack(self, call: _Call, ids: Sequence[str], agent: str) -> None:
        self._post(call, "/v1/ack", {"agent_id": agent, "event_ids": list(ids)}, call.deadline)

    def render(self, format: str, conversation: "Conversation", *, timeout: float = 30.0) -> JSON:
        """What belongs of a conversation into the request of an API, by the daemon or by agentshim render.

        Raises ValueError where the conversation is none that the API takes, and Unreachable.
        """
        return self._rendered(_Call(timeout), format, conversation.to_dict(), "render")

    def read(self, format: str, answer: Mapping[str, Any], *, timeout: float = 30.0) -> "AssistantMessage":
        """An API's answer as a message. Raises ValueError where it is none, and Unreachable."""
        return _assistant(self._rendered(_Call(timeout), format, answer, "read"))

    def _rendered(self, call: _Call, format: str, payload: Mapping[str, Any], verb: str) -> JSON:
        try:
            return self._post(call, _path("v1", verb, format=format), payload, call.deadline - call.reserve)
        except Unreachable as why:
            if why.refused:
                raise ValueError(str(why)) from None  # whoever else is asked says the same
            log.info("the daemon did not %s: %s", verb, why)
            daemon = why
        with _neither(daemon):
            argv = [self._program(), "render", "--format", format, *(["--read"] if verb == "read" else [])]
        code, stdout, stderr = self._child(call, argv, payload)
        if code != 0:
            raise Unreachable(f"agentshim render ended with exit code {code}: {_short(stderr)}")
        return _object(stdout, "the answer of agentshim render")

    def hook(self, runtime: str, event: str, payload: Mapping[str, Any], *, timeout: float = 60.0) -> JSON:
        """A runtime's own payload, answered as that runtime's hooks answer. Raises Unreachable."""
        return self._hook(_Call(timeout), runtime, event, payload)

    def _hook(self, call: _Call, runtime: str, event: str, payload: Mapping[str, Any]) -> JSON:
        query = {"unreachable": self.unreachable, **({"agent": self.agent} if self.agent else {})}
        return self._judge(call, runtime, event, _path("hook", runtime, event, **query), payload)

    def close(self) -> None:
        """Let go of the threads and connections. A daemon that was started stays."""
        self._threads.shutdown(wait=False)
        self.__del__()

    def __del__(self) -> None:
        idle, self._idle = getattr(self, "_idle", ()), []
        for _, connection in idle:
            connection.close()

    def _judge(self, call: _Call, runtime: str, event: str, path: str, payload: Mapping[str, Any]) -> JSON:
        """Ask the daemon, and where that fails `agentshim hook`, about one event, all within its deadline."""
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
        log.warning("%s is answered with %s, since nobody judged it: %s", kind, decision, why)
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
            raise Unreachable("no time is left")
        host, port, token = self._find()
        where, whole = (os.getpid(), host, port), False  # who was forked shares no connection
        connection = self._connection(where)
        # A daemon that drips its answer ends with the deadline as well.
        watchdog: Optional[threading.Timer] = None
        try:
            connection.timeout = left
            if connection.sock is None:
                connection.connect()
            sock = connection.sock  # the connection forgets it before the answer is read
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
        if len(answer) > _LARGEST:  # a part of it may say something else
            raise Unreachable(f"the daemon's answer is larger than {_LARGEST} bytes")
        return _object(answer, "the daemon's answer")

    def _connection(self, where: "tuple[int, str, int]") -> http.client.HTTPConnection:
        """A connection that was kept and that the daemon did not end, or a new one."""
        with contextlib.suppress(IndexError):
            while True:
                made_for, connection = self._idle.pop()
                if made_for == where and _silent(connection.sock):
                    return connection
                connection.close()
        return http.client.HTTPConnection(*where[1:])  # knows no proxies

    def _find(self) -> "tuple[str, int, str]":
        """Where the daemon is, and the token by which it knows this user."""
        where, token_file = self._daemon, os.environ.get("HOOKFABRIC_DAEMON_TOKEN_FILE") or os.path.join(self._state, "daemon.token")
        if not where.startswith("http://"):
            found = _object(_own(where), where)
            where, token_file = str(found.get("url", "")), os.path.join(os.path.dirname(where), str(found.get("token_file", "")))
        url = urllib.parse.urlsplit(where)
        try:
            port = url.port or 80
        except ValueError as err:
            raise Unreachable(f"the daemon's address is {where!r}: {err}") from err
        if url.scheme != "http" or url.hostname not in _LOOPBACK:
            raise Unreachable(f"the daemon's address is {where!r}; it must be http:// and on loopback, or the token would leave this machine")
        token = _own(token_file).decode(errors="replace").strip()
        if any(not 32 < ord(c) < 127 for c in token):  # whoever refuses such a header would say it
            raise Unreachable(f"{token_file} has no token in it; remove it, and start 'agentshim serve' anew")
        return url.hostname, port, token

    def _start_daemon(self) -> None:
        """Start a daemon for the calls after this one; if another is there, it ends by itself."""
        with self._starting:
            if self._started is not None and self._started.poll() is None:
                return
            try:
                self._started = subprocess.Popen(
                    [self._program(), "serve", "--state", self._state, "--idle", "30m"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True, env=_environment())
            except (OSError, Unreachable) as err:
                log.warning("agentshim serve can not be started: %s", err)

    # The shim.

    def _program(self) -> str:
        program = shutil.which(self._agentshim)
        if program is None:
            raise Unreachable(f"the program {self._agentshim!r} was not found; put agentshim on the PATH or name it in HOOKFABRIC_AGENTSHIM")
        return program

    def _shim(self, call: _Call, runtime: str, event: str, payload: Mapping[str, Any], daemon: Unreachable) -> JSON:
        left = call.deadline - time.monotonic()
        if left <= 0:
            raise Unreachable("the daemon took all the time there was")
        with _neither(daemon):
            program = self._program()
        argv = [program, "hook", "--runtime", runtime, "--event", event, "--event-id", call.event_id, "--state", self._state,
                "--timeout", f"{max(int(left * 1000), 1)}ms", "--unreachable", self.unreachable]
        if self.agent:
            argv += ["--agent", self.agent]
        return _said(runtime, event, *self._child(call, argv, payload))

    def _child(self, call: _Call, argv: List[str], payload: Mapping[str, Any]) -> "tuple[int, bytes, bytes]":
        """What a program that gets the payload says, and its exit code."""
        left = call.deadline - time.monotonic()
        try:
            child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     start_new_session=True, env=_environment())
        except OSError as err:
            raise Unreachable(f"{argv[0]} can not be started: {err}") from err
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
    """The fabric's hooks for ClaudeAgentOptions(hooks=...), after those in existing.

    existing is kept as it is and not changed; hooks of the fabric in it are not added
    twice. agent is the agent's id; None: claude-<session>. timeout is the SDK's, in
    seconds; answers come before it. client is asked; None: one that is made of
    agent and unreachable. events are the SDK's names of the moments that are asked about.

    The values are HookMatcher objects if claude_agent_sdk can be imported, else dicts with
    the same fields.
    """
    if timeout <= 0:
        raise ValueError(f"timeout is {timeout}; it must be longer than nothing")
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
    """No matcher: the fabric's own configuration says which tools hooks are about."""
    try:
        from claude_agent_sdk import HookMatcher  # type: ignore[import-not-found]
    except ImportError:
        return {"matcher": None, "hooks": [callback], "timeout": timeout}
    try:
        return HookMatcher(matcher=None, hooks=[callback], timeout=timeout)
    except TypeError:  # an SDK from before there were timeouts
        return HookMatcher(matcher=None, hooks=[callback])


def _callback(client: Client, event: str, timeout: float) -> Callable[[JSON, Optional[str], Any], Awaitable[JSON]]:
    async def ask_the_fabric(input_data: JSON, tool_use_id: Optional[str], context: Any) -> JSON:
        payload = dict(input_data)
        payload.setdefault("hook_event_name", event)
        if tool_use_id and not payload.get("tool_use_id"):
            payload["tool_use_id"] = tool_use_id
        call = _Call(timeout - _margin(timeout))  # waiting for a thread counts, too
        try:
            asked = asyncio.get_running_loop().run_in_executor(client._threads, client._hook, call, "claude", event, payload)
            return await asyncio.wait_for(asked, timeout - _margin(timeout))
        except Exception as why:  # whatever breaks, the SDK gets an answer
            return _claude_unjudged(client, event, why)
        finally:
            call.give_up()  # the SDK may have cancelled it

    setattr(ask_the_fabric, "hookfabric", True)
    return ask_the_fabric


def _claude_unjudged(client: Client, event: str, why: BaseException) -> JSON:
    log.warning("nobody judged %s (unreachable=%s): %s", event, client.unreachable, why or type(why).__name__)
    if client.unreachable != "deny":
        return {}
    return _claude_refusal(event, _refusal(why))


def _claude_refusal(event: str, reason: str) -> JSON:
    """A no as the SDK understands it; where nothing can be refused any more, nothing."""
    if event == "PreToolUse":
        return {"hookSpecificOutput": {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason}}
    if event == "PermissionRequest":
        return {"hookSpecificOutput": {"hookEventName": event, "decision": {"behavior": "deny", "message": reason}}}
    if event == "UserPromptSubmit":
        return {"decision": "block", "reason": reason}
    return {}


def _said(runtime: str, event: str, code: int, stdout: bytes, stderr: bytes) -> JSON:
    """What `agentshim hook` said. Exit code 2 is a no, and stderr its reason."""
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
    """A verdict always decides; what a runtime is answered may be nothing."""
    if runtime == "generic" and value.get("decision") not in _DECISIONS:
        raise Unreachable(f"{what} has no decision that is known")
    return value


# The contract of the events: what may be decided where.


class AgentEvent(str, enum.Enum):
    """The moments of an agent's loop, by the fabric's names."""

    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    BEFORE_LLM_CALL = "BeforeLLMCall"
    AFTER_LLM_CALL = "AfterLLMCall"
    BEFORE_TOOL_EXECUTION = "PreToolUse"
    AFTER_TOOL_EXECUTION = "PostToolUse"
    ON_TOOL_ERROR = "ToolError"
    BEFORE_FINAL_RESPONSE = "BeforeFinalResponse"
    QUERY_END = "QueryEnd"


class HookDecision(str, enum.Enum):
    """What a hook decides. ALLOW, ASK and DENY are about tool calls; a DENY after one is feedback to the model."""

    CONTINUE = "continue"
    RETRY = "retry"
    FAIL = "fail"
    STOP = "stop"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class _Contract(NamedTuple):
    """What may be decided at an event: the same table as the fabric's own, which a test holds it to."""

    decisions: Tuple[str, ...]
    stop: str = ""  # the value of a stop: message or tool_result
    rewrite: str = ""  # what hooks may replace: input, output, message or response
    chains: bool = False  # the first decisive result ends the chain; else nothing is ever dropped
    blocking: str = ""  # what a fail-closed hook that failed decides; empty: it is only recorded


_CONTRACT: Dict[str, _Contract] = {
    "SessionStart": _Contract(("continue",)),
    "UserPromptSubmit": _Contract(("continue", "deny"), chains=True, blocking="deny"),
    "BeforeLLMCall": _Contract(("continue", "fail", "stop"), "message", "", True, "fail"),
    "AfterLLMCall": _Contract(("continue", "retry", "fail", "stop"), "message", "message", True, "fail"),
    "PreToolUse": _Contract(("continue", "allow", "ask", "deny", "fail", "stop"), "tool_result", "input", True, "deny"),
    "PostToolUse": _Contract(("continue", "deny", "fail"), rewrite="output"),
    "ToolError": _Contract(("continue", "deny", "fail"), rewrite="output"),
    "BeforeFinalResponse": _Contract(("continue", "retry", "fail", "stop"), "message", "message", True, "fail"),
    "QueryEnd": _Contract(("continue", "fail"), rewrite="response"),
    "SessionEnd": _Contract(("continue",)),
}

_NOTHING = _Contract(())  # an event that nobody knows


def _terminal(event: str, decision: str) -> bool:
    return _CONTRACT.get(event, _NOTHING).chains and decision in ("deny", "fail", "stop", "retry")


# The judgement: what one hook's outcome comes to, and the fold of several. The fabric judges remote hooks in the same
# way; a test feeds both with the same outcomes.

_MAX_RESULT, _MAX_REASON, _MAX_EFFECTS, _MAX_FLAGS, _MAX_FLAG, _MAX_FLAG_VALUE = 1 << 20, 4 << 10, 64, 256, 128, 16 << 10
_SAYING = {
    "deadline": "did not answer before its deadline",
    "error": "failed",
    "no_worker": "no worker serves its pool",
    "lost": "was lost with its worker",
    "busy": "every worker of its pool stayed busy until its deadline",
    "load_error": "its handler can not be loaded",
}
_STOP_VALUES = {"message": "a message: a string, or an object that is the model's", "tool_result": "a tool result: any JSON but null", "": "none"}


def _settle(hook: JSON, outcome: JSON) -> JSON:
    """A hook's part of the verdict: illegal parts of its answer become errors, and its failure policy is applied."""
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
        self.failure = ""  # the first thing that went wrong

    def note(self, what: str) -> None:
        """Record something that went wrong without changing the outcome."""
        what = _cut(what, _MAX_REASON)
        self.failure = self.failure or what
        self.out.setdefault("hook_errors", []).append(f"hook {_quoted(self.name)}: {what}")

    def fault(self, what: str) -> None:
        """Make the outcome an error: the failure policy decides."""
        self.note(what)
        self.kind = "error"

    def misshapen(self, what: str) -> None:
        """A guard that wanted something changed, and said it wrong, must not be taken for one that let it pass as it was."""
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
        if decision == "reject" and "fail" in legal:
            decision = "fail"
        if decision in ("", "continue") or decision == "allow" and decision not in legal:
            return
        if decision not in legal:
            self.fault(f"decided {_quoted(_cut(decision, 40))}; at {self.event} write one of {', '.join(legal)}")
        elif decision == "stop" and not _fits_stop(result.get("value"), self.contract.stop):
            self.fault(f"decided stop without its value; at {self.event} a stop carries {_STOP_VALUES[self.contract.stop]}")
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
            pass  # it is the value that made the stop a fault
        elif of in ("input", "output") and result.get("updated_" + of) is not None:
            self.note(f"value dropped: updated_{of} says already what the tool's {of} is to be")
        elif of:
            self.replace("value", value)
        elif "stop" in self.contract.decisions:
            self.note(f"value dropped: at {self.event} only a stop carries one")
        else:
            self.note(f"value dropped: {self.event} takes none")

    def replace(self, field: str, value: Any) -> None:
        of = self.contract.rewrite
        if self.hook.get("readonly"):
            self.fault(f"{field} dropped: the hook is readonly; configure readonly: false for a hook that rewrites")
        elif of == "input" and not isinstance(value, dict):
            self.misshapen(f"{field} dropped: it must be the tool's whole input as a JSON object")
        elif of == "message" and not _models_message(value):
            self.misshapen(f"{field} dropped: a message is a string, or an object that is the model's")
        else:
            self.out["updated_" + of if of in ("input", "output") else "value"] = value

    def effects(self, effects: List[Any]) -> None:
        if len(effects) > _MAX_EFFECTS:
            self.misshapen(f"has {len(effects)} effects; the first {_MAX_EFFECTS} are kept")
        for effect in effects[:_MAX_EFFECTS]:
            wrong = _effect_fault(effect)
            if wrong:
                self.misshapen(f"an effect was dropped: {wrong}")
            else:
                self.out.setdefault("effects", []).append(effect)

    def inject(self, injections: List[JSON]) -> None:
        for injection in injections:
            strategy = injection.get("strategy") or "tool_result"
            if not injection.get("content"):
                continue
            if strategy not in ("tool_result", "user_message"):
                self.note(f"injection strategy {_quoted(_cut(strategy, 40))} taken as tool_result; write tool_result or user_message")
                strategy = "tool_result"
            self.out.setdefault("injections", []).append({"content": injection["content"], "strategy": strategy, "hook": self.name})

    def apply_policy(self) -> None:
        """Decide for a hook that has no answer. A refusal that came with the failure stands; an allow does not."""
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
        """Take from a result that ends its chain what only a result that goes on may carry."""
        if _terminal(self.event, self.out.get("decision", "")):
            self.drop("updated_input", "updated_output")
            if self.out["decision"] != "stop":
                self.drop("value")

    def drop(self, *fields: str) -> None:
        for field in fields:
            self.out.pop(field, None)


def _fold(event: str, a: JSON, b: JSON) -> JSON:
    """What two neighbouring runs of hooks came to, a's before b's. {} is nobody's opinion."""
    if _terminal(event, a.get("decision", "")):
        return a
    trail = {field: a.get(field, []) + b.get(field, []) for field in ("executed_hooks", "hook_errors", "injections")}
    if _terminal(event, b.get("decision", "")):
        end = {**b, **trail}
    else:
        end = {**a, **trail, "effects": a.get("effects", []) + b.get("effects", [])}
        for field in ("updated_input", "updated_output", "value"):
            if field in b:
                end[field] = b[field]  # its hook has seen the earlier one
        rank_a, rank_b = _RANK.get(a.get("decision", ""), 0), _RANK.get(b.get("decision", ""), 0)
        if rank_a < rank_b:
            for field in ("decision", "reason", "auto_approve"):
                end.pop(field, None)
                if field in b:
                    end[field] = b[field]
        elif rank_a == rank_b > 0 and b.get("auto_approve"):
            end["auto_approve"] = True
    return {k: v for k, v in end.items() if v != []or k in ("updated_output", "value")}


#: The decisions that end no chain: the greatest wins, the first of equals keeps its reason.
_RANK = {"allow": 1, "ask": 2, "deny": 2, "fail": 3}


def _models_message(value: Any) -> bool:
    """Whether value can be what a model says: a text, or an object that does not say that it is somebody else's."""
    if isinstance(value, dict):
        role = value.get("role")
        return not (isinstance(role, str) and role in ("system", "user", "tool"))
    return isinstance(value, str)


def _fits_stop(value: Any, kind: str) -> bool:
    return _models_message(value) if kind == "message" else kind == "tool_result" and value is not None


def _size(result: JSON) -> int:
    size = sum(len(_bytes(result.get(field) or "")) for field in ("decision", "reason"))
    size += sum(len(_dumps(result[field])) for field in ("updated_input", "updated_output", "value") if field in result)
    size += sum(len(_dumps(effect)) for effect in result.get("effects") or ())
    size += sum(len(_bytes(i.get("content") or "")) + len(_bytes(i.get("strategy") or "")) for i in result.get("injections") or ())
    return size + sum(len(_bytes(error)) for error in result.get("hook_errors") or ())


# Effects as data.


def _effect_fault(effect: Any) -> str:
    """What is wrong with an effect, as a sentence; empty: nothing."""
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
        if field not in ("first", "last", "role", "containing"):  # without it, more would be taken out than was meant
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
    """Apply an effect that is legal. What could not be done is said."""
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
    """The places of the messages to take out. A call goes with its results, and results with their call; one that still runs stays."""
    fit = [i for i, message in enumerate(history) if (message.role == role if role else message.role != "system") and (not containing or _contains(message, containing))]
    picked = set(fit[:first] if first else fit[-last:] if last else fit)
    for turn, is_open in _turns(history):
        if picked.intersection(turn):
            picked = picked.difference(turn) if is_open else picked.union(turn)
    return picked


def _turns(history: "Sequence[Message]") -> "List[tuple[List[int], bool]]":
    """The places of each message with calls and of the results behind it, and whether some call has no result yet."""
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
    """A call that the model asks for. input is an object, or the text that the model wrote if that is none."""

    id: str = ""
    name: str = ""
    input: Any = dataclasses.field(default_factory=dict)

    def to_dict(self) -> JSON:
        return {**_sparse(id=self.id), "name": self.name, "input": _plain(self.input)}


@dataclasses.dataclass
class ToolResult:
    """What came of a call. result is any JSON; error, if it is not empty, says why the call failed or was not made.

    notes are what hooks have to say beside the result.
    """

    tool_name: str = ""
    tool_call_id: str = ""
    result: Any = None
    error: Optional[str] = None
    notes: List[str] = dataclasses.field(default_factory=list)

    @property
    def status(self) -> str:
        """success, or error."""
        return "error" if self.error else "success"

    def to_dict(self) -> JSON:
        d = _sparse(id=self.tool_call_id, name=self.tool_name, error=self.error or "", notes=[str(note) for note in self.notes])
        d.setdefault("name", "")
        if self.result is not None or not self.error:
            d["output"] = _plain(self.result)
        return d


class Message:
    """A message of a conversation, in no API's shape."""

    role = ""
    content: str = ""

    def to_dict(self) -> JSON:
        return {"role": self.role, "content": str(self.content or "")}


@dataclasses.dataclass
class SystemMessage(Message):
    """What the model is told by whoever runs it."""

    content: str = ""
    role = "system"


@dataclasses.dataclass
class HumanMessage(Message):
    """What the user says, and what hooks say in a message of its own."""

    content: str = ""
    role = "user"


@dataclasses.dataclass
class AssistantMessage(Message):
    """What the model says. native is the message as its API gave it, for what has no place here."""

    content: str = ""
    tool_calls: List[ToolCall] = dataclasses.field(default_factory=list)
    native: Any = None
    role = "assistant"

    def to_dict(self) -> JSON:
        return {**super().to_dict(), **_sparse(tool_calls=[call.to_dict() for call in self.tool_calls], native=_plain(self.native))}


@dataclasses.dataclass
class ToolMessage(Message):
    """What the model is told of a call that it asked for."""

    result: ToolResult = dataclasses.field(default_factory=ToolResult)
    role = "tool"

    @property
    def content(self) -> str:  # type: ignore[override]
        """The result as a text."""
        if self.result.error:
            return self.result.error
        return self.result.result if isinstance(self.result.result, str) else _dumps(_plain(self.result.result)).decode()

    def to_dict(self) -> JSON:
        return {"role": self.role, "content": "", "tool_result": self.result.to_dict()}


def message(value: Mapping[str, Any]) -> Message:
    """A message in the fabric's form, as to_dict writes it."""
    role, result = value.get("role") or "assistant", value.get("tool_result") or {}
    if role == "tool":
        return ToolMessage(ToolResult(result.get("name") or "", result.get("id") or "", result.get("output"), result.get("error"), list(result.get("notes") or ())))
    return _assistant(value) if role == "assistant" else _ROLES[role](value.get("content") or "")


def _checked(message: Any) -> Any:
    """A message in whose calls there are calls only."""
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
    """A model's message: an AssistantMessage, its text, or an object in the fabric's form."""
    if isinstance(value, AssistantMessage):
        return _checked(value)
    if isinstance(value, str):
        return AssistantMessage(value)
    if not isinstance(value, Mapping) or value.get("role") not in (None, "", "assistant"):
        raise TypeError(f"that is {_kind(value)}, and no message of a model; return an AssistantMessage, its text, or "
                        '{"role": "assistant", "content": "…", "tool_calls": […]}')
    value = _completion(value)
    calls, content = value.get("tool_calls") or [], value.get("content")
    if not isinstance(content, str) and content is not None or not isinstance(calls, list) or not _says(value):
        return AssistantMessage(native=dict(value))  # an object of a runtime's own
    return AssistantMessage(content or "", [_call(call) for call in calls], value.get("native"))


def _says(value: Mapping[str, Any]) -> bool:
    """Whether an object of a message's form says something, or nothing on purpose: one of another form must not be taken for an
    empty message."""
    known = {"role", "content", "tool_calls", "tool_result", "native"}
    if any(isinstance(call, Mapping) and not call.get("name") for call in value.get("tool_calls") or ()):
        return False
    return isinstance(value.get("content"), str) or bool(value.get("tool_calls")) or value.get("native") is not None or set(value) <= known


def _completion(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of Chat Completions, whose calls stand one level deeper, as one of ours; any other is as it was."""
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
    """The object in a string; where it holds none, what the model wrote."""
    try:
        found = (json.loads(text, object_pairs_hook=_once) if text.strip() else {}) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def _once(pairs: Sequence[Tuple[str, Any]]) -> JSON:
    """An object in which no name stands twice; of such a one two readers make different things."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _revised(old: AssistantMessage, value: Any) -> AssistantMessage:
    """What takes the place of a message. A text takes the place of its text only, so that who mends words cancels no calls;
    and what the API said of the old message must not speak for the new one."""
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
    """What a query ended with.

    status is answered, stopped (a hook gave the answer), failed (a hook, or the loop), rejected (the prompt was), terminated, cancelled,
    model_error or max_iterations; no hook can change it. error is why there is no answer, reason what the hook
    said that ended the query. iterations counts the model calls.
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
    """A query ended without an answer. response says how; where the model failed, __cause__ is its exception."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"the query ended as {response.status}: {response.error or response.reason or 'no reason was given'}")
        self.response = response


# Hooks of the agent's own.


@dataclasses.dataclass
class AgentStatus:
    """What conditions, effects and values look at. What an event does not have is None; along a chain of hooks
    it shows what those before have made of it."""

    event: AgentEvent
    agent: "Agent"
    iteration: int
    tool_call: Optional[ToolCall] = None
    tool_result: Optional[ToolResult] = None
    assistant_message: Optional[AssistantMessage] = None
    error: Optional[str] = None


class Registration:
    """A hook that is being written down; handle and reject end it."""

    def __init__(self, agent: "Agent", event: AgentEvent, name: str, fail_closed: bool, timeout: float) -> None:
        self._agent, self._event, self._name, self._fail_closed, self._timeout = agent, event, name, fail_closed, timeout
        self._conditions: List[Callable[..., Any]] = []

    def when(self, condition: Callable[[AgentStatus], Any]) -> "Registration":
        """Let the hook act only where condition(status), sync or async, is true; of several, all must be.
        One that fails counts as true, and is told in the response's hook_errors; one that takes too long is a failure of the hook."""
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
        """Say what the hook does: first all effects in order, then the value, then the decision.

        effects are functions of the status, sync or async, or effects as data such as {"set_flag": {"seen": True}}. value is
        the new value, or a function of the status and the current one. inject is content for the model: a text, or
        {"content", "strategy"}. A hook that fails or takes longer than timeout has no opinion, or refuses if it is fail_closed.
        What the event does not permit is a RuntimeError.
        """
        hook = Hook(self._event, self._name, tuple(self._conditions), _word(decision), value, _listed(effects), reason, _injections(inject),
                    self._fail_closed if fail_closed is None else fail_closed, self._timeout if timeout is None else timeout)
        hook._check()
        return self._agent._add(hook)

    def reject(self, reason: str) -> "Hook":
        """End the query with this reason."""
        return self.handle(HookDecision.FAIL, reason=reason)


class Hook:
    """A registered hook; remove() takes it away."""

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
            raise TypeError("a reason is a text, and so are the content and the strategy of what is injected")
        if self.decision not in contract.decisions:
            raise RuntimeError(f"{self.decision.upper()} is not for {event.name}; write one of {', '.join(d.upper() for d in contract.decisions)}")
        if self.decision == "stop" and self._value is None:
            raise RuntimeError(f"a STOP at {event.name} needs a value: {_STOP_VALUES[contract.stop]}")
        if self._value is not None and self.decision != "stop" and not contract.rewrite:
            raise RuntimeError(f"there is nothing at {event.name} that a value could replace" + ("; only a STOP has one" if contract.stop else ""))
        if self._timeout <= 0:
            raise ValueError(f"the hook's timeout is {self._timeout}; write seconds above 0")
        for effect in self._effects:
            wrong = "" if callable(effect) else _effect_fault(effect)
            if wrong:
                raise RuntimeError(f"{wrong}; or write a function of the status")

    async def _run(self, agent: "Agent", run: "_Query", moment: "_Moment") -> "Optional[tuple[JSON, Any]]":
        """The hook's outcome, and its value; None: its condition does not hold."""
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
                raise  # the hook's time is up
            except Exception as err:  # nobody knows what it would have said: the hook acts
                errors.append(f"its condition counts as true: {_failure(err)}")
        return True

    async def _replacement(self, agent: "Agent", moment: "_Moment", end: float) -> Any:
        if not callable(self._value):
            return copy.deepcopy(self._value)
        arguments = (moment.status(agent), copy.deepcopy(moment.value))
        value = await _called(self._value, arguments[:_arity(self._value, 2)], end)
        if value is None:
            raise TypeError(f"its value is nothing; return what {self.event.name} is about, changed or not")
        return value

    def _says(self, moment: "_Moment", value: Any) -> JSON:
        says = _sparse(decision=self.decision, reason=self._reason, injections=self._injections)
        if value is not None:
            says.update(moment.written(value, self.decision == "stop"))
        return says

    def _card(self) -> JSON:
        return {"name": self.name, "event": self.event.value, "fail_closed": self._fail_closed}


# The moment that hooks are asked about.


class _Moment:
    """One event, with what its hooks have made of it so far in value.

    call is the tool's call where the value is its result. place is that of the call in its turn; None: no tool is about.
    mute: the fabric is asked to bring nothing that waits.
    """

    def __init__(self, event: AgentEvent, iteration: int, value: Any = None, *, call: Optional[ToolCall] = None, prompt: str = "",
                 mute: bool = False, place: Optional[int] = None) -> None:
        self.event, self.iteration, self.value, self.before, self.stop = event, iteration, value, value, None
        self.call, self.prompt, self.mute, self.place = call, prompt, mute, place

    def status(self, agent: "Agent") -> AgentStatus:
        """Each hook gets one of its own, so that nobody changes what others see."""
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
        """The event in the fabric's form."""
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
        """A value of a hook in the fabric's form. One of a wrong type is a TypeError."""
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
                raise TypeError(f"its value is a call of another tool, {value.name!r}; a hook may change the input of a call only")
            value = value.input
        if not isinstance(value, Mapping):
            raise TypeError(f"its value is {_kind(value)}; return the ToolCall, or its input as a dict")
        return {"updated_input": _strict(value)}

    def rewrite(self, verdict: JSON, typed: Any = None) -> None:
        """Take in what a verdict makes of the value; typed is the value of a hook of the agent's own, as it gave it. What can not be
        read is a TypeError."""
        if verdict.get("decision") == "stop":
            self.stop = typed
        elif _terminal(self.event.value, verdict.get("decision", "")):
            self.value = self.before  # what was changed before an end does not count
        elif isinstance(self.value, ToolCall) and "updated_input" in verdict:
            if not isinstance(verdict["updated_input"], dict):
                raise TypeError(f"the input is {_kind(verdict['updated_input'])}; write the tool's whole input as an object")
            self.value = dataclasses.replace(self.value, input=verdict["updated_input"])
        elif isinstance(self.value, ToolResult) and "updated_output" in verdict:
            whole = isinstance(typed, ToolResult)  # the agent's own hooks may say also what the error is
            output = _plain(typed.result) if whole else verdict["updated_output"]
            self.value = dataclasses.replace(self.value, result=output, **({"error": typed.error} if whole else {}))
        elif isinstance(self.value, AssistantMessage) and "value" in verdict:
            self.value = _revised(self.value, verdict["value"])
        elif isinstance(self.value, Response) and "value" in verdict:
            self.value = _answered(self.value, verdict["value"])

    def answer(self, verdict: JSON) -> ToolResult:
        """The result that a hook gave for a call in the tool's place."""
        result = ToolResult(self.value.name, self.value.id, verdict["value"])
        return dataclasses.replace(result, result=_plain(self.stop.result), error=self.stop.error) if isinstance(self.stop, ToolResult) else result


def _output(value: Any) -> Any:
    """A tool's output. Of a result, the error stands for an output that is not there."""
    if isinstance(value, ToolResult):
        value = value.error if value.result is None and value.error else value.result
    return "" if value is None else _strict(value)


def _answered(response: Response, value: Any) -> Response:
    """A response with another answer. How the query ended stays: that is the truth."""
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
    """A function that the model may call, by name, with an input that fits schema (a JSON Schema of an object)."""

    name: str
    description: str
    schema: JSON
    function: Callable[..., Any]

    @classmethod
    def of(cls, function: Callable[..., Any], name: str = "", description: str = "", schema: Optional[JSON] = None) -> "Tool":
        """A function as a tool; its schema is that of its type hints, its description its docstring."""
        return cls(name or function.__name__, description or inspect.getdoc(function) or "", schema or _schema_of(function), function)

    def to_dict(self) -> JSON:
        return {"name": self.name, **_sparse(description=self.description), "schema": self.schema}

    async def call(self, arguments: Any) -> Any:
        """Call it. Arguments that do not fit are a ValueError."""
        if not isinstance(arguments, Mapping):
            raise _BadCall(f"the input of {self.name} is {_kind(arguments)}; it must be an object")
        wrong = _misfit(self.schema, dict(arguments), "the input")
        if wrong:
            raise _BadCall(wrong)
        return await _called(functools.partial(self.function, **arguments))


class _BadCall(ValueError):
    """A call that can not be made, in a sentence for the model."""


def _schema_of(function: Callable[..., Any]) -> JSON:
    hints, properties, required, more = typing.get_type_hints(function), {}, [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"the tool {function.__name__} has the parameter {parameter}; tools are called by names")
        else:
            properties[name] = _schema(hints.get(name, Any))
            if parameter.default is parameter.empty:
                required.append(name)
    return {"type": "object", "properties": properties, **_sparse(required=required), "additionalProperties": more}


_TYPES: Dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", tuple: "array", dict: "object", type(None): "null"}


def _schema(hint: Any) -> JSON:
    """The JSON Schema of a type hint; what has none fits anything."""
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
    """Why value does not fit a schema, as far as models get types and names wrong; empty: it does."""
    if not isinstance(schema, dict):
        return "" if schema is not False else f"{where} must not be there"
    if "enum" in schema and not any(type(one) is type(value) and one == value for one in schema["enum"]):
        return f"{where} is {_short(_dumps(value))}; it must be one of {_short(_dumps(schema['enum']))}"
    if "anyOf" in schema and not any(_misfit(one, value, where) == "" for one in schema["anyOf"]):
        return f"{where} is {_kind(value)}, which is of no type that it may have"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{where} is {_kind(value)}; it must be of the type {' or '.join(kinds)}"
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
    """What a model is called with."""

    messages: List[Message]
    tools: List[Tool]
    iteration: int = 1

    def to_dict(self) -> JSON:
        return {"messages": [message.to_dict() for message in self.messages], "tools": [tool.to_dict() for tool in self.tools]}


@dataclasses.dataclass
class Chunk:
    """A piece of what somebody sees who watches the agent. kind is text, tool_call, tool_result, injection, retry, restart, or in the end end; the text of an injection begins with [INJECTION]."""

    kind: str
    text: str
    source: str = ""

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass
class _Draft:
    """The conversation and the flags as one effect sees and changes them: one that is too late changes nothing any more."""

    agent: "Agent"
    history: List[Message]
    flags: JSON


_draft: "contextvars.ContextVar[Optional[_Draft]]" = contextvars.ContextVar("hookfabric_draft", default=None)


class _Over(Exception):
    """The query is over, without an answer: error says why, and reason what a hook said of it."""

    def __init__(self, status: str, error: str, reason: str = "") -> None:
        super().__init__(error)
        self.status, self.error, self.reason = status, error, reason


class _Restart(Exception):
    """The turn begins anew, by this verdict."""

    def __init__(self, verdict: JSON) -> None:
        super().__init__("the turn begins anew")
        self.verdict, self.reason = verdict, str(verdict["restart"].get("reason") or "")
        self.content = str(verdict["restart"].get("content") or self.reason)


@dataclasses.dataclass
class _Done:
    """What came of a call: its result, what is to be said behind all results, and how it ends the turn or the query."""

    result: ToolResult
    texts: List[str] = dataclasses.field(default_factory=list)
    events: List[Optional[str]] = dataclasses.field(default_factory=list)  # what they brought is among the notes and texts
    ends: Optional[Exception] = None


@dataclasses.dataclass
class _Brought:
    """What an event brought for the model: items of a fabric's queue, and more. stands: it is in the conversation. What came nowhere,
    since the query ended there, is not acknowledged, so that it comes again."""

    items: Set[Tuple[Optional[str], int]]
    stands: bool = False


@dataclasses.dataclass
class _Query:
    """One query under way."""

    prompt: str
    lock: asyncio.Lock
    slots: asyncio.Semaphore
    over: asyncio.Event  # set while the turn's calls are under way and ends says something
    iteration: int = 0
    ended: str = "answered"
    put_off: int = 0  # how often its end was put off to deliver what waited
    last: str = ""  # why the model is asked once more
    places: Dict[int, int] = dataclasses.field(default_factory=dict)  # the calls under way whose hooks added messages, by id()
    hook_errors: List[str] = dataclasses.field(default_factory=list)
    ends: str = ""  # why calls that did not begin yet are not made any more


class Agent:
    """An agent's loop: the model is called, then the tools that it asks for, until it asks for none.

    At each moment hooks may look, change the conversation, replace what is at hand and steer: those of on(), in the order of their
    registration, and with a client those of the fabric, after them or (order="remote-first") before them. A decision that ends
    the chain ends it for both; the fabric's restart or terminate stands whatever they decide. A rewrite of the fabric's that can not be
    read blocks where a failure can. Sync functions run in threads of their own, so that none can hold up the loop.

    model is called with a Conversation, sync or async, and returns a str, an AssistantMessage or a dict in the fabric's form.
    client asks the fabric; None: only the agent's own hooks are asked. max_iterations bounds the model calls of a query, and with them all
    retries. final_retries is how often a query may be kept from ending because something waits for the agent; after that it waits on.
    approve(call, reason) answers an ASK, for as long as the turn lasts; None: such a call is not made. output is told what happens, in Chunks.
    parallel is how many tools run at a time. event_timeout bounds each question to the fabric, in seconds.

    Events carry the conversation where some hook of the fabric needs it. When the fabric's configuration changes, the first event after
    that still goes by the old one: a hook that is new, and needs the conversation, then fails by its policy, once. A value of a hook of the
    agent's own has at most 1 MiB, as all that a hook says; a larger one is an error of the hook.
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
            raise ValueError("max_iterations and parallel are at least 1, and event_timeout is above 0")
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
        self._running = threading.Lock()  # held by the query under way
        self._owed: Dict[str, _Brought] = {}  # what the model is yet to read, by the event that brought it
        self._needs: Set[str] = set()  # the events at which some hook of the fabric needs the conversation
        self._needs_of: Any = None  # the version of the configuration that says so; None: nobody was asked
        self._needs_known = False

    # What users write.

    @property
    def conversation_history(self) -> List[Message]:
        """The messages so far. Effects append to it, change it, or put another list in its place."""
        draft = _draft.get()
        return draft.history if draft is not None and draft.agent is self else self._history

    @conversation_history.setter
    def conversation_history(self, messages: Sequence[Message]) -> None:
        there = self.conversation_history
        there[:] = list(messages)
        if there is self._history:
            self._owed = {}  # what was in the old one and is not read yet comes again

    @property
    def flags(self) -> JSON:
        """What effects and hooks remember; events carry it to the hooks of the fabric."""
        draft = _draft.get()
        return draft.flags if draft is not None and draft.agent is self else self._flags

    @flags.setter
    def flags(self, flags: Mapping[str, Any]) -> None:
        kept, there = dict(flags), self.flags
        there.clear()
        there.update(kept)

    def on(self, event: Union[AgentEvent, str], *, name: str = "", fail_closed: bool = False, timeout: float = 30.0) -> Registration:
        """Write down a hook: on(event).when(condition).handle(decision, value, effects)."""
        if event in ("SessionStart", "SessionEnd"):
            raise ValueError(f"no query asks {event}: a loop knows queries and no sessions; write UserPromptSubmit or QueryEnd, or have the "
                             "program ask by Client.ask")
        try:
            at = AgentEvent(event)
        except ValueError:
            raise ValueError(f"there is no event {event!r} in a loop; write one of {', '.join('AgentEvent.' + one.name for one in AgentEvent)}") from None
        return Registration(self, at, name, fail_closed, timeout)

    def tool(self, function: Optional[Callable[..., Any]] = None, *, name: str = "", description: str = "", schema: Optional[JSON] = None) -> Any:
        """Decorate a function, sync or async, as a tool of the agent."""
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self._add_tool(Tool.of(function, name, description, schema))
            return function

        return add if function is None else add(function)

    def run(self, query: str, *, new_conversation: bool = False) -> Response:
        """The answer to a query. Raises QueryFailed where there is none."""
        running = True
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            running = False
        if running:
            raise RuntimeError("run was called where an event loop runs already; write 'await agent.arun(...)' there")
        return asyncio.run(self.arun(query, new_conversation=new_conversation))

    async def arun(self, query: str, *, new_conversation: bool = False) -> Response:
        """As run, on the caller's event loop. The conversation goes on where the last query left it, unless it is to be a new one."""
        if self.model is None:
            raise RuntimeError("the agent has no model; write Agent(..., model=...)")
        if not self._running.acquire(blocking=False):
            raise RuntimeError("the agent is at a query already; one at a time, or make another Agent")
        try:
            return await self._whole(query, new_conversation)
        finally:
            self._owed = {event: brought for event, brought in self._owed.items() if brought.stands}
            self._running.release()

    # A query from its beginning to its end.

    async def _whole(self, query: str, anew: bool) -> Response:
        run = _Query(query, asyncio.Lock(), asyncio.Semaphore(self._parallel), asyncio.Event())
        response, cause = Response(), None
        try:
            response.message = await self._answer(run, anew)
            response.status = run.ended
        except _Over as over:
            response.status, response.reason, response.error, cause = over.status, over.reason, over.error, over.__cause__
        except asyncio.CancelledError as err:
            response.status, response.error, cause = "cancelled", "the query was cancelled", err
        except BaseException as err:  # whatever breaks, the hooks at the end of the query hear of it
            response.status, response.error, cause = "failed", _failure(err), err
        try:
            self._close_calls(f"The call was not finished, since the query ended: {response.error or response.reason or response.status}")
        except Exception as err:  # of messages that are none; the end comes all the same
            run.hook_errors.append(f"the conversation is damaged: {_failure(err)}")
        response.content = _text(response.message) if response.message else ""
        response.iterations, response.hook_errors = run.iteration, run.hook_errors
        response = await self._end(run, response)
        if response.content:
            self._show("text", response.content)
        self._show("end", response.error)
        if isinstance(cause, BaseException) and not isinstance(cause, Exception):
            raise cause
        if response.status not in ("answered", "stopped"):
            raise QueryFailed(response) from cause
        return response

    async def _end(self, run: _Query, response: Response) -> Response:
        """Ask the hooks at the end of a query, once, also if the query was cancelled or is while they are asked."""
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
            run.hook_errors.append("the hooks at QueryEnd were not done in time")
        elif not ending.cancelled() and ending.exception() is not None:
            run.hook_errors.append(f"the hooks at QueryEnd: {_failure(ending.exception())}")
        elif not ending.cancelled() and ending.result().get("decision") == "fail":
            run.hook_errors.append(f"at the query's end, where that is only recorded: {ending.result().get('reason') or 'a hook failed it'}")
        if cancelled is not None:
            raise cancelled
        return dataclasses.replace(moment.value, hook_errors=run.hook_errors)

    async def _answer(self, run: _Query, anew: bool) -> AssistantMessage:
        self._needs_of = self._needs_of if self._needs_known else None
        if anew:
            self._begin()
        elif not self._history and self.system:
            self._history.append(SystemMessage(self.system))
        try:
            asked = await self._decided(run, _Moment(AgentEvent.USER_PROMPT_SUBMIT, 0, prompt=run.prompt))
            if asked.get("decision") == "deny":
                raise _Over("rejected", "the prompt was refused: " + (asked.get("reason") or "no reason was given"), asked.get("reason") or "")
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
        raise _Over("max_iterations", f"the query needs more model calls than it may have: after {self._max_iterations} of them {run.last}")

    async def _turn(self, run: _Query) -> Optional[AssistantMessage]:
        """One model call with what comes before and after it; None: there is to be another."""
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
        return moment.value

    def _stopped(self, run: _Query, verdict: JSON) -> AssistantMessage:
        """A message that a hook gave ends the query. It asks for no calls, since nobody would make them."""
        message, run.ended = _closing(_assistant(verdict["value"])), "stopped"
        self._history.append(message)
        self._tell(run, verdict)
        return message

    def _begin(self, *texts: str) -> None:
        """The conversation begins anew."""
        self._history[:] = [SystemMessage(self.system)] if self.system else []
        self._history.extend(HumanMessage(text) for text in texts if text)
        self._owed = {}  # what was in it and is not read yet comes again

    def _restarted(self, run: _Query, restart: _Restart) -> None:
        self._begin(run.prompt, restart.content)
        self._note_brought(restart.verdict)
        run.last = "the fabric restarted the turn" + (f": {restart.reason}" if restart.reason else "")
        self._show("restart", restart.content)
        self._tell(run, restart.verdict)

    def _again(self, run: _Query, verdict: JSON) -> None:
        """Another attempt, as the hook that wants it says why."""
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
        try:  # what the model gets is the model's
            said = await _called(self.model, (Conversation(copy.deepcopy(self._history), tools, run.iteration),))  # type: ignore[arg-type]
            message = copy.deepcopy(_assistant(said))
        except Exception as err:
            raise _Over("model_error", f"the model call failed: {_failure(err)}") from err
        owed, self._owed = [event for event, brought in self._owed.items() if brought.stands], {}
        if owed and self.client is not None:  # the model has read it
            try:
                await self._asked(self.client, lambda call: self.client._ack(call, owed, self.name), 5.0)  # type: ignore[union-attr]
            except Exception as err:
                log.warning("what was handed over could not be acknowledged, and may come again: %s", _failure(err))
        return message

    # The tools.

    async def _call_tools(self, run: _Query, message: AssistantMessage, after: JSON) -> None:
        """Make the calls of a message side by side; their results stand in its order, right behind it."""
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
            await asyncio.wait(tasks, timeout=_GRACE)  # hooks hear of what ran
        done = [_done(task, call) for task, call in zip(tasks, message.tool_calls)]
        at = next((i + 1 for i, one in enumerate(self._history) if one is message), None)
        if at is not None:  # else some effect took the turn out
            said = sorted(self._history[at:], key=lambda one: run.places.get(id(one), -1))
            self._history[at:] = [ToolMessage(one.result) for one in done] + said
            self._stand(*(event for one in done for event in one.events))
        run.last = "the model asked for tools last"
        self._tell(run, after)
        for one in done:
            self._history.extend(HumanMessage(text) for text in one.texts)
        if cancelled is not None:
            raise cancelled
        for one in sorted((one.ends for one in done if one.ends), key=lambda why: isinstance(why, _Restart)):
            raise one  # the first end of the query, else the first restart

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
        if not isinstance(call.input, Mapping):  # nothing will run, so that there is nothing to ask about before
            done.result.error = f"the call did not run: its input is {_kind(call.input)}; it must be a JSON object"
            return await self._after_call(run, call, place, done)
        moment = _Moment(AgentEvent.BEFORE_TOOL_EXECUTION, run.iteration, call, call=call, place=place)
        verdict = await self._judged(run, moment)
        self._settle_call(run, moment, verdict, done)
        decision, why = verdict.get("decision"), verdict.get("reason") or ""
        if isinstance(done.ends, _Restart):
            return _not_made(done, "did not run, since the turn begins anew", done.ends.reason)
        if done.ends is not None:
            return _not_made(done, "did not run, since the query ends", str(done.ends))
        if decision == "deny":
            return _not_made(done, "was denied and did not run", why)
        if decision == "ask" and not await self._approved(run, moment.value, why):
            return _not_made(done, "did not run, since nobody approved it", why)
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
        """Ask about what came of a call: at exactly one of the two events."""
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
        """Take in how a verdict ends things, and what it says; what a restart says belongs into the new turn."""
        done.ends = _ending(moment, verdict)
        if not isinstance(done.ends, _Restart):
            self._take(run, verdict, done.result.notes, done.texts)
            done.events.append(verdict.get("event_id"))

    async def _approved(self, run: _Query, call: ToolCall, why: str) -> bool:
        """Ask a person, for as long as the turn lasts."""
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
            run.hook_errors.append(f"nobody could be asked about {call.name}: {_failure(err)}")
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
        except asyncio.CancelledError:  # nobody knows how far it came
            result.error = "the query was cancelled while the tool ran"
        except Exception as err:
            result.error = str(err) if isinstance(err, _BadCall) else _failure(err)

    def _close_calls(self, why: str) -> None:
        """Answer the calls that have no result: no API takes one without."""
        for turn, is_open in reversed(_turns(self._history)):
            if is_open:
                calls = list(self._history[turn[0]].tool_calls)  # type: ignore[attr-defined]
                for i in turn[1:]:
                    result = self._history[i].result  # type: ignore[attr-defined]
                    had = next((call for call in calls if (call.id, call.name) == (result.tool_call_id, result.tool_name)), None)
                    calls = [call for call in calls if call is not had]
                self._history[turn[-1] + 1:turn[-1] + 1] = [ToolMessage(ToolResult(call.name, call.id, error=why)) for call in calls]

    # Judging a moment.

    async def _decided(self, run: _Query, moment: _Moment) -> JSON:
        """The verdict about a moment, unless it ends the query or begins the turn anew."""
        verdict = await self._judged(run, moment)
        ends = _ending(moment, verdict)
        if ends is not None:
            raise ends
        return verdict

    async def _judged(self, run: _Query, moment: _Moment) -> JSON:
        """What the agent's own hooks and those of the fabric come to, in the order that was chosen."""
        steps = [self._judged_here, self._judged_by_the_fabric]
        verdict: JSON = {}
        for step in steps if self._order == "local-first" else reversed(steps):
            if not _terminal(moment.event.value, verdict.get("decision", "")):
                one = await step(run, moment)
                verdict = {**_fold(moment.event.value, verdict, one), **{k: v[k] for v in (verdict, one) for k in ("restart", "terminate", "event_id") if k in v}}
        run.hook_errors.extend(verdict.get("hook_errors", ()))
        return verdict

    async def _judged_here(self, run: _Query, moment: _Moment) -> JSON:
        verdict: JSON = {}
        for hook in [hook for hook in self._hooks if hook.event is moment.event]:
            asked = await hook._run(self, run, moment)
            if asked is None:
                continue
            one = _settle(hook._card(), asked[0])
            moment.rewrite(one, asked[1])
            verdict = _fold(moment.event.value, verdict, one)
            if _terminal(moment.event.value, verdict.get("decision", "")):
                break
        return verdict

    async def _judged_by_the_fabric(self, run: _Query, moment: _Moment) -> JSON:
        client = self.client
        if client is None:
            return {}
        if self._needs_of is None:
            await self._learn_needs(client, 0)
        flags = {str(name): _plain(value) for name, value in self._flags.items()}
        body = {**moment.body(), "agent_id": self.name, "session_id": self.session_id, **_sparse(flags=flags)}
        if moment.event.value in self._needs:
            body["history"] = [message.to_dict() for message in self._history]
        else:  # a hook that needs it since a moment ago must not take it for an empty one
            body["history_ref"] = "lost:no hook was known to need it when the event was asked about"
        how = {"ack": "explicit", **({"deliver": "none"} if moment.mute else {})}  # to ask on is not to have read
        verdict = await self._asked(client, lambda call: client._ask(call, body, **how), self._event_timeout)
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
                verdict.setdefault("hook_errors", []).append(f"an effect was dropped: {err}")
        try:
            moment.rewrite(verdict)
        except TypeError as err:  # what was to be changed must not go on as it was
            verdict = _blocked(moment.event.value, verdict, f"a rewrite was dropped: {err}")
            if _terminal(moment.event.value, verdict.get("decision", "")):
                moment.value = moment.before
        return verdict

    def _note_brought(self, verdict: JSON) -> None:
        """Note that something was brought, to acknowledge it once the model has read it; what stands in the conversation already is taken out."""
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
        """Note that what events brought is in the conversation."""
        for event in events:
            if event in self._owed:
                self._owed[event].stands = True  # type: ignore[index]

    async def _asked(self, client: Client, ask: Callable[[_Call], Any], timeout: float) -> Any:
        """Ask in one of the client's threads, which is given up when the query is."""
        call = _Call(timeout)
        try:
            return await asyncio.get_running_loop().run_in_executor(client._threads, ask, call)
        finally:
            call.give_up()

    async def _learn_needs(self, client: Client, version: Any) -> None:
        """Ask at which events some hook needs the conversation, so that no other event carries it."""
        self._needs_of, self._needs_known = version, False
        try:  # a daemon that can not say it is asked again with the next query
            needs = await self._asked(client, lambda call: client._get(call, _path("v1", "needs", agent=self.name)), 5.0)
            # What the daemon knows may be older than the verdict: then it is asked again after the next one.
            self._needs, self._needs_of, self._needs_known = set(needs.get("history") or ()), needs.get("config_version") or version, True
        except Exception as err:
            log.info("nobody said at which events hooks need the conversation: %s", _failure(err))

    # What hooks change.

    async def _apply(self, run: _Query, effect: Any, moment: _Moment, end: float = 0.0) -> float:
        """Apply one effect: on a draft, which counts only if the effect was done in time. One at a time, so that each sees what
        those before did; the answer is how long it waited for others, which no hook's time is."""
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
        """Say what was injected where no tool's result is at hand."""
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
            raise ValueError(f"there is a tool {tool.name!r} already")
        self.tools[tool.name] = tool


_GRACE = 5.0  # seconds in which hooks still hear of what ran, and of its end, when a query was cancelled


def _ending(moment: _Moment, verdict: JSON) -> Optional[Exception]:
    """How a verdict ends the query, or the turn; None: it goes on."""
    if isinstance(verdict.get("terminate"), dict):
        reason = str(verdict["terminate"].get("reason") or "")
        return _Over("terminated", "the run was ended: " + (reason or "no reason was given"), reason)
    if verdict.get("decision") == "fail":
        reason = str(verdict.get("reason") or "")
        return _Over("failed", f"a hook failed the query at {moment.event.value}: " + (reason or "no reason was given"), reason)
    return _Restart(verdict) if isinstance(verdict.get("restart"), dict) else None


def _not_made(done: _Done, how: str, why: str) -> _Done:
    """A call that is not made, in words for the model."""
    done.result.error = f"The call {how}: {why or 'no reason was given'}"
    return done


def _done(task: "asyncio.Task[_Done]", call: ToolCall) -> _Done:
    """What came of a call, also where the loop broke or the query was cancelled before."""
    if not task.done() or task.cancelled():
        return _not_made(_Done(ToolResult(call.name, call.id)), "was not finished", "the query was cancelled")
    broken = task.exception()
    if broken is None:
        return task.result()
    return _not_made(_Done(ToolResult(call.name, call.id), ends=_Over("failed", _failure(broken))), "was not finished", _failure(broken))


def _closing(message: AssistantMessage) -> AssistantMessage:
    """A message with which a query ends: nobody makes calls of it, so that it has none."""
    return dataclasses.replace(message, tool_calls=[], native=None) if message.tool_calls else message


def _permitted(event: str, verdict: JSON) -> JSON:
    """A verdict whose decision the event does not know, or whose value can not be read, is never taken for a yes."""
    contract, decision = _CONTRACT[event], verdict.get("decision")
    if decision == "stop" and contract.stop and not _fits_stop(verdict.get("value"), contract.stop):
        said = f"the fabric decided stop at {event} without its value: {_STOP_VALUES[contract.stop]}"
    elif decision in contract.decisions or decision == "allow":
        return verdict
    else:
        said = f"the fabric decided {decision!r} at {event}; this program knows {', '.join(contract.decisions)}"
    return _blocked(event, {**verdict, "decision": "continue", "reason": ""}, said)


def _blocked(event: str, verdict: JSON, said: str) -> JSON:
    """What becomes of a verdict that this program can not obey: what a hook that gave no answer makes of the moment."""
    blocking = _CONTRACT[event].blocking
    changed = {**verdict, "hook_errors": [*verdict.get("hook_errors", ()), said], **({"decision": blocking, "reason": said} if blocking else {})}
    changed.pop("value", None)
    return changed


# Calling what users wrote.


class _TooLate(Exception):
    """What was called was not done in time."""


async def _called(function: Callable[..., Any], arguments: Tuple[Any, ...] = (), end: Optional[float] = None, draft: Optional[_Draft] = None) -> Any:
    """Call a function, sync or async, until end. A sync one runs in a thread of its own, which is left behind if it is too late."""
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
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # what is left behind fails in silence
    try:
        await asyncio.wait({task}, timeout=None if end is None else max(end - time.monotonic(), 0))
        if not task.done():
            raise _TooLate("it was not done before its deadline")
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
            error = err if not isinstance(err, StopIteration) else RuntimeError(_failure(err))  # no future takes one
        except BaseException as err:  # such as sys.exit: it ends no agent
            error = RuntimeError(_failure(err))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="hookfabric-call", daemon=True).start()
    return future


def _arity(function: Callable[..., Any], most: int) -> int:
    """How many positional arguments a function takes, up to most."""
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
    """A model behind an API, for Agent(model=...): the daemon, or agentshim, writes the requests and reads the answers.

    format is anthropic, openai (and what is compatible), openai-structured, gemini or grok. url is where the API is, with or without the
    version behind it; None: the vendor's. Only this machine is called without TLS. The key is in the file key_file, which is read before
    each attempt, or is key; no log and no exception has it. client is who is asked to render; None: one of its own. max_tokens
    bounds an answer; None: the API's own bound, or 8192 where it demands one. timeout bounds an attempt, and retries how often a
    call is made again that failed for a reason that passes. options go into each request as they are.
    """

    def __init__(self, format: str, *, model: str, url: Optional[str] = None, key_file: Optional[str] = None, key: Optional[str] = None,
                 client: Optional[Client] = None, max_tokens: Optional[int] = None, timeout: float = 600.0, retries: int = 4,
                 options: Optional[JSON] = None) -> None:
        if format not in _FORMATS:
            raise ValueError(f"format is {format!r}; write one of {', '.join(_FORMATS)}")
        if key and key_file:
            raise ValueError("the model's key is given, and a file with it as well; write one of them")
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
                return await _in_thread(self._client.read, (self.format, answer))
            if wait is None or attempt >= self._retries:
                raise RuntimeError(why) from None
            log.info("%s; it is asked again", why)
            await asyncio.sleep(wait or min(0.5 * 2 ** attempt, 30) * random.uniform(0.5, 1))
        raise AssertionError("a call ends above")

    def _settings(self) -> JSON:
        most = self._max_tokens
        if self.format == "gemini":
            return {"generationConfig": {"maxOutputTokens": most}} if most else {}
        if self.format == "anthropic":
            return {"model": self.model, "max_tokens": most or 8192}
        # OpenAI's newer models know only the one, those compatible with it only the other.
        name = "max_completion_tokens" if self._url.hostname == "api.openai.com" else "max_tokens"
        return {"model": self.model, **({name: most} if most else {})}

    async def _attempt(self, body: bytes) -> "tuple[Optional[JSON], str, Optional[float]]":
        """The API's answer, or why there is none and how long to wait before another attempt: 0 is as long as you like, None is for ever."""
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
            _give_up(connection)  # also where the query was cancelled
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
        response = connection.getresponse()  # follows no redirect: keys would go along
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
                key = f.read(64 << 10).strip()
            if not key:
                raise ValueError("the model's key is empty; write the key into its file")
        if any(not 32 < ord(c) < 127 for c in key):
            raise ValueError("the model's key is no single line of a header; write the key alone")
        return key

    def _redacted(self, text: str, key: str) -> str:
        return text.replace(key, "[the key]") if key else text


_VENDORS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com", "openai-structured": "https://api.openai.com",
            "gemini": "https://generativelanguage.googleapis.com", "grok": "https://api.x.ai"}
#: The version, which people write behind the address or not, and what comes after it.
_PATHS = {"anthropic": ("/v1", "/messages"), "gemini": ("/v1beta", "/models/{model}:generateContent")}


def _model_url(url: str) -> urllib.parse.SplitResult:
    """Where a model is. What is wrong is said without what may be secret."""
    try:
        parts = urllib.parse.urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise ValueError("the model's URL can not be read; write one such as https://api.example.com") from None
    if not host or parts.scheme not in ("http", "https") or port == 0:
        raise ValueError("the model's URL can not be read; write one such as https://api.example.com")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"the model's URL at {host} has a password, a query or a fragment; write the key into a file, and name that")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise ValueError(f"the model at {host} is to be reached over plain HTTP; conversations and keys go over TLS to other machines: write https")
    return parts


def _give_up(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        _hang_up(connection.sock)


def _wish(headers: Any) -> Optional[float]:
    """How long an API asks to wait; 0: it does not say; None: longer than anybody waits."""
    text = headers.get("Retry-After") or "0"
    try:
        wish = float(text)
    except ValueError:
        try:
            wish = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError, IndexError, OverflowError):
            return 0
    return max(wish, 0) if wish <= 120 else None


# What is read, found and started.


def _object(data: bytes, what: str) -> JSON:
    """data as a JSON object; nothing at all is an empty one, which is no opinion."""
    if not data.strip():
        return {}
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as err:
        raise Unreachable(f"{what} is not JSON: {err}") from err
    if not isinstance(value, dict):
        raise Unreachable(f"{what} is not a JSON object")
    return value


def _own(path: str) -> bytes:
    """A small file that nobody else can have written: who names the daemon judges for it."""
    try:
        with open(path, "rb") as f:
            info = os.fstat(f.fileno())
            if hasattr(os, "geteuid") and (info.st_uid not in (os.geteuid(), 0) or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
                raise Unreachable(f"{path} may have been written by somebody else; it must be yours, with mode 0600")
            return f.read(64 << 10)
    except OSError as err:
        raise Unreachable(f"there is no daemon: {err}; start one with 'agentshim serve'") from err


def _path(*names: str, **query: str) -> str:
    return "/" + "/".join(urllib.parse.quote(name, safe="") for name in names) + "?" + urllib.parse.urlencode(query)


def _environment() -> Dict[str, str]:
    return {k: v for k, v in os.environ.items() if k in _ENVIRONMENT or k.startswith("HOOKFABRIC_")}


@contextlib.contextmanager
def _neither(daemon: Unreachable) -> Iterator[None]:
    """Whoever has no program to ask either hears of the daemon as well, which is usually what is missing."""
    try:
        yield
    except Unreachable as why:
        raise Unreachable(f"{daemon}; and {why}") from None


def _kill(child: "subprocess.Popen[bytes]") -> None:
    """End a child and all that it started, if it still runs."""
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
    """What a server answered, up to a byte more than it may. One that went away in the midst of it has not answered: what came until
    then may be nothing, which would be no opinion."""
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
    """Whether nothing lies on a connection that nobody uses: neither its end, nor what nobody asked for."""
    try:
        sock.setblocking(False)
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _event_id() -> str:
    """A UUID of version 7, which the standard library does not make everywhere."""
    bits = (int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")) & ((1 << 128) - 1)
    return str(uuid.UUID(int=bits & ~(0xF << 76 | 3 << 62) | 7 << 76 | 2 << 62))


def _refusal(why: BaseException) -> str:
    return f"nobody judged this call: {why or type(why).__name__}. Start 'agentshim serve', or ask who runs the fabric."


def _short(data: bytes) -> str:
    return data[:4096].decode(errors="replace").strip()


def _margin(timeout: float) -> float:
    """What an answer must be earlier than a deadline, as the fabric's own hops keep it."""
    return min(max(timeout * 0.05, 0.02), timeout / 2)


def _state_home() -> str:
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "hookfabric")


# JSON and words.


def _plain(value: Any) -> Any:
    """value as JSON has it; what JSON can not say is its text."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_fallback))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _strict(value: Any) -> Any:
    """value as JSON has it; a TypeError where it has not."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_fallback))
    except (ValueError, RecursionError) as err:
        raise TypeError(f"its value can not be written as JSON: {err}") from err


def _fallback(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, (set, frozenset)) else str(value)


def _dumps(value: Any) -> bytes:
    return _bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _cut(text: str, most: int) -> str:
    """text in at most so many bytes, and a sign if there was more."""
    data = _bytes(text)
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore") + "…"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _sparse(**members: Any) -> JSON:
    return {name: value for name, value in members.items() if value not in (None, "", 0, [], {})}


def _kind(value: Any) -> str:
    """What a value is, as a person says it."""
    if value is None:
        return "null"
    for types, name in ((bool, "a boolean"), (str, "a string"), ((int, float), "a number"), ((list, tuple), "a list"), (Mapping, "an object")):
        if isinstance(value, types):  # type: ignore[arg-type]
            return name
    return f"a {type(value).__name__}"


def _failure(err: Optional[BaseException]) -> str:
    text = str(err).strip()
    return f"{type(err).__name__}: {text}" if text else type(err).__name__
