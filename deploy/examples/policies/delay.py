"""Slows an agent down for debugging. injection-delay.yaml says which one."""

import collections
import os
import time

calls = collections.Counter()


def after_n_tools(event):
    """Hold results back from the call on that comes after the first n."""
    agent = event.session_id, event.agent_id
    calls[agent] += 1
    if calls[agent] <= int(os.environ.get("DELAY_AFTER_N_TOOLS", "3")):
        return None
    seconds = float(os.environ.get("DELAY_SECONDS", "30"))
    time.sleep(seconds)
    note = f"[debug] this result of call {calls[agent]} was held back for {seconds:g} s"
    return {"inject": {"content": note, "strategy": "tool_result"}}
