"""Hooks that misbehave in what is not their answer."""
import asyncio
import atexit
import os
import subprocess
import sys
import threading
import time

from hookfabric import HookResult

kept = []


def told(event):
    """Does what the tool's name says, as one hook for both calls."""
    return actions[event.tool_name](event)


async def told_later(event):
    answer = actions[event.tool_name](event)
    return await answer if hasattr(answer, "__await__") else answer


def answers(event):
    return {"reason": str(os.getpid())}


def hold():
    """Holds the pipe LIFE as long as this process, or one it starts, lives."""
    life = open(os.environ["LIFE"], "w")
    os.set_inheritable(life.fileno(), True)
    kept.append(life)
    life.write("x")
    life.flush()
    return life


def hangs(event):
    hold()
    while True:
        time.sleep(60)


async def sleeps(event):
    hold()
    await asyncio.Event().wait()


async def stubborn(event):
    hold()
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass


async def waits(event):
    """Answers when it can read the pipe GATE, which blocks nobody."""
    await asyncio.get_running_loop().run_in_executor(None, lambda: open(os.environ["GATE"]).read())
    return answers(event)


async def threads(event):
    """Is cancelled, while a thread that it has started goes on."""
    hold()
    await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)


meeting = []


async def meets(event):
    """Answers when sixteen calls are in it at once."""
    mine = asyncio.get_running_loop().create_future()
    meeting.append(mine)
    if len(meeting) == 16:
        for other in meeting:
            other.set_result(None)
    await mine
    return answers(event)


async def blocks(event):
    hold()
    time.sleep(60)


def prints(event):
    print("printed")
    os.write(1, b"to one\n")
    os.write(2, b"to two\n")
    sys.stderr.write("to stderr\n")
    subprocess.run(["echo", "by a child"])
    return {"reason": repr(sys.stdin.read())}


def floods(event):
    for _ in range(64):
        os.write(1, b"x" * (1 << 16))
    return answers(event)


def closes(event):
    sys.stdout.close()
    os.close(1)
    os.close(2)
    return answers(event)


def junk(event):
    os.write(4, b"this is no frame at all, and long enough to be told from one")
    return answers(event)


def junk_json(event):
    os.write(4, b"\x00\x00\x00\x02\x00\x00\x00\x01[]")
    return answers(event)


def unasked(event):
    os.write(4, b"\x00\x00\x00\x02\x00\x00\xff\xff{}")
    return answers(event)


def hangs_up(event):
    os.close(4)
    time.sleep(60)


def forks(event):
    """The child comes back from the hook as its parent does."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return {"reason": str(os.getpid())}


def forks_twice(event):
    """Tells whether a child of a child has the files that the child has opened."""
    reads, writes = os.pipe()
    if os.fork() == 0:
        opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]
        if os.fork() == 0:
            try:
                os.write(writes, str(len([os.fstat(each) for each in opened])).encode())
            finally:
                os._exit(0)
        os._exit(0)
    os.close(writes)
    os.wait()
    return {"reason": open(reads).read()}


def leaves(event):
    """Leaves a thread, a child and something for the end of the process behind."""
    hold()
    threading.Thread(target=threading.Event().wait).start()
    atexit.register(time.sleep, 60)
    if os.fork() == 0:
        while True:
            time.sleep(60)
    return answers(event)


def hoards(event):
    kept.append(bytearray(512 << 20))
    return answers(event)


actions = {name: value for name, value in list(globals().items()) if callable(value)}
