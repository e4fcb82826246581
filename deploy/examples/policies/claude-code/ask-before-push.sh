#!/bin/sh
# PreToolUse hook of Claude Code: have a person agree to pushes.

if grep -Eq '"command" *: *"[^"]*git +push'; then
	cat <<-'JSON'
	{
	  "hookSpecificOutput": {
	    "hookEventName": "PreToolUse",
	    "permissionDecision": "ask",
	    "permissionDecisionReason": "Pushing needs a person's consent"
	  }
	}
	JSON
fi
