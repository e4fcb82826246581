"""Policies as functions. python.yaml says when they are asked.

Each takes the event and returns None for no opinion, a HookResult, or a dict in
the form of a hook's JSON answer. An exception is an error of the hook, for which
its failure policy decides.
"""

import os.path
import re

from hookfabric import HookResult


def stay_in_workspace(event):
    """Agents write below the folder they run in, wherever .. leads."""
    workspace = os.path.normpath(event.cwd or "/")
    for name in "path", "file_path":  # tools differ in which one they read
        path = os.path.normpath(os.path.join(workspace, event.tool_input.get(name) or ""))
        if os.path.commonpath([workspace, path]) != workspace:
            return HookResult.deny(f"{path} is outside of {workspace}")
    return None


async def no_install_scripts(event):
    """Packages that an agent installs run nothing while they are installed."""
    command = event.tool_input.get("command", "")
    if re.match(r"npm (install|ci)\b", command) and "--ignore-scripts" not in command:
        return {"updated_input": {**event.tool_input, "command": command + " --ignore-scripts"}}
    return None
