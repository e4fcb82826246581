"""What runnertest asks of every runner's hooks."""
import os
import subprocess

from hookfabric import HookResult


def answers(event):
    return HookResult.allow()


def refuses(event):
    return HookResult.deny("not on my watch")


async def rewrites(event):
    return {"updated_input": {"command": "true"}}


def echoes(event):
    return {"inject": {"content": event.tool_name, "strategy": "user_message"}}


async def echoes_later(event):
    import asyncio

    await asyncio.sleep(0)
    return echoes(event)


def crashes(event):
    os.kill(os.getpid(), 11)


def floods(event):
    return {"reason": "x" * (1 << 20)}


def junk(event):
    return "all is well"


def unknown(event):
    return {"desicion": "deny", "reason": "a word that nothing knows"}


def hangs(event):
    """Holds the pipe LIFE with a child, until somebody ends both."""
    with open(os.environ["LIFE"], "w") as life:
        child = subprocess.Popen(["tail", "-f", "/dev/null"], pass_fds=[life.fileno()])
        life.write("x")
        life.flush()
        child.wait()
