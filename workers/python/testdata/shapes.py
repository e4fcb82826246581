"""Tells what a hook sees of its event."""
import datetime
import json

from hookfabric import HookEvent, HookType

NAMES = """hook_type event_id session_id orchestrator_id agent_id runtime tool_name tool_kind tool_args tool_input tool_output
tool_use_id error message prompt response iteration history_ref cwd labels native""".split()


def attributes(event):
    return {"updated_input": dict({name: getattr(event, name) for name in NAMES}, timestamp=repr(event.timestamp))}


def mapping(event):
    assert isinstance(event, HookEvent)
    assert event["tool_name"] == event.get("tool_name") == event.tool_name
    assert "tool_name" in event and "no_such_field" not in event
    assert event.get("no_such_field", 5) == 5
    assert dict(event) == event.to_dict() == {**event} == event
    assert HookEvent.from_json(event.to_json()) == event
    assert HookEvent.from_dict(event.to_dict()) == event
    assert event.hook_type == HookType.PRE_TOOL_USE == "PreToolUse"
    assert event.timestamp is None or isinstance(event.timestamp, datetime.datetime)
    try:
        event["no_such_field"]
    except KeyError:
        return {"updated_input": json.loads(event.to_json())}


def made_by_hand(event):
    made = HookEvent("PreToolUse", "s", "o", "a", datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), "Write", {"x": 1})
    assert made.to_dict()["timestamp"] == "2026-01-02T00:00:00+00:00", made
    assert made.timestamp.year == 2026
    assert HookEvent().tool_input == {} and HookEvent().labels == {} and HookEvent().native is None
    assert HookEvent(HookType.POST_TOOL_USE).hook_type == "PostToolUse"
    return {"updated_input": {"tool": made.tool_name}}


def place(event):
    return {"decision": "deny", "reason": "%s %s" % (event.traceparent, event.tracestate)}
