import asyncio
import os
import threading
import unittest

import hookfabric

try:
    from claude_agent_sdk import HookMatcher
except ImportError:
    HookMatcher = None


def shim(how):
    os.environ[os.environ["HOOKFABRIC_TEST_MODE"]] = how


def field(matcher, name):
    return matcher[name] if HookMatcher is None else getattr(matcher, name)


def matcher(callback):
    return {"matcher": "Bash", "hooks": [callback], "timeout": None} if HookMatcher is None else HookMatcher("Bash", [callback])


async def other(input_data, tool_use_id, context):
    return {}


class Hooks(unittest.TestCase):
    def setUp(self):
        shim("echo")

    def call(self, event, data, timeout=20.0, **more):
        hooks = hookfabric.claude_hooks(timeout=timeout, **more)
        return asyncio.run(field(hooks[event][-1], "hooks")[0](data, "toolu_1", None))

    def test_they_are_the_sdks_own_objects(self):
        hooks = hookfabric.claude_hooks(timeout=30)
        self.assertEqual(set(hooks), set(hookfabric.EVENTS))
        for matchers in hooks.values():
            self.assertEqual(len(matchers), 1)
            self.assertIsInstance(matchers[0], HookMatcher or dict)
            self.assertIsNone(field(matchers[0], "matcher"))
            self.assertEqual(field(matchers[0], "timeout"), 30)

    def test_those_that_are_there_are_kept_and_come_first(self):
        theirs = matcher(other)
        existing = {"PreToolUse": [theirs], "PreCompact": [theirs]}
        hooks = hookfabric.claude_hooks(existing)
        self.assertIs(hooks["PreToolUse"][0], theirs)
        self.assertEqual(len(hooks["PreToolUse"]), 2)
        self.assertEqual(hooks["PreCompact"], [theirs])
        self.assertEqual(existing, {"PreToolUse": [theirs], "PreCompact": [theirs]})

    def test_they_are_not_added_twice(self):
        once = hookfabric.claude_hooks({"PreToolUse": [matcher(other)]})
        self.assertEqual(hookfabric.claude_hooks(once), once)

    def test_the_events_can_be_named(self):
        self.assertEqual(list(hookfabric.claude_hooks(events=["Stop"])), ["Stop"])

    def test_the_daemons_answer_is_given(self):
        answer = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'
        said = self.call("PreToolUse", {"hook_event_name": "PreToolUse", "tool_name": answer}, agent="agent/1")
        self.assertEqual(said["hookSpecificOutput"]["permissionDecisionReason"], "no")

    def test_no_opinion_is_an_empty_answer(self):
        self.assertEqual(self.call("PostToolUse", {"tool_name": "quiet"}), {})

    def test_the_shim_gets_the_call_with_its_id(self):
        said = self.call("PostToolUse", {"tool_name": "broken"})
        self.assertEqual(said["args"][:5], ["hook", "--runtime", "claude", "--event", "PostToolUse"])
        with open(os.path.join(os.environ["HOOKFABRIC_STATE"], "asked-id"), encoding="utf-8") as f:
            self.assertEqual(said["args"][5:7], ["--event-id", f.read()])
        for part in ('"tool_use_id": "toolu_1"', '"hook_event_name": "PostToolUse"'):
            self.assertIn(part, said["payload"])

    def test_a_no_of_the_shim_is_one_of_the_sdk(self):
        shim("deny")
        said = self.call("PreToolUse", {"tool_name": "broken"})["hookSpecificOutput"]
        self.assertEqual((said["hookEventName"], said["permissionDecision"]), ("PreToolUse", "deny"))
        self.assertEqual(said["permissionDecisionReason"], "refused by the last known policy")
        self.assertEqual(self.call("UserPromptSubmit", {"tool_name": "broken"})["decision"], "block")

    def test_where_nobody_judges_it_is_a_no(self):
        for how in ("crash", "junk", "hang"):
            with self.subTest(how):
                shim(how)
                said = self.call("PreToolUse", {"tool_name": "broken"}, timeout=1.0)
                self.assertEqual(said["hookSpecificOutput"]["permissionDecision"], "deny")
                self.assertEqual(self.call("UserPromptSubmit", {"tool_name": "broken"}, timeout=1.0)["decision"], "block")
                self.assertEqual(self.call("PostToolUse", {"tool_name": "broken"}, timeout=1.0), {})

    def test_where_nobody_judges_it_may_be_a_yes(self):
        shim("crash")
        self.assertEqual(self.call("PreToolUse", {"tool_name": "broken"}, unreachable="allow"), {})

    def test_what_can_not_be_sent_is_refused(self):
        said = self.call("PreToolUse", {"tool_name": "Bash", "tool_input": {"a": object()}})
        self.assertEqual(said["hookSpecificOutput"]["permissionDecision"], "deny")

    def test_a_cancelled_call_is_given_up(self):
        shim("hang")

        async def cancelled(tool, client):
            hooks = hookfabric.claude_hooks(timeout=600.0, client=client)
            waiting = asyncio.create_task(field(hooks["PreToolUse"][0], "hooks")[0]({"tool_name": tool}, None, None))
            await asyncio.sleep(0.5)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting

        for tool in ("hang", "drip", "broken"):
            with self.subTest(tool):
                client = hookfabric.Client()
                asyncio.run(cancelled(tool, client))
                ended = threading.Thread(target=client._threads.shutdown, daemon=True)  # waits for the calls
                ended.start()
                ended.join(30)
                self.assertFalse(ended.is_alive(), "its thread goes on")

    def test_calls_side_by_side_do_not_wait_for_each_other(self):
        shim("crash")

        async def many():
            hooks = hookfabric.claude_hooks(timeout=8.0)
            callback = field(hooks["PreToolUse"][0], "hooks")[0]
            slow = [asyncio.create_task(callback({"tool_name": "hang"}, None, None)) for _ in range(20)]
            quick = await callback({"tool_name": "quiet"}, None, None)
            waiting = sum(not task.done() for task in slow)
            await asyncio.gather(*slow)
            return quick, waiting

        quick, waiting = asyncio.run(many())
        self.assertEqual((quick, waiting), ({}, 20))

    def test_no_time_is_refused(self):
        with self.assertRaises(ValueError):
            hookfabric.claude_hooks(timeout=0)
