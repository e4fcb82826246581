"""Hooks of agent loops. steps.yaml says when they run.

The agent runs in another process. A hook changes it only with the values that it returns.
"""

import re

from hookfabric import append_message, handle, set_flag

PRICE = {"search": 5}
SCHEMA = "Tables: users (id, name), orders (id, total)"


def without_keys(event, result):
    """Return the value that the loop continues with: the result, without keys."""
    if isinstance(result.output, str):
        result.output = re.sub(r"AKIA[0-9A-Z]{16}", "[redacted]", result.output)
    return result


redact = handle(value=without_keys)


def counted(event):
    """Return an effect that sets a flag. The agent sends the flag with later events."""
    return set_flag(spent=event.flags.get("spent", 0) + PRICE[event.tool_name])


spend = handle(effects=[counted])

show_schema = handle(effects=[append_message("system", SCHEMA)])

# A condition in Python, for tests that `when` cannot express. It costs a request to a worker.
be_sure = handle(
    "retry",
    condition=lambda event: not re.search(r"\bsure\b", event.assistant_message.content),
    effects=[append_message("system", "Say how sure you are of your answer.")],
    reason="say how sure you are",
)
