#!/bin/sh
# A hook script as people have them in .claude/hooks, written for Claude Code.
payload=$(cat)
event=$(printf '%s' "$payload" | sed -n 's/.*"hook_event_name": *"\([^"]*\)".*/\1/p')
command=$(printf '%s' "$payload" | sed -n 's/.*"tool_input": *{[^}]*"command": *"\([^"]*\)".*/\1/p')
[ "$event" = PreToolUse ] || exit 0
case "$command" in
*"rm -rf"*)
	cat <<JSON
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
 "permissionDecisionReason": "destructive command in $CLAUDE_PROJECT_DIR: $command"}}
JSON
	;;
esac
exit 0
