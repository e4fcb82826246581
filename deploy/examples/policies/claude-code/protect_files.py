#!/usr/bin/env python3
"""PreToolUse hook of Claude Code: deny edits of protected files."""
import json
import os
import sys

PROTECTED = (".env", "package-lock.json", "go.sum", ".git/")

data = json.load(sys.stdin)
path = data.get("tool_input", {}).get("file_path", "")

if any(p in path if p.endswith("/") else os.path.basename(path) == p for p in PROTECTED):
    print(f"Blocked: {path} is protected", file=sys.stderr)
    sys.exit(2)
