#!/usr/bin/env python3
"""A hook script as people have them in .claude/hooks, written for Claude Code."""
import json
import sys

data = json.load(sys.stdin)
if data.get("hook_event_name") == "PostToolUse":
    text = data["tool_response"].get("stdout", "")
    if "secret" in text:
        print(json.dumps({"decision": "block", "reason": "the output of " + data["tool_name"] + " holds a secret"}))
    sys.exit(0)
if "rm -rf" in data["tool_input"].get("command", ""):
    print("Blocked: dangerous rm command", file=sys.stderr)
    sys.exit(2)
sys.exit(0)
