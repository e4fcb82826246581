"""The same hook as a program: a process per call."""
import json
import sys

event = json.load(sys.stdin)
if "rm -rf" in event["tool_input"].get("command", ""):
    print(json.dumps({"decision": "deny", "reason": "destructive"}))
