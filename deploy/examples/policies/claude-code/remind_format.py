#!/usr/bin/env python3
"""PostToolUse hook of Claude Code: remind the agent to run gofmt after it changed a Go file."""
import json
import sys

data = json.load(sys.stdin)
path = data["tool_input"].get("file_path", "")

if data["hook_event_name"] == "PostToolUse" and path.endswith(".go"):
    print(json.dumps({
        "hookSpecificOutput": {
            "hookEventName": "PostToolUse",
            "additionalContext": f"Run gofmt on {path} before you go on.",
        }
    }))
