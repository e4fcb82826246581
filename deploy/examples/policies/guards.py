"""Policies as functions. python.yaml says when they run.

Each function takes the event. It returns None for no opinion, a HookResult, or a dict in the form
of a hook's JSON answer. If it raises an exception, the hook fails, and its failure policy decides.
"""

import os.path
import re

from hookfabric import HookResult


def stay_in_workspace(event):
    """Agents may write only below their working directory, with .. resolved."""
    workspace = os.path.normpath(event.cwd or "/")
    for name in "path", "file_path":  # tools use one or the other
        path = os.path.normpath(os.path.join(workspace, event.tool_input.get(name) or ""))
        if os.path.commonpath([workspace, path]) != workspace:
            return HookResult.deny(f"{path} is outside of {workspace}")
    return None


async def no_install_scripts(event):
    """npm runs no scripts of the packages that an agent installs."""
    command = event.tool_input.get("command", "")
    if re.match(r"npm (install|ci)\b", command) and "--ignore-scripts" not in command:
        return {"updated_input": {**event.tool_input, "command": command + " --ignore-scripts"}}
    return None
