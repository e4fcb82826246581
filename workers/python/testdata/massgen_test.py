"""The stand-in for massgen in a program: what it registers goes to the fabric."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

from massgen.mcp_tools.hooks import GeneralHookManager, HookResult, HookType, PatternHook, PythonCallableHook

HERE = os.path.dirname(os.path.abspath(__file__))

#: MassGen's guide of hooks, as it stands there.
GUIDE = '''
from massgen.mcp_tools.hooks import (
    PythonCallableHook,
    HookEvent,
    HookResult,
    GeneralHookManager,
    HookType,
)

def my_audit_hook(event: HookEvent) -> HookResult:
    """Log all tool calls for auditing."""
    print(f"Tool called: {event.tool_name}")
    print(f"Arguments: {event.tool_input}")
    return HookResult.allow()

# Register the hook
manager = GeneralHookManager()
hook = PythonCallableHook("audit", my_audit_hook, matcher="*")
manager.register_global_hook(HookType.PRE_TOOL_USE, hook)
'''

BROKER = '''#!/bin/sh
for a in "$@"; do printf '%s\\n' "$a"; done > "$0.args"
cat > "$0.stdin"
[ ! -e "$0.refuses" ] || { echo "broker: no module named audit" >&2; exit 1; }
'''


class Registering(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.broker = folder.name, os.path.join(folder.name, "broker")
        with open(self.broker, "w") as f:
            f.write(BROKER)
        os.chmod(self.broker, 0o755)

    def run_program(self, text, **environ):
        with open(os.path.join(self.folder, "audit.py"), "w") as f:
            f.write(text)
        return subprocess.run([sys.executable, "-B", os.path.join(self.folder, "audit.py")], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "HOOKFABRIC_BROKER": self.broker, "PYTHONPATH": os.path.dirname(HERE), **environ})

    def told(self):
        with open(self.broker + ".args") as f, open(self.broker + ".stdin") as g:
            return f.read().split(), json.load(g)

    def test_the_guides_example(self):
        done = self.run_program(GUIDE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.told(), (["hooks", "register", "-"], {"PreToolUse": [
            {"name": "audit", "type": "python", "handler": "audit.my_audit_hook", "matcher": "*", "timeout": 30.0, "fail_closed": False}]}))

    def test_one_agents_hooks(self):
        done = self.run_program(GUIDE.replace("register_global_hook(", "register_agent_hook('a', ").replace("hook)\n", "hook, override=True)\n"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        args, hooks = self.told()
        self.assertEqual(args, ["hooks", "register", "-", "--agent", "a"])
        self.assertEqual((hooks["PreToolUse"]["override"], hooks["PreToolUse"]["hooks"][0]["name"]), (True, "audit"))

    def test_the_fabrics_own_hooks_and_configurations(self):
        done = self.run_program(textwrap.dedent("""
            from massgen.mcp_tools.hooks import GeneralHookManager, HookType, MidStreamInjectionHook
            GeneralHookManager().register_global_hook(HookType.POST_CALL, MidStreamInjectionHook())
        """))
        self.assertEqual((done.returncode, done.stderr, self.told()[1]), (0, "", {"PostToolUse": [{"type": "builtin", "handler": "mid_stream_injection"}]}))
        done = self.run_program(textwrap.dedent("""
            from massgen.mcp_tools.hooks import GeneralHookManager
            GeneralHookManager().register_hooks_from_config({"hooks": [{"type": "PostToolUse", "callable": "audit.x"}]})
        """))
        self.assertEqual((done.returncode, done.stderr, self.told()[1]), (0, "", [{"type": "PostToolUse", "callable": "audit.x"}]))

    def test_what_is_not_registered_says_why(self):
        open(self.broker + ".refuses", "w").close()
        self.assertIn("RuntimeError: the hook is not registered: broker: no module named audit", self.run_program(GUIDE).stderr)
        self.assertIn("put the program broker on the PATH, or set HOOKFABRIC_BROKER to its path", self.run_program(GUIDE, HOOKFABRIC_BROKER="/no/such").stderr)
        self.assertIn("is not a function of a module", self.run_program(GUIDE.replace(", my_audit_hook,", ", lambda event: None,")).stderr)

    def test_massgen_itself_is_used_where_it_is_installed(self):
        site = os.path.join(self.folder, "site")
        os.makedirs(os.path.join(site, "massgen"))
        with open(os.path.join(site, "massgen", "__init__.py"), "w") as f:
            f.write("who = 'MassGen itself'\n")
        home = os.path.dirname(HERE)
        for order in ([home, site], [site, home]):
            done = self.run_program("import massgen; print(massgen.who)", PYTHONPATH=os.pathsep.join(order))
            self.assertEqual((done.stdout, done.stderr), ("MassGen itself\n", ""))

    def test_what_the_stand_in_has_not_it_says(self):
        self.assertIn("ImportError: the stand-in for massgen.mcp_tools.hooks that comes with hookfabric has no FunctionHook; it has GeneralHookManager",
                      self.run_program("from massgen.mcp_tools.hooks import FunctionHook").stderr)


class Asking(unittest.TestCase):
    """A program that asks the hooks itself gets an answer of MassGen's decisions, which refuses what the fabric would."""

    def ask(self, answer, event="PreToolUse", fail_closed=False, then=None):
        manager = GeneralHookManager()
        for handler in filter(None, (lambda e: answer, then)):
            with mock.patch("massgen.mcp_tools.hooks._register"):
                manager.register_global_hook(HookType(event), PythonCallableHook("h", handler, fail_closed=fail_closed))
        return asyncio.run(manager.execute_hooks(HookType(event), "Bash", "{}", tool_output="secret" if event != "PreToolUse" else None))

    def test_what_refuses_a_call_is_a_deny(self):
        late = HookResult()
        late.decision = "deny"
        for answer, reason in ((HookResult.fail("no"), "no"), (HookResult.reject("no"), "no"), (HookResult.stop("over", reason="no"), "no"), (late, None),
                               (HookResult.stop("over"), "over"), (HookResult.stop({"at": object}), '{"at": "<class \'object\'>"}'), ({"decision": "stop"}, None),
                               ({"decision": "fail", "metadata": {"reason": "no"}}, "no"), ({"decision": "block", "reason": "no", "metadata": 5}, "no"),
                               (HookResult(allowed=False, metadata="x", reason="no"), "no")):
            later = []
            result = self.ask(answer, then=later.append)
            self.assertEqual((result.allowed, result.decision, result.reason, later), (False, "deny", reason, []), answer)
            alone = asyncio.run(PythonCallableHook("h", lambda e: answer).execute("Bash", "{}"))
            self.assertEqual((alone.allowed, alone.decision, alone.reason), (False, "deny", reason), answer)
        for name in ("fail", "reject"):
            self.assertEqual(self.ask({"decision": name, "reason": "no"}, "PostToolUse").decision, "deny")

    def test_a_hook_of_another_class_is_read_as_strictly(self):
        class Own(PatternHook):
            async def execute(self, function_name, arguments, context=None, **more):
                return answers[self.name]

            def _entry(self):
                return {}

        answers = {"fails": HookResult.fail("no"), "shouts": HookResult(decision="DENY"), "says nothing": None}
        for name, fail_closed, allowed in (("fails", False, False), ("shouts", False, True), ("shouts", True, False), ("says nothing", True, True)):
            manager = GeneralHookManager()
            with mock.patch("massgen.mcp_tools.hooks._register"):
                manager.register_global_hook(HookType.PRE_TOOL_USE, Own(name, fail_closed=fail_closed))
            result = asyncio.run(manager.execute_hooks(HookType.PRE_TOOL_USE, "Bash", "{}"))
            self.assertEqual((result.allowed, len(result.hook_errors)), (allowed, name == "shouts" and not fail_closed), name)

    def test_a_replaced_output_is_not_lost(self):
        seen = []
        result = self.ask({"updated_output": "***"}, "PostToolUse", then=lambda e: seen.append(e.tool_output))
        self.assertEqual((result.updated_output, seen, result.hook_errors), ("***", ["***"], []))
        result = self.ask(HookResult.stop("***", inject={"content": "why"}), "PostToolUse", then=lambda e: seen.append("asked after a stop"))
        self.assertEqual((result.updated_output, result.inject["content"], result.allowed, seen), ("***", "why", True, ["***"]))

    def test_what_has_no_place_is_named(self):
        for answer, dropped in (({"updated_output": "***"}, "updated_output"), (HookResult(effects=[{"set_flag": {}}]), "effects"), ({"value": {}}, "value")):
            result = self.ask(answer)
            self.assertEqual((result.allowed, result.hook_errors), (True, ["Hook h: execute_hooks drops %s, which it cannot apply at PreToolUse" % dropped]))
            self.assertFalse(self.ask(answer, fail_closed=True).allowed)
        result = self.ask({"injections": [{"content": "a"}, {"content": "b", "strategy": "user_message"}]})
        self.assertEqual((result.inject, result.hook_errors), ({"content": "a\nb", "strategy": "user_message"}, []))


if __name__ == "__main__":
    unittest.main()
