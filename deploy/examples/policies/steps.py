"""Hooks of agent loops. steps.yaml says when they are asked.

The agent is elsewhere: what a hook returns changes it, nothing else does.
"""

import re

from hookfabric import append_message, handle, set_flag

PRICE = {"search": 5}
SCHEMA = "Tables: users (id, name), orders (id, total)"


def without_keys(event, result):
    """The value: what flows through the loop, changed or as it is."""
    if isinstance(result.output, str):
        result.output = re.sub(r"AKIA[0-9A-Z]{16}", "[redacted]", result.output)
    return result


redact = handle(value=without_keys)


def counted(event):
    """An effect: the flag comes along with later events."""
    return set_flag(spent=event.flags.get("spent", 0) + PRICE[event.tool_name])


spend = handle(effects=[counted])

show_schema = handle(effects=[append_message("system", SCHEMA)])

# A condition of the function's own, which no `when` can say: it costs what asking the hook costs.
be_sure = handle(
    "retry",
    condition=lambda event: not re.search(r"\bsure\b", event.assistant_message.content),
    effects=[append_message("system", "Say how sure you are of your answer.")],
    reason="say how sure you are",
)
