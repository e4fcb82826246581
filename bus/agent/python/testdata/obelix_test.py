"""The examples of Obelix's guide of hooks, as they stand there, by the stand-in for obelix."""

import asyncio
import os
import subprocess
import sys
import tempfile
import unittest
from datetime import datetime

from obelix.core.agent import BaseAgent
from obelix.core.agent.hooks import AgentEvent, AgentStatus, HookDecision
from obelix.core.model.assistant_message import AssistantMessage, AssistantResponse
from obelix.core.model.human_message import HumanMessage
from obelix.core.model.system_message import SystemMessage
from obelix.core.model.tool_message import ToolCall, ToolMessage, ToolResult

import hookfabric

HERE = os.path.dirname(os.path.abspath(__file__))


def example(number):
    """The names that an example makes. The guide leaves out the imports of all but the first."""
    with open(os.path.join(HERE, "seed", f"example{number}.py"), encoding="utf-8") as f:
        source = f.read()
    names = {"__name__": "example"}
    if number > 1:
        names.update(AgentEvent=AgentEvent, AssistantMessage=AssistantMessage, BaseAgent=BaseAgent, HookDecision=HookDecision,
                     SystemMessage=SystemMessage, ToolResult=ToolResult, datetime=datetime)
    exec(compile(source, f"example{number}.py", "exec"), names)
    return names


def script(*said):
    """A model that says one thing after the other, and remembers what it was told."""
    def model(conversation):
        model.seen.append([(message.role, message.content) for message in conversation.messages])
        return said[min(len(model.seen), len(said)) - 1]

    model.seen = []
    return model


def asks(name, **arguments):
    return AssistantMessage("", [ToolCall("call_1", name, arguments)])


class Examples(unittest.TestCase):
    def test_1_output_validation(self):
        agent = example(1)["ValidatingAgent"]()
        agent.provider = script("5", "<answer>5</answer>")
        response = agent.execute_query("2+3?")
        self.assertIsInstance(response, AssistantResponse)
        self.assertEqual((response.content, response.iterations), ("<answer>5</answer>", 2))
        self.assertIn(("system", "Format your answer with <answer>...</answer> tags."), agent.provider.seen[1])

    def test_2_error_recovery(self):
        agent = example(2)["RobustAgent"]()
        agent.provider = script(asks("query", sql="SELECT"), "done")

        @agent.tool(description="Query.")
        def query(sql: str) -> str:
            raise OSError("Database is gone")

        self.assertEqual(agent.execute_query("q").content, "done")
        self.assertIn(("system", "Database schema:\nTables: users (id, name), orders (id, user_id, total)"), agent.provider.seen[1])

    def test_2_other_errors_are_left_alone(self):
        agent = example(2)["RobustAgent"]()
        agent.provider = script(asks("nothing"), "done")
        agent.execute_query("q")
        self.assertNotIn("Database schema", str(agent.provider.seen[1]))

    def test_3_context_injection(self):
        agent = example(3)["ContextAwareAgent"]()
        agent.provider = script("a")
        self.assertEqual(asyncio.run(agent.execute_query_async("q")).content, "a")
        self.assertRegex(agent.provider.seen[0][-1][1], r"^Current time: \d{4}-\d\d-\d\dT.*, Stock price: \$None$")

    def test_4_conditional_early_exit(self):
        agent = example(4)["CachedAgent"]()
        agent.provider = script("asked")
        self.assertEqual(agent.execute_query("q").content, "asked")
        agent._cache["q"] = "cached"
        response = agent.execute_query("q")
        self.assertEqual((response.content, response.status, len(agent.provider.seen)), ("cached", "stopped", 1))

    def test_5_result_enrichment(self):
        agent = example(5)["EnrichingAgent"]()
        agent.provider = script(asks("fetch_data"), "done")
        agent.tool(lambda: {"items": [1, 2]}, name="fetch_data")
        agent.execute_query("q")
        result = next(m.result for m in agent.conversation_history if isinstance(m, ToolMessage))
        self.assertEqual(result.result["count"], 2)
        self.assertRegex(result.result["enriched_at"], r"^\d{4}-\d\d-\d\dT")

    def test_hooks_of_the_fabric_stand_beside_them(self):
        class Fabric(hookfabric.Client):
            def _ask(self, call, event, render=None, **how):
                told = {"BeforeFinalResponse": {"decision": "continue", "value": "<answer>judged</answer>"}}
                return told.get(event["hook_type"], {"decision": "continue"})

            def _get(self, call, path):
                return {"history": []}

        agent = example(1)["ValidatingAgent"]()
        agent.provider, agent.client = script("<answer>5</answer>"), Fabric()
        self.addCleanup(agent.client.close)
        self.assertEqual(agent.execute_query("q").content, "<answer>judged</answer>")


class Places(unittest.TestCase):
    def test_what_the_stand_in_has_not_it_says(self):
        with self.assertRaisesRegex(TypeError, "has no planning, tracer; install Obelix"):
            BaseAgent("", tracer=1, planning=True)
        import obelix
        with self.assertRaisesRegex(AttributeError, "stand-in for obelix .* has no 'plugins'"):
            obelix.plugins
        self.assertEqual(AgentStatus.__name__, "AgentStatus")
        self.assertEqual(HumanMessage("x").content, "x")

    def test_obelix_itself_is_used_where_it_is_installed(self):
        with tempfile.TemporaryDirectory() as site:
            os.makedirs(os.path.join(site, "obelix", "core"))
            for path, text in (("__init__.py", "who = 'Obelix itself'\n"), ("core/__init__.py", ""), ("core/agent.py", "from obelix import who\n")):
                with open(os.path.join(site, "obelix", path), "w", encoding="utf-8") as f:
                    f.write(text)
            home = os.path.dirname(HERE)
            for order in ([home, site], [site, home]):
                said = subprocess.run([sys.executable, "-B", "-c", "import obelix.core.agent as a, obelix; print(a.who, obelix.who)"], check=True,
                                      env={**os.environ, "PYTHONPATH": os.pathsep.join(order)}, capture_output=True, text=True, timeout=60).stdout
                self.assertEqual(said.strip(), "Obelix itself Obelix itself")


if __name__ == "__main__":
    unittest.main()
