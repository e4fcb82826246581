#!/bin/sh
# PreToolUse hook of Claude Code: ask a person before git push.

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
