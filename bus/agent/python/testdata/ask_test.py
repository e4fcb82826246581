import concurrent.futures
import http.server
import json
import os
import socket
import threading
import unittest
import uuid

import hookfabric


def shim(how):
    """Make the shim behave so from now on."""
    os.environ[os.environ["HOOKFABRIC_TEST_MODE"]] = how


def asked_id():
    """The id under which the daemon was asked last."""
    with open(os.path.join(os.environ["HOOKFABRIC_STATE"], "asked-id"), encoding="utf-8") as f:
        return str(uuid.UUID(f.read()))


class Asking(unittest.TestCase):
    def setUp(self):
        shim("echo")
        self.client = hookfabric.Client("agent1")
        self.addCleanup(self.client.close)

    def ask(self, tool, timeout=20.0, **more):
        return self.client.ask({"hook_type": "PreToolUse", "tool_name": tool}, timeout=timeout, **more)

    def test_the_daemon_judges(self):
        self.assertEqual(self.ask("Bash", render="anthropic"), {"by": "daemon", "decision": "continue", "path": "/v1/events/PreToolUse?unreachable=deny&render=anthropic"})

    def test_an_answer_that_does_not_decide_is_none(self):
        for tool in ("quiet", "{}", '{"decision":"maybe"}', '{"decision":["allow"]}'):
            with self.subTest(tool):
                self.assertEqual(self.ask(tool)["by"], "shim")

    def test_a_format_that_is_none_is_refused(self):
        with self.assertRaisesRegex(ValueError, "openai-structured"):
            self.ask("Bash", render="pascal")

    def test_missing_messages_are_said(self):
        with self.assertLogs("hookfabric", "WARNING") as said:
            self.ask("broken", render="grok")
        self.assertIn("has no messages", said.output[0])

    def test_an_event_without_a_type_is_refused(self):
        with self.assertRaisesRegex(ValueError, "hook_type"):
            self.client.ask({"tool_name": "Bash"})

    def test_other_names_of_events_are_asked_by_the_fabrics(self):
        for name, event in (("Stop", "BeforeFinalResponse"), ("QUERY_END", "QueryEnd"), ("SessionStart", "SessionStart")):
            self.assertEqual(self.client.ask({"hook_type": name, "tool_name": "Bash"})["path"], f"/v1/events/{event}?unreachable=deny")

    def test_what_was_handed_over_is_said(self):
        self.client.ack("e1", None, "e2")
        unconnected = hookfabric.Client()
        self.addCleanup(unconnected.close)
        with self.assertRaisesRegex(ValueError, "ack needs the agent's id"):
            unconnected.ack("e1")

    def test_the_mode_and_a_new_start_are_said(self):
        self.assertFalse(self.client.mode())
        self.client.mode(True)
        self.client.checkpoint()
        unconnected = hookfabric.Client()
        self.addCleanup(unconnected.close)
        for call in (unconnected.mode, unconnected.checkpoint):
            with self.assertRaisesRegex(ValueError, "the call needs the agent.s id"):
                call()

    def test_the_shim_judges_where_the_daemon_fails(self):
        for tool in ("broken", "junk", "list"):
            with self.subTest(tool):
                said = self.ask(tool)
                self.assertEqual(said["by"], "shim")
                args = said["args"]
                self.assertEqual(args[:5], ["hook", "--runtime", "generic", "--event", "PreToolUse"])
                self.assertEqual(args[args.index("--event-id") + 1], asked_id())
                self.assertEqual(args[-2:], ["--agent", "agent1"])
                self.assertEqual(args[args.index("--unreachable") + 1], "deny")
                self.assertEqual(json.loads(said["payload"])["tool_name"], tool)

    def test_the_shim_judges_where_the_daemon_hangs(self):
        with concurrent.futures.ThreadPoolExecutor() as side_by_side:
            for said in side_by_side.map(lambda tool: self.ask(tool, timeout=10.0), ("hang", "drip")):
                self.assertEqual(said["by"], "shim")

    def test_no_secret_of_the_agent_reaches_the_shim(self):
        environ = self.ask("broken")["environ"]
        self.assertFalse([v for v in environ if "hunter2" in v])
        self.assertTrue([v for v in environ if v.startswith("HOOKFABRIC_STATE=")])

    def test_where_nobody_judges_it_is_a_no(self):
        for how in ("crash", "junk", "deny"):
            with self.subTest(how):
                shim(how)
                verdict = self.ask("broken")
                self.assertEqual(verdict["decision"], "deny")
                self.assertIn("no broker judged", verdict["reason"])
        self.assertEqual(hookfabric.Client().ask({"hook_type": "BEFORE_TOOL_EXECUTION", "tool_name": "broken"})["decision"], "deny")

    def test_where_nobody_judges_it_may_be_a_yes(self):
        shim("crash")
        client = hookfabric.Client(unreachable="allow")
        self.addCleanup(client.close)
        with self.assertLogs("hookfabric", "WARNING"):
            verdict = client.ask({"hook_type": "PreToolUse", "tool_name": "broken"})
        self.assertEqual(verdict["decision"], "continue")
        self.assertTrue(verdict["hook_errors"])
        with self.assertRaises(ValueError):
            hookfabric.Client(unreachable="maybe")

    def test_what_ran_is_not_refused(self):
        shim("crash")
        self.assertEqual(self.client.ask({"hook_type": "PostToolUse", "tool_name": "broken"})["decision"], "continue")

    def test_a_shim_that_hangs_is_ended(self):
        shim("hang")
        self.assertEqual(self.ask("broken", timeout=1.0)["decision"], "deny")


class Keeping(unittest.TestCase):
    """Connections are kept for the next call, as long as the daemon keeps them."""

    def setUp(self):
        shim("crash")
        self.connections = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(handler):
                super().setup()
                self.connections.append(handler)

            def do_POST(handler):
                event = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
                body = json.dumps({"decision": "continue", "tool": event["tool_name"]}).encode()
                handler.close_connection = event["tool_name"] == "last"  # without a word of it
                handler.send_response(200)
                handler.send_header("Content-Length", str(len(body)))
                if event["tool_name"] == "cut":  # it dies between the head and the body, as it may
                    body, handler.close_connection = b"", True
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(handler, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        self.client = hookfabric.Client("agent1", daemon=f"http://127.0.0.1:{server.server_port}")
        for end in (server.server_close, serving.join, server.shutdown, self.client.close):
            self.addCleanup(end)

    def ask(self, tool):
        self.assertEqual(self.client.ask({"hook_type": "PreToolUse", "tool_name": tool}), {"decision": "continue", "tool": tool})

    def test_for_the_next_call(self):
        for tool in ("a", "b", "c"):
            self.ask(tool)
        self.assertEqual(len(self.connections), 1)

    def test_for_no_answer_that_was_cut(self):
        with self.assertRaisesRegex(hookfabric.Unreachable, "agentshim hook ended"):
            self.client.hook("claude", "PreToolUse", {"tool_name": "cut"})
        self.assertEqual(self.client._idle, [])

    def test_until_the_daemon_ends_them(self):
        self.ask("last")
        _, connection = self.client._idle[0]
        connection.sock.settimeout(20)
        self.assertEqual(connection.sock.recv(1, socket.MSG_PEEK), b"")  # its end is here
        self.ask("b")
        self.assertEqual(len(self.connections), 2)

    def test_for_no_other_process(self):
        self.ask("a")
        where, connection = self.client._idle[0]
        self.client._idle[0] = ((0, *where[1:]), connection)  # as in one that was forked
        self.ask("b")
        self.assertEqual(len(self.connections), 2)


class Finding(unittest.TestCase):
    def setUp(self):
        shim("crash")
        self.state = os.environ["HOOKFABRIC_STATE"]
        with open(os.path.join(self.state, "daemon.json"), encoding="utf-8") as f:
            self.card = json.load(f)

    def said(self, **where):
        client = hookfabric.Client(**where)
        self.addCleanup(client.close)
        return client.ask({"hook_type": "PreToolUse", "tool_name": "Bash"})

    def file(self, card, mode=0o600):
        path = os.path.join(os.environ["HOOKFABRIC_TEST_DIR"], "daemon.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(card, f)
        os.chmod(path, mode)
        return path

    def test_by_its_url(self):
        self.assertEqual(self.said(daemon=self.card["url"])["by"], "daemon")

    def test_by_its_file(self):
        card = {**self.card, "token_file": os.path.join(self.state, "daemon.token")}
        self.assertEqual(self.said(daemon=self.file(card))["by"], "daemon")

    def test_in_no_file_that_others_can_write(self):
        card = {**self.card, "token_file": os.path.join(self.state, "daemon.token")}
        self.assertEqual(self.said(daemon=self.file(card, 0o622))["decision"], "deny")

    def test_nowhere_but_on_this_machine(self):
        for url in ("http://192.0.2.1:80", "https://127.0.0.1:1", "http://127.0.0.1.example.com:1", "http://127.0.0.1:99999", "ftp://127.0.0.1", ""):
            with self.subTest(url):
                card = {"url": url, "token_file": os.path.join(self.state, "daemon.token")}
                verdict = self.said(daemon=self.file(card))
                self.assertEqual(verdict["decision"], "deny")

    def test_without_a_proxy(self):
        os.environ["http_proxy"] = "http://127.0.0.1:1"
        self.addCleanup(os.environ.pop, "http_proxy")
        self.assertEqual(self.said()["by"], "daemon")

    def test_with_the_right_token_only(self):
        token = os.path.join(os.environ["HOOKFABRIC_TEST_DIR"], "wrong")
        with open(token, "w", encoding="utf-8") as f:
            f.write("wrong")
        self.assertEqual(self.said(daemon=self.file({**self.card, "token_file": token}))["decision"], "deny")

    def test_what_is_no_token_is_not_said(self):
        token = os.path.join(os.environ["HOOKFABRIC_TEST_DIR"], "two lines")
        for text in ("secret-one\nsecret-two", "secret-\u2713"):
            with open(token, "w", encoding="utf-8") as f:
                f.write(text)
            with self.subTest(text), self.assertLogs("hookfabric", "DEBUG") as said:
                verdict = self.said(daemon=self.file({**self.card, "token_file": token}))
                self.assertEqual(verdict["decision"], "deny")
                self.assertIn("has no valid token", str(said.output))
                self.assertNotIn("secret-", str(said.output) + str(verdict))

    def test_no_daemon_and_no_shim_is_a_no(self):
        verdict = self.said(daemon=os.path.join(self.state, "absent.json"), agentshim="absent-program")
        self.assertEqual(verdict["decision"], "deny")
        self.assertIn("absent-program", verdict["reason"])
