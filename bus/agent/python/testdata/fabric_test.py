"""Agents' loops that ask the fabric: a daemon of the test, which answers as the agent's flags say."""

import asyncio
import contextlib
import email.utils
import http.server
import json
import logging
import os
import stat
import threading
import time
import unittest
from unittest import mock

import hookfabric
from hookfabric import AgentEvent, AssistantMessage, QueryFailed, ToolCall, ToolMessage
from loop_test import an_agent, asks, ends_of, ran, script


def setUpModule():
    logging.getLogger("hookfabric").setLevel(logging.CRITICAL)
    os.environ[os.environ["HOOKFABRIC_TEST_MODE"]] = "crash"


def tearDownModule():
    logging.getLogger("hookfabric").setLevel(logging.NOTSET)


class Remembering(hookfabric.Client):
    """A client that remembers what it asked, in its order."""

    def __init__(self, **more):
        super().__init__(**more)
        self.asked, self.needs_fail = [], False

    def _http(self, call, method, path, data, deadline):
        self.asked.append((method + " " + path, json.loads(data) if data else None))
        if self.needs_fail and "/v1/needs" in path:
            raise hookfabric.Unreachable("not now")
        return super()._http(call, method, path, data, deadline)

    def acks(self):
        return [body["event_ids"] for path, body in self.asked if path == "POST /v1/ack"]

    def events(self, kind=""):
        return [body for path, body in self.asked if path.startswith("POST /v1/events/" + kind)]


class Fabric(unittest.TestCase):
    def agent(self, answers, *said, **more):
        """answers are the fabric's, by event and iteration."""
        client = Remembering(**{name: more.pop(name) for name in ("daemon", "unreachable", "agentshim") if name in more})
        self.addCleanup(client.close)
        model = script(*said) if said else None
        agent = an_agent(model, client=client, **more)
        agent.flags = {"answers": answers}
        return agent

    def roles(self, agent):
        return [(m.role, m.content) for m in agent.conversation_history]

    def test_events_are_in_the_fabrics_form(self):
        agent = self.agent({}, system="s", session_id="s1")
        agent.run("q")
        seen = {}
        for body in agent.client.events():
            self.assertEqual((body["agent_id"], body["session_id"]), ("agent1", "s1"))
            self.assertNotIn("history", body)
            self.assertTrue(body.pop("history_ref").startswith("lost:"))  # or a hook would take it for an empty one
            seen.setdefault(body["hook_type"], []).append({k: v for k, v in body.items() if k not in ("agent_id", "session_id", "hook_type", "flags")})
        calls = [{"id": "id0", "name": "add", "input": {"a": 2, "b": 3}}, {"id": "id1", "name": "breaks", "input": {}}]
        add, breaks = {"iteration": 1, "tool_name": "add", "tool_use_id": "id0", "tool_input": {"a": 2, "b": 3}}, {"iteration": 1, "tool_name": "breaks", "tool_use_id": "id1", "tool_input": {}}
        done = {"role": "assistant", "content": "done"}
        self.assertEqual({kind: sorted(bodies, key=str) for kind, bodies in seen.items()}, {
            "UserPromptSubmit": [{"prompt": "q"}],
            "BeforeLLMCall": [{"iteration": 1}, {"iteration": 2}],
            "AfterLLMCall": [{"iteration": 1, "message": {"role": "assistant", "content": "", "tool_calls": calls}}, {"iteration": 2, "message": done}],
            "PreToolUse": sorted([add, breaks], key=str),
            "PostToolUse": [{**add, "tool_output": 5}],
            "ToolError": [{**breaks, "error": "OSError: database is gone"}],
            "BeforeFinalResponse": [{"iteration": 2, "message": done}],
            "QueryEnd": [{"iteration": 2, "response": {"content": "done", "status": "answered", "iterations": 2, "message": done}}],
        })
        self.assertIn("deliver=none", next(path for path, _ in agent.client.asked if "QueryEnd" in path))

    def test_the_conversation_goes_along_only_where_a_hook_needs_it(self):
        # By the version of the verdicts, and of what the daemon says of an agent of that name.
        for version, name, asked in ((2, "needs-history", [1, 1]), (2, "needs-nothing", [2, 3]), (1, "needs-nothing", [1, 1])):
            with self.subTest(version=version, name=name):
                agent = self.agent({"BeforeLLMCall": {"config_version": version}}, "a", "a", system="s")
                agent.name = name
                gets = []
                for _ in range(2):
                    agent.run("q")
                    gets.append(agent.client.asked.count(("GET /v1/needs?agent=" + name, None)))
                self.assertEqual(gets, asked)  # and again as long as the daemon knows an older configuration than that of the verdicts
                before = agent.client.events("BeforeLLMCall")[0]
                if name == "needs-history":
                    self.assertEqual([m["content"] for m in before["history"]], ["s", "q"])
                    self.assertNotIn("history_ref", before)
                else:
                    self.assertNotIn("history", before)
                self.assertNotIn("history", agent.client.events("QueryEnd")[0])

    def test_verdicts_are_obeyed(self):
        agent = self.agent({
            "PreToolUse/add": {"updated_input": {"a": 20, "b": 1}},
            "PreToolUse/breaks": {"decision": "deny", "reason": "never"},
            "PostToolUse": {"decision": "deny", "reason": "look again", "injections": [{"content": "a note"}, {"content": "by the way", "strategy": "user_message"}]},
            "BeforeFinalResponse/2": {"decision": "retry", "reason": "say more", "effects": [{"append_message": {"content": "more"}}, {"set_flag": {"seen": 1}}, {"junk": 1}]},
            "BeforeFinalResponse/3": {"value": "done, really"},
        }, asks(("add", {"a": 1, "b": 1}), ("breaks", {})), "done", "done again")
        response = agent.run("q")
        self.assertEqual(response.content, "done, really")
        results = [m.result for m in agent.conversation_history if isinstance(m, ToolMessage)]
        self.assertEqual((results[0].result, results[0].notes), (21, ["Feedback on this result: look again", "a note"]))
        self.assertEqual(results[1].error, "The call was denied and did not run: never")
        self.assertEqual(self.roles(agent)[4:], [("user", "by the way"), ("assistant", "done"), ("system", "more"), ("user", "say more (attempt 3 of 15)"), ("assistant", "done, really")])
        self.assertEqual(agent.flags["seen"], 1)
        self.assertTrue(any("junk" in error for error in response.hook_errors))
        self.assertEqual(agent.client.events("BeforeFinalResponse")[1]["flags"]["seen"], 1)

    def test_the_fabric_stops_fails_and_ends(self):
        for event, answer, status, content in (
            ("BeforeLLMCall", {"decision": "stop", "value": "cached"}, "stopped", "cached"),
            ("AfterLLMCall", {"decision": "stop", "value": {"role": "assistant", "content": "other"}}, "stopped", "other"),
            ("BeforeLLMCall", {"decision": "fail", "reason": "no"}, "failed", ""),
            ("UserPromptSubmit", {"decision": "deny", "reason": "no"}, "rejected", ""),
            ("PostToolUse", {"decision": "continue", "terminate": {"reason": "no"}}, "terminated", ""),
            ("PreToolUse", {"decision": "continue", "terminate": {"reason": "no"}}, "terminated", ""),
            ("AfterLLMCall", {"decision": "ask"}, "failed", ""),  # nobody understands it there: never a yes
            ("BeforeLLMCall", {"decision": "stop"}, "failed", ""),  # without its value
            ("BeforeFinalResponse", {"decision": "stop", "value": 7}, "failed", ""),
            ("PostToolUse", {"decision": "stop", "value": "x"}, "answered", "done"),
            ("ToolError", {"decision": "stop", "value": "x", "updated_output": "y"}, "answered", "done"),
            ("QueryEnd", {"decision": "stop", "value": "x"}, "answered", "x"),
            ("QueryEnd", {"decision": "fail", "reason": "no"}, "failed", "done"),
        ):
            with self.subTest(event=event, answer=answer):
                agent = self.agent({event: answer})
                ends = ends_of(agent)
                response = ran(agent)
                told = "answered" if event == "QueryEnd" else status
                self.assertEqual((response.status, response.content, [end.status for end in ends]), (status, content, [told]))
                if event in ("PostToolUse", "ToolError") and "value" in answer:
                    of = agent.conversation_history[2 if event == "PostToolUse" else 3].result
                    self.assertEqual((of.result, of.error), ("x", None))
                self.assertEqual(len(agent.client.events("QueryEnd")), 1)
                self.assertFalse([turn for turn, is_open in hookfabric._turns(agent.conversation_history) if is_open])

    def test_a_rewrite_that_can_not_be_read_blocks(self):
        for event, answer, status in (("PreToolUse/add", {"updated_input": ["rm"]}, "answered"), ("AfterLLMCall/2", {"value": 7}, "failed"),
                                      ("BeforeFinalResponse", {"value": {"role": "user", "content": "x"}}, "failed"),
                                      ("BeforeFinalResponse", {"value": {"tool_calls": [1]}}, "failed"), ("QueryEnd", {"value": {"message": {"role": "tool"}}}, "answered")):
            with self.subTest(event=event, answer=answer):
                agent = self.agent({event: answer})
                response = ran(agent)
                self.assertEqual(response.status, status)
                self.assertTrue([error for error in response.hook_errors if error.startswith("a rewrite was dropped: ")], response.hook_errors)
                results = [m.result for m in agent.conversation_history if isinstance(m, ToolMessage)]
                self.assertEqual((results[0].error or "").startswith("The call was denied and did not run: a rewrite was dropped: the input is a list"), "add" in event)
                self.assertEqual(response.content, "done" if status == "answered" else "")

    def test_a_restart_and_a_terminate_stand_whatever_the_program_decides(self):
        for event, decision, value in (("UserPromptSubmit", "deny", None), ("BeforeLLMCall/1", "stop", "mine"), ("AfterLLMCall/1", "retry", None),
                                       ("PreToolUse/add", "deny", None), ("BeforeFinalResponse/2", "stop", "mine")):
            for answer, status in (({"terminate": {"reason": "enough"}}, "terminated"), ({"restart": {"reason": "others answered", "content": "news"}}, "answered")):
                with self.subTest(event=event, answer=answer):
                    agent = self.agent({event: answer}, order="remote-first")
                    hook = agent.on(event.split("/")[0]).when(lambda s: not hook.acted).handle(decision, value=value, effects=[lambda s: setattr(hook, "acted", True)])
                    hook.acted = False
                    self.assertEqual((ran(agent).status, hook.acted), (status, True))
                    self.assertEqual("news" in [text for _, text in self.roles(agent)], status == "answered")

    def test_a_restart_begins_the_turn_anew(self):
        for event in ("UserPromptSubmit", "BeforeLLMCall/1", "AfterLLMCall/1", "PostToolUse/1", "BeforeFinalResponse/2"):
            with self.subTest(event):
                agent = self.agent({event: {"decision": "continue", "event_id": "r1", "restart": {"reason": "others answered", "content": "news"},
                                            "injections": [{"content": "and", "sequence": 3}]}}, system="s")
                response = agent.run("q")
                history = self.roles(agent)
                self.assertEqual(history[:4], [("system", "s"), ("user", "q"), ("user", "news"), ("user", "and")])
                self.assertEqual(response.content, "done")
                self.assertIn({"agent_id": "agent1", "event_ids": ["r1"]}, [body for path, body in agent.client.asked if path == "POST /v1/ack"])

    def test_what_is_handed_over_is_acknowledged_once_the_model_has_read_it(self):
        agent = self.agent({"PostToolUse": {"decision": "continue", "event_id": "e1", "injections": [{"content": "news", "sequence": 7, "source": "human"}]}})
        chunks, seen = [], []
        agent._output, inner = chunks.append, agent.model

        def model(conversation):
            seen.append(agent.client.acks())
            return inner(conversation)

        agent.model = model
        agent.run("q")
        self.assertEqual(seen, [[], []])
        self.assertEqual(agent.client.acks(), [["e1"]])
        self.assertIn("[INJECTION] human: news", [str(chunk) for chunk in chunks])
        for path, _ in agent.client.asked:
            self.assertEqual("ack=explicit" in path, "/events/" in path)  # so that to ask on is not to have read

    def test_what_the_daemon_kept_for_the_agent_is_acknowledged_too(self):
        agent = self.agent({"BeforeLLMCall": {"decision": "continue", "event_id": "e1", "injections": [{"content": "kept"}]}}, "a")
        agent.run("q")
        self.assertEqual(agent.client.acks(), [["e1"]])

    def test_what_came_nowhere_comes_again(self):
        news = {"decision": "continue", "event_id": "e1", "injections": [{"content": "news", "sequence": 7}]}
        for event, how, more in (("BeforeLLMCall", {"decision": "fail"}, {}), ("UserPromptSubmit", {"decision": "deny"}, {}),
                                 ("BeforeLLMCall", {}, {"terminate": {"reason": "enough"}})):
            with self.subTest(event=event, how=how, more=more):
                agent = self.agent({event: {**news, **more}}, "ok", order="remote-first")
                hook = agent.on(event).handle(**how)
                self.assertNotIn(ran(agent).status, ("answered", "stopped"))
                self.assertEqual(agent.client.acks(), [])
                hook.remove()
                agent.flags["answers"] = {event: news}
                agent.run("again")
                self.assertEqual(([text for _, text in self.roles(agent)].count("news"), agent.client.acks()), (1, [["e1"]]))

    def test_what_came_with_calls_that_are_cancelled_is_not_lost(self):
        news = {"decision": "continue", "event_id": "e1", "injections": [{"content": "news", "sequence": 7}]}
        agent, there = self.agent({"AfterLLMCall/1": news}, asks(("hangs", {})), "done"), threading.Event()
        agent.tool(lambda: there.set() or threading.Event().wait(60), name="hangs")

        async def cancelled():
            task = asyncio.ensure_future(agent.arun("q"))
            while not there.is_set():
                await asyncio.sleep(0.005)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
        agent.flags["answers"] = {}
        agent.run("again")
        self.assertEqual(([text for _, text in self.roles(agent)].count("news"), agent.client.acks()), (1, [["e1"]]))

    def test_what_goes_with_its_conversation_is_not_read(self):
        agent = self.agent({"BeforeLLMCall": {"decision": "continue", "event_id": "e1", "injections": [{"content": "news", "sequence": 7}]}}, ValueError("down"), "ok")
        self.assertEqual(ran(agent).status, "model_error")
        agent.conversation_history = []
        agent.run("again")
        self.assertEqual([text for _, text in self.roles(agent)].count("news"), 1)

    def test_who_could_not_say_what_hooks_need_is_asked_again(self):
        agent = self.agent({}, "a")
        agent.run("q")
        agent.flags["answers"] = {"UserPromptSubmit": {"decision": "continue", "config_version": 2}}
        agent.client.needs_fail = True
        agent.run("the configuration changes")
        agent.flags["answers"], agent.client.needs_fail = {}, False
        before = len(agent.client.asked)
        agent.run("again")
        self.assertTrue([path for path, _ in agent.client.asked[before:] if path.startswith("GET /v1/needs")])

    def test_what_was_not_read_comes_again_but_is_said_once(self):
        agent = self.agent({"BeforeLLMCall": {"decision": "continue", "event_id": "e1", "injections": [{"content": "news", "sequence": 7}]}}, ValueError("down"), "ok")
        self.assertEqual(ran(agent).status, "model_error")
        agent.run("again")
        self.assertEqual([text for _, text in self.roles(agent)].count("news"), 1)

    def test_an_end_is_put_off_so_often_and_no_more(self):
        late = {"decision": "retry", "reason": "read", "injections": [{"content": "news", "sequence": 7}]}
        agent = self.agent({"BeforeFinalResponse/1": {**late, "event_id": "e1"}, "BeforeFinalResponse/2": {**late, "event_id": "e2", "injections": [{"content": "more", "sequence": 8}]}}, "a", final_retries=2)
        self.assertEqual(agent.run("q").content, "a")
        paths = [path for path, _ in agent.client.asked if "BeforeFinalResponse" in path]
        self.assertEqual(["deliver=none" in path for path in paths], [False, False, True])

    def test_order(self):
        def local(order, decision="continue"):
            agent = self.agent({"BeforeFinalResponse": {"value": {"role": "assistant", "content": "theirs"}}}, "model's", order=order)
            agent.on("BeforeFinalResponse").handle(decision, value=lambda status, message: message.content + "+mine")
            return agent, ran(agent)

        agent, response = local("local-first")
        self.assertEqual(agent.client.events("BeforeFinalResponse")[0]["message"]["content"], "model's+mine")
        self.assertEqual(response.content, "theirs")
        agent, response = local("remote-first")
        self.assertEqual(agent.client.events("BeforeFinalResponse")[0]["message"]["content"], "model's")
        self.assertEqual(response.content, "theirs+mine")
        agent, response = local("local-first", "fail")
        self.assertEqual((response.status, agent.client.events("BeforeFinalResponse")), ("failed", []))

    def test_after_a_tool_everybody_is_asked(self):
        agent = self.agent({"PostToolUse": {"decision": "fail", "reason": "theirs"}})
        agent.on("PostToolUse").handle("deny", reason="mine")
        self.assertEqual(ran(agent).reason, "theirs")
        self.assertEqual(len(agent.client.events("PostToolUse")), 1)

    def test_where_nobody_judges(self):
        for unreachable, status in (("deny", "rejected"), ("allow", "answered")):
            agent = self.agent({}, daemon="/nowhere/daemon.json", agentshim="absent-program", unreachable=unreachable)
            ends = ends_of(agent)
            response = ran(agent)
            self.assertEqual((response.status, len(ends)), (status, 1))
            self.assertTrue(response.hook_errors)


class API(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, dict(self.headers), json.loads(body)))
        status, answer = self.server.answer
        data = json.dumps(answer).encode() if not isinstance(answer, str) else answer.encode()
        if status == "silence":
            self.server.silence.wait(20)
            return
        self.send_response(status if isinstance(status, int) else 200)
        self.send_header("Content-Length", str(len(data) + (5 if status == "cut" else 0)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Models(unittest.TestCase):
    def setUp(self):
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), API)
        self.api.asked, self.api.answer, self.api.silence = [], (200, {"says": "hello"}), threading.Event()
        threading.Thread(target=self.api.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(self.api.server_close)
        self.addCleanup(self.api.shutdown)
        self.url = f"http://127.0.0.1:{self.api.server_port}"

    def model(self, format, **more):
        client = hookfabric.Client()
        self.addCleanup(client.close)
        return hookfabric.HTTPModel(format, model="m1", url=self.url, client=client, **more)

    def key_file(self, key):
        path = os.path.join(os.environ["HOOKFABRIC_TEST_DIR"], "key")
        with open(path, "w", encoding="utf-8") as f:
            f.write(key)
        os.chmod(path, 0o600)
        return path

    def test_a_key_that_every_user_can_read_is_refused(self):
        path = self.key_file("sk-1\n")
        os.chmod(path, 0o644)
        agent = an_agent(self.model("openai", key_file=path))
        with self.assertRaisesRegex(Exception, "chmod 600"):
            agent.run("q")
        self.assertEqual(self.api.asked, [])

    def test_a_key_that_another_group_can_reach_is_refused(self):
        path = self.key_file("sk-1\n")
        model, there = self.model("openai", key_file=path), os.stat(path)
        for mode, group, user, refused in ((0o440, 7, 1000, True), (0o620, 7, 1000, True), (0o600, 7, 1000, False), (0o440, 0, 1000, False), (0o640, 20, 1000, False),
                                           (0o640, 21, 1000, False), (0o440, 7, 0, False), (0o604, 0, 0, True)):
            info = os.stat_result((stat.S_IFREG | mode, *there[1:5], group, *there[6:]))
            with mock.patch("os.geteuid", lambda: user), mock.patch("os.getegid", lambda: 20), mock.patch("os.getgroups", lambda: [20, 21]), \
                    mock.patch("os.fstat", lambda fd: info), self.subTest(mode=oct(mode), group=group, user=user):
                with self.assertRaisesRegex(ValueError, "chmod 600") if refused else contextlib.nullcontext():
                    self.assertEqual(model._secret(), "sk-1")

    def test_the_version_may_stand_behind_the_address(self):
        self.url += "/proxy/v1/"
        an_agent(self.model("anthropic", max_tokens=5)).run("q")
        self.assertEqual((self.api.asked[0][0], self.api.asked[0][2]["max_tokens"]), ("/proxy/v1/messages", 5))

    def test_what_is_no_request_is_said_at_once(self):
        agent = an_agent(self.model("openai"))
        with self.assertRaises(QueryFailed) as failed:
            agent.run("refuse to render")
        self.assertIn("it cannot be rendered", failed.exception.response.error)
        self.assertEqual(self.api.asked, [])

    def test_each_api_gets_its_own_request(self):
        for format, path, header in (("anthropic", "/v1/messages", "x-api-key"), ("openai", "/v1/chat/completions", "Authorization"),
                                     ("gemini", "/v1beta/models/m1:generateContent", "x-goog-api-key"), ("grok", "/v1/chat/completions", "Authorization")):
            agent = an_agent(self.model(format, key_file=self.key_file("sk-1\n")), system="s")
            self.assertEqual(agent.run("q").content, f"read as {format}: hello")
            asked, headers, body = self.api.asked[-1]
            self.assertEqual(asked, path)
            self.assertIn("sk-1", {name.lower(): value for name, value in headers.items()}[header.lower()])
            self.assertEqual([m["content"] for m in body["messages"]], ["s", "q"])
            self.assertEqual({tool["name"] for tool in body["tools"]}, {"add", "breaks"})
            self.assertNotIn("sk-1", json.dumps(body))

    def test_the_shim_writes_requests_where_no_daemon_does(self):
        os.environ[os.environ["HOOKFABRIC_TEST_MODE"]] = "echo"
        self.addCleanup(os.environ.__setitem__, os.environ["HOOKFABRIC_TEST_MODE"], "crash")
        client = hookfabric.Client(daemon="/nowhere/daemon.json")
        self.addCleanup(client.close)
        request = client.render("grok", hookfabric.Conversation([hookfabric.HumanMessage("q")], []))
        self.assertEqual(request["args"], ["render", "--format", "grok"])
        self.assertEqual(json.loads(request["payload"]), {"messages": [{"role": "user", "content": "q"}], "tools": []})
        os.environ[os.environ["HOOKFABRIC_TEST_MODE"]] = "crash"
        with self.assertRaisesRegex(hookfabric.Unreachable, "the shim is broken"):
            client.read("grok", {})

    def test_no_key_is_said_where_a_model_fails(self):
        for answer, attempts in (((401, "the key sk-secret is wrong"), 1), ((200, "junk sk-secret"), 1), ((500, {"error": "sk-secret"}), 2)):
            self.api.answer, self.api.asked = answer, []
            with self.assertRaises(QueryFailed) as failed:
                an_agent(self.model("openai", key="sk-secret", retries=1)).run("q")
            self.assertEqual(len(self.api.asked), attempts)
            said, cause = str(failed.exception), failed.exception.__cause__
            self.assertEqual(failed.exception.response.status, "model_error")
            self.assertNotIn("sk-secret", said + repr(cause) + repr(cause.__context__ if not cause.__suppress_context__ else ""))
        self.assertNotIn("sk-secret", repr(self.model("openai", key="sk-secret")))

    def test_an_answer_that_is_not_all_there_is_none(self):
        self.addCleanup(self.api.silence.set)
        for how, timeout, said in (("cut", 20.0, "did not answer: IncompleteRead"), ("silence", 0.3, "did not answer within 0.3 s")):
            self.api.answer, self.api.asked = (how, ""), []
            with self.subTest(how), self.assertRaises(QueryFailed) as failed:
                an_agent(self.model("openai", timeout=timeout, retries=1)).run("q")
            self.assertIn(said, str(failed.exception))
            self.assertEqual(len(self.api.asked), 2)  # it may pass

    def test_who_asks_to_wait_is_waited_for_but_not_for_ever(self):
        now = time.time()
        for wish, most in (("7", 7), ("-1", 0), ("soon", 0), ("Wed, 21 Oct 999999999 07:28:00 GMT", 0), (email.utils.formatdate(now + 60), 60), (email.utils.formatdate(now - 60), 0)):
            with self.subTest(wish):
                self.assertLessEqual(hookfabric._wish({"Retry-After": wish}), most)
                self.assertEqual(hookfabric._wish({"Retry-After": wish}) > 0, most > 0)
        for wish in ("9999", "inf", "nan", email.utils.formatdate(now + 3600)):
            self.assertIsNone(hookfabric._wish({"Retry-After": wish}))

    def test_no_key_leaves_this_machine_unguarded(self):
        for url in ("http://192.0.2.1/v1", "http://localhost.example.com", "ftp://127.0.0.1", "https://user:pass@example.com", "https://example.com?key=1", "example.com"):
            with self.subTest(url), self.assertRaises(ValueError) as refused:
                hookfabric.HTTPModel("openai", model="m", url=url)
            self.assertNotIn("pass", str(refused.exception).replace("password", ""))
        with self.assertRaisesRegex(ValueError, "line breaks"):
            self.model("openai", key="a\nb")._secret()
        with self.assertRaisesRegex(ValueError, "gemini"):
            hookfabric.HTTPModel("pascal", model="m")
