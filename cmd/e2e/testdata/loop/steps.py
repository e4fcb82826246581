"""What the fabric's hooks say to the agent of agent.py."""


def guard(event):
    return {"decision": "deny", "reason": "that is secret"} if event.tool_input["at"] == "secret" else None


def counted(event):
    return {"value": f"counted {event.tool_output}"}


def demand_tags(event):
    return {"decision": "retry", "effects": [{"append_message": {"content": "Use tags."}}]}
