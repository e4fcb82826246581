"""Agents' loops with hooks of their own, and no fabric."""

import asyncio
import itertools
import logging
import threading
import unittest

import hookfabric
from hookfabric import (Agent, AgentEvent, AssistantMessage, HookDecision, HumanMessage, QueryFailed, SystemMessage, ToolCall, ToolMessage,
                        ToolResult)



def setUpModule():
    logging.getLogger("hookfabric").setLevel(logging.CRITICAL)  # hooks fail here by the hundred


def tearDownModule():
    logging.getLogger("hookfabric").setLevel(logging.NOTSET)


def script(*said):
    """A model that says one thing after the other, and remembers what it was told."""
    def model(conversation):
        model.seen.append([message.to_dict() for message in conversation.messages])
        one = said[min(len(model.seen), len(said)) - 1]
        if isinstance(one, Exception):
            raise one
        return one

    model.seen = []
    return model


def asks(*calls):
    return AssistantMessage("", [ToolCall(f"id{i}", name, arguments) for i, (name, arguments) in enumerate(calls)])


def an_agent(model=None, **more):
    """An agent that meets all events in one query: a call that works, one that fails, and an answer."""
    agent = Agent("agent1", model=model or script(asks(("add", {"a": 2, "b": 3}), ("breaks", {})), "done"), **more)

    @agent.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @agent.tool(description="Breaks.")
    async def breaks() -> None:
        raise OSError("database is gone")

    return agent


def ends_of(agent):
    """What the hooks at the end of each query are told, in a list that fills."""
    ends = []
    agent.on(AgentEvent.QUERY_END).handle(value=lambda status, response: ends.append(response) or response)
    return ends


def ran(agent, query="q"):
    try:
        return agent.run(query)
    except QueryFailed as failed:
        return failed.response


def both(function):
    """A function, sync and async."""
    async def later(*arguments):
        await asyncio.sleep(0)
        return function(*arguments)

    return {"sync": function, "async": later}


class Order(unittest.TestCase):
    def test_effects_then_value_then_decision_and_values_chain(self):
        for how in ("sync", "async"):
            with self.subTest(how):
                agent, said = an_agent(script("one")), []

                def say(what, answer=None):
                    return both(lambda *given: said.append((what, given[0].assistant_message.content, *given[1:])) or answer)[how]

                def longer(status, message):
                    said.append(("value", status.assistant_message.content))
                    message.content += "!"
                    return message

                agent.on("BeforeFinalResponse").when(say("condition", True)).handle(effects=[say("first"), say("second")], value=both(longer)[how])
                agent.on("BeforeFinalResponse").when(say("no", False)).handle("fail", value="x", effects=[say("never")])
                agent.on("BeforeFinalResponse").handle(value=both(longer)[how])
                self.assertEqual(agent.run("q").content, "one!!")
                self.assertEqual(said, [("condition", "one"), ("first", "one"), ("second", "one"), ("value", "one"), ("no", "one!"), ("value", "one!")])
                self.assertEqual(agent.conversation_history[-1].content, "one!!")

    def test_the_first_terminal_decision_ends_the_chain_where_there_is_one(self):
        agent, said = an_agent(), []
        agent.on(AgentEvent.BEFORE_TOOL_EXECUTION).when(lambda s: s.tool_call.name == "add").handle("deny", reason="never")
        agent.on(AgentEvent.BEFORE_TOOL_EXECUTION).handle(effects=[lambda s: said.append(s.tool_call.name)])
        agent.on(AgentEvent.ON_TOOL_ERROR).handle("fail", reason="first")
        agent.on(AgentEvent.ON_TOOL_ERROR).handle("fail", effects=[lambda s: said.append(s.error)], reason="second")
        response = ran(agent)
        self.assertEqual(said, ["breaks", "OSError: database is gone"])
        self.assertEqual((response.status, response.reason), ("failed", "first"))
        results = [message.result for message in agent.conversation_history if isinstance(message, ToolMessage)]
        self.assertEqual([result.error for result in results], ["The call was denied and did not run: never", "OSError: database is gone"])

    def test_the_status_has_what_the_guide_says(self):
        agent, seen = an_agent(), {}
        for event in AgentEvent:
            agent.on(event).handle(effects=[lambda s: seen.setdefault(s.event.name, []).append(s)])
        agent.run("q")
        table = {"BEFORE_LLM_CALL": "", "AFTER_LLM_CALL": "assistant_message", "BEFORE_TOOL_EXECUTION": "tool_call", "AFTER_TOOL_EXECUTION": "tool_result",
                 "ON_TOOL_ERROR": "tool_result error", "BEFORE_FINAL_RESPONSE": "assistant_message", "QUERY_END": ""}
        for name, fields in table.items():
            for status in seen[name]:
                there = [field for field in ("tool_call", "tool_result", "assistant_message", "error") if getattr(status, field) is not None]
                self.assertEqual(there, fields.split(), name)
                self.assertGreater(status.iteration, 0)
                self.assertIs(status.agent, agent)
        self.assertEqual({name: len(all) for name, all in seen.items()}, {"USER_PROMPT_SUBMIT": 1, "BEFORE_LLM_CALL": 2, "AFTER_LLM_CALL": 2,
                         "BEFORE_TOOL_EXECUTION": 2, "AFTER_TOOL_EXECUTION": 1, "ON_TOOL_ERROR": 1, "BEFORE_FINAL_RESPONSE": 1, "QUERY_END": 1})

    def test_what_hooks_of_calls_say_comes_behind_the_results_in_the_order_of_the_calls(self):
        first_may_go = threading.Event()
        agent = an_agent(script(asks(("slow", {}), ("quick", {})), "done"))
        agent.tool(lambda: first_may_go.wait(20), name="slow")
        agent.tool(lambda: "q", name="quick")

        def note(status):
            status.agent.conversation_history.append(SystemMessage("after " + status.tool_result.tool_name))
            first_may_go.set()

        agent.on(AgentEvent.AFTER_TOOL_EXECUTION).handle(effects=[note], inject={"content": "said", "strategy": "user_message"})
        agent.run("q")
        self.assertEqual([(m.role, m.content) for m in agent.conversation_history[2:-1]],
                         [("tool", "true"), ("tool", "q"), ("system", "after slow"), ("system", "after quick"), ("user", "said"), ("user", "said")])

    def test_removed_hooks_are_not_asked(self):
        agent = an_agent(script("a"))
        agent.on("BeforeLLMCall").reject("no").remove()
        self.assertEqual(agent.run("q").content, "a")


class Contract(unittest.TestCase):
    def test_what_is_illegal_says_what_is_legal(self):
        agent = an_agent()
        values = {AgentEvent.AFTER_TOOL_EXECUTION: ToolResult(result=1), AgentEvent.ON_TOOL_ERROR: ToolResult(result=1)}
        legal = 0
        for event, decision, with_value in itertools.product(AgentEvent, HookDecision, (False, True)):
            contract = hookfabric._CONTRACT[event.value]
            may = decision.value in contract.decisions and (decision is not HookDecision.STOP or with_value) and (
                not with_value or decision is HookDecision.STOP or bool(contract.rewrite))
            with self.subTest(event=event, decision=decision, with_value=with_value):
                value = values.get(event, AssistantMessage("v")) if with_value else None
                if may:
                    agent.on(event).handle(decision, value=value)
                    legal += 1
                else:
                    with self.assertRaisesRegex(RuntimeError, "CONTINUE|value"):
                        agent.on(event).handle(decision, value=value)
        self.assertEqual(len(agent._hooks), legal)
        with self.assertRaisesRegex(ValueError, "BEFORE_LLM_CALL"):
            agent.on("BeforeLunch")
        self.assertEqual([agent.on(name).handle().event for name in AgentEvent.__members__], list(AgentEvent))
        self.assertIs(agent.on("Stop").handle().event, AgentEvent.BEFORE_FINAL_RESPONSE)
        for event in ("SessionStart", "SessionEnd"):
            with self.assertRaisesRegex(ValueError, f"a loop has no {event}, .* write UserPromptSubmit or QueryEnd"):
                agent.on(event)
        with self.assertRaisesRegex(RuntimeError, "set_flag"):
            agent.on("QueryEnd").handle(effects=[{"reboot": {}}])
        for wrong in (lambda: agent.on("QueryEnd").when("always"), lambda: agent.on("QueryEnd").handle(inject={"content": 3}),
                      lambda: agent.on("BeforeLLMCall").reject(7)):
            with self.assertRaises(TypeError):
                wrong()

    def test_each_decision_acts(self):
        for event, decision, status, content in (
            ("UserPromptSubmit", "deny", "rejected", ""), ("BeforeLLMCall", "fail", "failed", ""), ("BeforeLLMCall", "stop", "stopped", "v"),
            ("AfterLLMCall", "fail", "failed", ""), ("AfterLLMCall", "stop", "stopped", "v"), ("AfterLLMCall", "retry", "max_iterations", ""),
            ("PreToolUse", "fail", "failed", ""), ("PreToolUse", "stop", "answered", "done"), ("PreToolUse", "deny", "answered", "done"),
            ("PreToolUse", "ask", "answered", "done"), ("PreToolUse", "allow", "answered", "done"), ("PostToolUse", "fail", "failed", ""),
            ("PostToolUse", "deny", "answered", "done"), ("ToolError", "fail", "failed", ""), ("BeforeFinalResponse", "fail", "failed", ""),
            ("BeforeFinalResponse", "stop", "stopped", "v"), ("BeforeFinalResponse", "retry", "max_iterations", ""), ("PostToolUse", "stop", "answered", "done"),
            ("ToolError", "stop", "answered", "done"), ("QueryEnd", "fail", "failed", "done"), ("QueryEnd", "stop", "answered", "v"),
        ):
            with self.subTest(event=event, decision=decision):
                agent = an_agent()
                ends = ends_of(agent)
                agent.on(event).handle(decision, value="v" if decision == "stop" else None, reason="because")
                response = ran(agent)
                self.assertEqual((response.status, response.content), (status, content))
                told = ("answered", "done", "") if event == "QueryEnd" else (status, content, response.reason)
                self.assertEqual([(end.status, end.content, end.reason) for end in ends], [told])
                self.assertEqual(bool(response.error), status not in ("answered", "stopped"))
                if status == "max_iterations":
                    self.assertIn("because (15 of 15 attempts were made)", agent.conversation_history[-1].content)
                    self.assertIn("because", response.error)
                if event == "QueryEnd" and decision == "fail":
                    self.assertEqual((response.reason, response.hook_errors), ("because", []))
                    self.assertIn("because", response.error)

    def test_a_stop_after_a_tool_carries_the_result(self):
        for event, place, remains in (("PostToolUse", 2, None), ("ToolError", 3, None)):
            for value, result in (("cached", "cached"), (lambda status, result: ToolResult(result={"n": 1}), {"n": 1})):
                with self.subTest(event=event, result=result):
                    agent, trail = an_agent(), []
                    agent.on(event).handle("deny", reason="feedback", inject="before", effects=[lambda status: trail.append("first")])
                    agent.on(event).handle("stop", value=value, effects=[lambda status: trail.append("stop")])
                    agent.on(event).handle("fail", effects=[lambda status: trail.append("later")])
                    self.assertEqual(ran(agent).content, "done")
                    got = agent.conversation_history[place].result
                    self.assertEqual((got.result, got.error, got.notes, trail), (result, remains, ["before", "feedback"], ["first", "stop"]))

    def test_a_stop_undoes_no_fail(self):
        agent, trail = an_agent(), []
        agent.on("PostToolUse").handle("fail", reason="it leaked", effects=[lambda status: trail.append("fail")])
        agent.on("PostToolUse").handle("stop", value="fine", effects=[lambda status: trail.append("stop")])
        agent.on("PostToolUse").handle(effects=[lambda status: trail.append("later")])
        response = ran(agent)
        self.assertEqual((response.status, response.reason, trail), ("failed", "it leaked", ["fail", "stop"]))

    def test_a_fail_at_the_end_of_a_query_that_failed_adds_its_error(self):
        agent, shown = an_agent(output=lambda chunk: shown.append((chunk.kind, chunk.text))), []
        agent.on("BeforeFinalResponse").reject("no tags")
        agent.on("QueryEnd").reject("no license")
        response = ran(agent)
        self.assertEqual((response.status, response.reason, response.hook_errors), ("failed", "no tags", []))
        self.assertRegex(response.error, "no tags; .*no license")
        self.assertEqual(shown[-1], ("end", response.error))

    def test_an_answer_that_its_end_failed_is_not_shown(self):
        agent, shown = an_agent(output=lambda chunk: shown.append((chunk.kind, chunk.text))), []
        agent.on("QUERY_END").reject("no license")
        response = ran(agent)
        self.assertNotIn(("text", "done"), shown)
        self.assertEqual(shown[-1], ("end", response.error))

    def test_reject_is_fail_with_its_reason(self):
        agent = an_agent()
        agent.on(AgentEvent.AFTER_LLM_CALL).reject("not for us")
        self.assertEqual(ran(agent).reason, "not for us")

    def test_values_take_their_place(self):
        model = script(asks(("add", {"a": 1, "b": 1}), ("breaks", {})), "done")
        agent = an_agent(model)

        def larger(status, call):
            call.input["a"] = 40
            return call

        def wrapped(status, result):
            return ToolResult(result.tool_name, result.tool_call_id, {"was": result.result or result.error})

        agent.on("PreToolUse").when(lambda s: s.tool_call.name == "add").handle(value=larger)
        agent.on("PostToolUse").handle(value=wrapped)
        agent.on("ToolError").handle(value=wrapped)
        agent.on("QueryEnd").handle(value=lambda status, response: response.content + "?")
        response = agent.run("q")
        self.assertEqual((response.content, response.message.content, response.status), ("done?", "done?", "answered"))
        self.assertEqual([message["tool_result"].get("output") for message in model.seen[1] if message["role"] == "tool"],
                         [{"was": 41}, {"was": "OSError: database is gone"}])

    def test_a_text_takes_the_place_of_the_text_only(self):
        agent = an_agent()
        agent.on("AfterLLMCall").when(lambda s: s.iteration == 1).handle(value="said otherwise")
        agent.run("q")
        first = agent.conversation_history[1]
        self.assertEqual((first.content, len(first.tool_calls)), ("said otherwise", 2))


class Failures(unittest.TestCase):
    """What fails is an error of its hook, whose policy decides: sync or async, by an exception or by taking too long."""

    def failing(self, how, hangs):
        def fails(*_):
            if hangs:
                threading.Event().wait(60)
            raise KeyError("broken on purpose")

        async def fails_later(*_):
            await asyncio.sleep(60 if hangs else 0)
            raise KeyError("broken on purpose")

        return fails if how == "sync" else fails_later

    def agent(self):
        return an_agent(event_timeout=60)

    def check(self, event, agent, closed, told):
        ends = ends_of(agent)
        response = ran(agent)
        self.assertEqual(len(ends), 1)
        self.assertTrue(any(told in error for error in response.hook_errors), response.hook_errors)
        blocking = hookfabric._CONTRACT[event.value].blocking if closed else ""
        want = {"fail": "failed", "deny": "rejected" if event is AgentEvent.USER_PROMPT_SUBMIT else "answered"}.get(blocking, "answered")
        self.assertEqual(response.status, want)
        results = [message.result for message in agent.conversation_history if isinstance(message, ToolMessage)]
        if event is AgentEvent.BEFORE_TOOL_EXECUTION:
            self.assertEqual([result.error and "denied" in result.error for result in results], [True, True] if closed else [None, False])
        if want == "answered":
            self.assertEqual(len(results), 2)

    def test_of_effects_and_values_under_both_policies(self):
        for event, part, how, hangs, closed in itertools.product(AgentEvent, ("effect", "value"), ("sync", "async"), (False, True), (False, True)):
            if part == "value" and not hookfabric._CONTRACT[event.value].rewrite:
                continue
            with self.subTest(event=event, part=part, how=how, hangs=hangs, closed=closed):
                agent, fails = self.agent(), self.failing(how, hangs)
                more = {"value": fails} if part == "value" else {"effects": [{"set_flag": {"before": True}}, fails]}
                agent.on(event, name="faulty").handle(fail_closed=closed, timeout=0.03 if hangs else 30, **more)
                self.check(event, agent, closed, 'hook "faulty": it did not finish' if hangs else 'hook "faulty": KeyError')
                self.assertEqual(agent.flags, {"before": True} if part == "effect" else {})

    def test_of_conditions(self):
        for event, how in itertools.product(AgentEvent, ("sync", "async")):
            with self.subTest(event=event, how=how):  # it counts as true: the hook acts
                agent, acted = self.agent(), []
                agent.on(event).when(self.failing(how, False)).handle(effects=[lambda s: acted.append(1)])
                self.check(event, agent, False, "counts as true")
                self.assertTrue(acted)
        for event, closed in itertools.product(AgentEvent, (False, True)):
            with self.subTest(event=event, hangs=True, closed=closed):  # then the hook's time is up
                agent, acted = self.agent(), []
                agent.on(event).when(self.failing("sync", True)).handle(effects=[lambda s: acted.append(1)], fail_closed=closed, timeout=0.03)
                self.check(event, agent, closed, "it did not finish")
                self.assertFalse(acted)

    def test_values_of_a_wrong_type(self):
        for event, value in ((AgentEvent.AFTER_LLM_CALL, lambda s, v: None), (AgentEvent.BEFORE_FINAL_RESPONSE, lambda s, v: 7),
                             (AgentEvent.BEFORE_TOOL_EXECUTION, lambda s, v: "x"), (AgentEvent.BEFORE_TOOL_EXECUTION, lambda s, v: ToolCall(name="rm")),
                             (AgentEvent.AFTER_TOOL_EXECUTION, lambda s, v: None), (AgentEvent.QUERY_END, lambda s, v: float("nan"))):
            with self.subTest(event=event):
                agent = self.agent()
                agent.on(event, fail_closed=True).handle(value=value)
                self.check(event, agent, True, "TypeError")

    def test_an_effect_that_is_too_late_changes_nothing_any_more(self):
        go, went = threading.Event(), threading.Event()

        def late(status):
            go.wait(30)
            status.agent.conversation_history.append(SystemMessage("late"))
            status.agent.flags["late"] = True
            went.set()

        agent = an_agent(script("a"))
        agent.on("BeforeLLMCall").handle(effects=[late], timeout=0.03)
        agent.run("q")
        go.set()
        self.assertTrue(went.wait(30))
        self.assertEqual(([m.content for m in agent.conversation_history], agent.flags), (["q", "a"], {}))

    def test_who_waits_for_the_effect_of_another_hook_loses_no_time(self):
        agent, under_way, go = an_agent(script(asks(("add", {"a": 1, "b": 1}), ("waits", {})), "done")), threading.Event(), threading.Event()

        @agent.tool
        def waits():
            under_way.wait(30)  # now the other call's effect is at work
            threading.Timer(1.0, go.set).start()
            raise OSError("broken")

        agent.on("PostToolUse").handle(effects=[lambda s: under_way.set() or go.wait(30)])
        agent.on("ToolError").handle(effects=[lambda s: s.agent.conversation_history.append(SystemMessage("in time"))], timeout=0.5)
        self.assertEqual(agent.run("q").hook_errors, [])
        self.assertIn("in time", [m.content for m in agent.conversation_history])

    def test_only_messages_get_into_the_conversation(self):
        agent = an_agent(script("a"))
        agent.on("BeforeLLMCall").handle(effects=[lambda s: s.agent.conversation_history.append("text")])
        agent.on("BeforeLLMCall").handle(effects=[lambda s: s.agent.conversation_history.append({"role": "system", "content": "object"})])
        self.assertIn("SystemMessage", agent.run("q").hook_errors[0])
        self.assertEqual([m.content for m in agent.conversation_history], ["q", "object", "a"])

    def test_a_hook_that_exits_ends_nobody(self):
        async def leaves(status):
            raise SystemExit(3)

        for effect in (lambda status: exit(3), leaves):
            agent = an_agent(script("a"))
            agent.on("BeforeLLMCall").handle(effects=[effect])
            agent.on("QueryEnd").handle(effects=[effect])
            ends = ends_of(agent)
            self.assertIn("SystemExit", agent.run("q").hook_errors[0])
            self.assertEqual(len(ends), 1)


class Ends(unittest.TestCase):
    """However a query ends, the hooks at its end hear of it once, and the truth."""

    def test_a_model_that_fails(self):
        for said, told in ((ValueError("no model"), "no model"), (7, "a number"), ({"role": "user", "content": "x"}, "an object"), ({"tool_calls": [1]}, "a number"),
                           (AssistantMessage(tool_calls=[None]), "is null")):
            with self.subTest(said=said):
                agent = an_agent(script(said))
                ends = ends_of(agent)
                with self.assertRaises(QueryFailed) as failed:
                    agent.run("q")
                self.assertIsNotNone(failed.exception.__cause__)
                self.assertEqual([(end.status, told in end.error) for end in ends], [("model_error", True)])

    def test_a_query_that_is_cancelled_at_each_event(self):
        for event in AgentEvent:
            for how in ("sync", "async"):
                with self.subTest(event=event, how=how):
                    agent, there = an_agent(), threading.Event()
                    ends = ends_of(agent) if event is not AgentEvent.QUERY_END else None

                    def hangs(status):
                        there.set()
                        threading.Event().wait(60)

                    async def hangs_too(status):
                        there.set()
                        await asyncio.sleep(60)

                    hook = agent.on(event).handle(effects=[hangs if how == "sync" else hangs_too], timeout=60 if event is not AgentEvent.QUERY_END else 0.3)
                    asyncio.run(self.cancelled(agent, there))
                    if ends is not None:
                        self.assertEqual([(end.status, end.error) for end in ends], [("cancelled", "the query was cancelled")])
                    hook.remove()  # and the conversation can go on
                    self.whole(agent)
                    self.assertEqual(agent.run("again").content, "done")

    def whole(self, agent):
        """Every call has its result."""
        self.assertFalse([turn for turn, is_open in hookfabric._turns(agent.conversation_history) if is_open])

    async def cancelled(self, agent, there):
        task = asyncio.ensure_future(agent.arun("q"))
        while not there.is_set() and not task.done():
            await asyncio.sleep(0.005)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task

    def test_a_query_that_is_cancelled_while_the_model_and_the_tools_run(self):
        there = threading.Event()

        def hangs():
            there.set()
            threading.Event().wait(60)

        for model, at_error in ((lambda conversation: hangs(), 0), (script(asks(("hangs", {}), ("add", {"a": 1, "b": 1})), "done"), 1)):
            there.clear()
            agent, errors = an_agent(model, parallel=1), []
            agent.tool(hangs, name="hangs")
            agent.on("ToolError").handle(effects=[lambda s: errors.append(s.error)])
            ends = ends_of(agent)
            asyncio.run(self.cancelled(agent, there))
            self.assertEqual([end.status for end in ends], ["cancelled"])
            self.assertEqual(errors, ["the query was cancelled while the tool ran"][:at_error])  # what ran is told
            self.whole(agent)

    def test_a_conversation_that_is_damaged(self):
        def breaks_it():
            agent.conversation_history.append(AssistantMessage(tool_calls=[None]))
            raise SystemExit(1)

        agent = an_agent(script(asks(("breaks_it", {})), ValueError("down")))
        agent.tool(breaks_it)
        ends = ends_of(agent)
        self.assertIn("invalid message", str(ran(agent).hook_errors))
        self.assertEqual([end.status for end in ends], ["model_error"])

    def test_more_model_calls_than_it_may_have(self):
        model = script(asks(("add", {"a": 1, "b": 1})))
        agent = an_agent(model, max_iterations=3)
        ends = ends_of(agent)
        response = ran(agent)
        self.assertEqual((response.status, response.iterations, len(model.seen), len(ends)), ("max_iterations", 3, 3, 1))
        self.assertIn("after 3 model calls", response.error)

    def test_one_query_at_a_time_and_no_run_where_a_loop_runs(self):
        agent = an_agent(script("a"))

        async def two():
            first = asyncio.ensure_future(agent.arun("q"))
            await asyncio.sleep(0)
            with self.assertRaisesRegex(RuntimeError, "already runs a query"):
                await agent.arun("q")
            with self.assertRaisesRegex(RuntimeError, "await agent.arun"):
                agent.run("q")
            return await first

        self.assertEqual(asyncio.run(two()).content, "a")


class Tools(unittest.TestCase):
    def test_schemas_come_from_type_hints(self):
        from typing import Dict, List, Literal, Optional

        agent = Agent()

        @agent.tool(description="What it does.")
        def search(text: str, limit: int = 3, tags: Optional[List[str]] = None, how: Literal["a", "b"] = "a", more: Dict[str, float] = {}) -> str:
            return text

        self.assertEqual(agent.tools["search"].to_dict(), {"name": "search", "description": "What it does.", "schema": {
            "type": "object", "required": ["text"], "additionalProperties": False, "properties": {
                "text": {"type": "string"}, "limit": {"type": "integer"},
                "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
                "how": {"enum": ["a", "b"]}, "more": {"type": "object", "additionalProperties": {"type": "number"}}}}})
        with self.assertRaisesRegex(ValueError, "search"):
            agent.tool(search)

    def test_calls_that_can_not_be_made_are_tool_errors(self):
        wrong = {"{": "must be a JSON object"}
        agent = an_agent(script(asks(("add", {"a": 1}), ("add", {"a": 1, "b": "2"}), ("add", {"a": 1, "b": True}), ("add", {"a": 1, "b": 2, "c": 3}),
                                     ("none", {}), ("add", "{")), "done"))
        agent.run("q")
        errors = [message.result.error for message in agent.conversation_history if isinstance(message, ToolMessage)]
        for error, told in zip(errors, ("no b", "input.b is a string", "input.b is a boolean", "input.c", 'no tool "none"', wrong["{"])):
            self.assertIn(told, error)

    def test_they_run_side_by_side_and_their_results_stand_in_order(self):
        meeting = threading.Barrier(3, timeout=30)
        agent = an_agent(script(AssistantMessage("", [ToolCall(str(i), "meet", {"i": i}) for i in range(3)]), "done"))

        @agent.tool
        def meet(i: int):
            meeting.wait()
            return {"i": i, "odd": object}

        agent.run("q")
        self.assertEqual([m.result.result["i"] for m in agent.conversation_history if isinstance(m, ToolMessage)], [0, 1, 2])

    def test_who_is_asked_may_say_yes(self):
        for approve, want in ((None, True), (lambda call, why: False, True), (lambda call, why: why == "sure?" and call.name == "add", False),
                              (both(lambda call, why: True)["async"], False), (lambda call, why: 1 / 0, True)):
            agent = an_agent(script(asks(("add", {"a": 1, "b": 1})), "done"), approve=approve)
            agent.on("PreToolUse").handle("ask", reason="sure?")
            agent.run("q")
            result = next(m.result for m in agent.conversation_history if isinstance(m, ToolMessage))
            self.assertEqual(bool(result.error), want)

    def test_nobody_is_asked_any_more_about_a_call_of_a_turn_that_is_over(self):
        asked, gone = threading.Event(), []
        agent = an_agent(script(asks(("breaks", {}), ("waits", {}))))
        agent.tool(lambda: asked.wait(30), name="waits")

        async def approve(call, reason):
            asked.set()
            try:
                await asyncio.sleep(60)
            finally:
                gone.append(call.name)

        agent._approve = approve
        agent.on("PreToolUse").when(lambda s: s.tool_call.name == "breaks").handle("ask")
        agent.on("PostToolUse").reject("enough")
        response = ran(agent)
        self.assertEqual((response.status, response.reason, gone), ("failed", "enough", ["breaks"]))
        self.assertIn("asking for approval of breaks failed", response.hook_errors[0])
        self.assertEqual([m.result.error for m in agent.conversation_history if isinstance(m, ToolMessage)],
                         ["The call did not run, since no person approved it: no reason was given", None])


class Conversations(unittest.TestCase):
    def test_it_goes_on_unless_it_is_to_be_a_new_one(self):
        agent = an_agent(script("a"), system="s")
        agent.run("1")
        agent.run("2")
        self.assertEqual([m.content for m in agent.conversation_history], ["s", "1", "a", "2", "a"])
        agent.run("3", new_conversation=True)
        self.assertEqual([m.content for m in agent.conversation_history], ["s", "3", "a"])

    def test_what_a_model_is_asked_is_the_models(self):
        def model(conversation):
            said = ["x", "y"][conversation.iteration - 1] if conversation.messages[0].content == "q" else "spoiled"
            self.assertEqual([tool.schema["type"] for tool in conversation.tools], ["object", "object"])
            conversation.messages[0].content = "z"
            conversation.tools[0].name, conversation.tools[0].schema["type"] = "spoiled", "string"
            return said

        agent = an_agent(model)
        agent.on("BeforeFinalResponse").when(lambda s: s.iteration == 1).handle("retry")
        self.assertEqual(agent.run("q").content, "y")
        self.assertEqual(([m.content for m in agent.conversation_history], list(agent.tools)), (["q", "x", "y"], ["add", "breaks"]))

    def test_models_may_answer_in_many_forms(self):
        for said in ("a", AssistantMessage("a"), {"content": "a"}, {"role": "assistant", "content": "a", "native": {"x": 1}}):
            for how in ("sync", "async"):
                self.assertEqual(an_agent(both(lambda conversation: said)[how]).run("q").content, "a")

    def test_calls_of_chat_completions_are_made(self):
        calls = []

        def model(conversation):
            if calls:
                return "done"
            function = {"name": "look", "arguments": '{"at": "x"}'}
            return {"role": "assistant", "content": None, "refusal": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}

        agent = an_agent(model)

        @agent.tool
        def look(at: str) -> str:
            calls.append(at)
            return "seen"

        self.assertEqual(agent.run("q").content, "done")
        self.assertEqual(calls, ["x"])

    def test_a_message_of_another_shape_is_native_as_a_whole(self):
        for said in ({"candidates": []}, {"content": None, "refusal": "no"}, {"content": [{"type": "text", "text": "x"}]}, {"content": "x", "tool_calls": [{"id": "c"}]}):
            agent, seen = an_agent(lambda conversation, said=said: said), []
            agent.on("AfterLLMCall").handle("continue", effects=[lambda s: seen.append(s.assistant_message)])
            agent.run("q")
            self.assertEqual([(m.content, m.tool_calls, m.native) for m in seen], [("", [], said)])

    def test_output_shows_what_happens(self):
        chunks = []
        agent = an_agent(output=chunks.append)
        agent.on("BeforeFinalResponse").when(lambda s: s.iteration == 2).handle("retry", reason="again", inject="look")
        agent.run("q")
        self.assertEqual([chunk.kind for chunk in chunks if chunk.kind != "tool_result" and chunk.kind != "tool_call"], ["retry", "injection", "text", "end"])
        said = {chunk.kind: str(chunk) for chunk in chunks}
        self.assertEqual((said["retry"], said["text"]), ("again (attempt 3 of 15)", "done"))
        self.assertRegex(said["injection"], r"^\[INJECTION\] before_final_response-1: look$")

    def test_effects_may_be_data(self):
        agent = an_agent(script("a", "b"), system="s")
        agent.on("BeforeFinalResponse").when(lambda s: s.iteration == 1).handle("retry", effects=[
            {"append_message": {"content": "keep"}}, {"drop_messages": {"role": "assistant"}}, {"set_flag": {"x": 1, "y": 2}}, {"set_flag": {"y": None}}])
        self.assertEqual(agent.run("q").content, "b")
        self.assertEqual(([m.content for m in agent.conversation_history], agent.flags), (["s", "q", "keep", "b"], {"x": 1}))


class Examples(unittest.TestCase):
    """The examples of the guide, of which only the imports differ."""

    def test_output_validation(self):
        class ValidatingAgent(Agent):
            def __init__(self):
                super().__init__("agent1", model=script("5", "<answer>5</answer>"), system="...")
                self.on(AgentEvent.BEFORE_FINAL_RESPONSE).when(
                    self._missing_answer_tag
                ).handle(
                    decision=HookDecision.RETRY,
                    effects=[self._inject_format_guidance],
                )

            def _missing_answer_tag(self, status) -> bool:
                content = status.assistant_message.content or ""
                return "<answer>" not in content

            def _inject_format_guidance(self, status) -> None:
                status.agent.conversation_history.append(SystemMessage(content="Format your answer with <answer>...</answer> tags."))

        agent = ValidatingAgent()
        self.assertEqual(agent.run("2+3?").content, "<answer>5</answer>")
        self.assertIn("Format your answer", agent.model.seen[1][-1]["content"])

    def test_error_recovery(self):
        agent = an_agent()
        agent.on(AgentEvent.ON_TOOL_ERROR).when(
            lambda s: "database" in (s.error or "").lower()
        ).handle(
            decision=HookDecision.CONTINUE,
            effects=[lambda status: status.agent.conversation_history.append(SystemMessage(content="Database schema:\nusers (id, name)"))],
        )
        agent.run("q")
        self.assertEqual([m["role"] for m in agent.model.seen[1]], ["user", "assistant", "tool", "tool", "system"])

    def test_context_injection(self):
        class ContextAwareAgent(Agent):
            def __init__(self):
                super().__init__("agent1", model=script("a"), system="...")
                self.on(AgentEvent.BEFORE_LLM_CALL).handle(decision=HookDecision.CONTINUE, effects=[self._inject_current_context])

            async def _inject_current_context(self, status) -> None:
                stock_price = await self._fetch_stock_price()
                status.agent.conversation_history.append(SystemMessage(content=f"Stock price: ${stock_price}"))

            async def _fetch_stock_price(self) -> float:
                await asyncio.sleep(0)
                return 1.5

        agent = ContextAwareAgent()
        agent.run("q")
        self.assertEqual(agent.model.seen[0][-1], {"role": "system", "content": "Stock price: $1.5"})

    def test_conditional_early_exit(self):
        class CachedAgent(Agent):
            def __init__(self):
                super().__init__("agent1", model=script("asked"), system="...")
                self._cache = {}
                self.on(AgentEvent.BEFORE_LLM_CALL).when(
                    self._cache_hit
                ).handle(
                    decision=HookDecision.STOP,
                    value=self._get_cached_response,
                )

            def _cache_hit(self, status) -> bool:
                query = status.agent.conversation_history[-1].content
                return query in self._cache

            def _get_cached_response(self, status):
                query = status.agent.conversation_history[-1].content
                cached_text = self._cache[query]
                return AssistantMessage(content=cached_text)

        agent = CachedAgent()
        self.assertEqual(agent.run("q").content, "asked")
        agent._cache["q"] = "cached"
        response = agent.run("q")
        self.assertEqual((response.content, response.status, len(agent.model.seen)), ("cached", "stopped", 1))

    def test_result_enrichment(self):
        class EnrichingAgent(Agent):
            def __init__(self):
                super().__init__("agent1", model=script(asks(("fetch_data", {})), "done"), system="...")
                self.tool(lambda: {"items": [1, 2]}, name="fetch_data")
                self.on(AgentEvent.AFTER_TOOL_EXECUTION).handle(decision=HookDecision.CONTINUE, value=self._enrich_result)

            def _enrich_result(self, status, result: ToolResult) -> ToolResult:
                if result.tool_name == "fetch_data":
                    result.result["count"] = len(result.result.get("items", []))
                return result

        agent = EnrichingAgent()
        agent.run("q")
        self.assertEqual(agent.model.seen[1][-1]["tool_result"]["output"], {"items": [1, 2], "count": 2})
        self.assertIsInstance(agent.conversation_history[1], HumanMessage)
