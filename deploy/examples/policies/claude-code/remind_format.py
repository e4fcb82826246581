#!/usr/bin/env python3
"""PostToolUse hook of Claude Code: remind of the formatter after a Go file changed."""
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
