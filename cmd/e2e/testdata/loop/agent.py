"""An agent in Python whose model follows a script; all that it asks is real.

    agent.py [PID]    ends that process, its daemon, in the midst of the query
"""

import json
import os
import signal
import subprocess
import sys

import hookfabric
from hookfabric import AgentEvent, AssistantMessage, QueryFailed, ToolCall

NEWS = "news of a colleague"
calls, ends, ran = [], [], []


def model(conversation):
    calls.append(conversation)
    saw = "\n".join(str(message.content) for message in conversation.messages)
    if len(calls) == 1:  # with one id for all, as bad models have it
        return AssistantMessage("", [ToolCall("same", "look", {"at": at}) for at in ("door", "secret", "door")])
    if "Use tags." not in saw:
        if len(sys.argv) > 1:
            os.kill(int(sys.argv[1]), signal.SIGKILL)
        return "42"
    if NEWS not in saw:  # it comes when the answer is there already
        subprocess.run(["broker", "inject", "--agent", "looper", NEWS], check=True, stdout=subprocess.DEVNULL)
        return "<answer>42</answer>"
    return "<answer>43</answer>"


def look(at: str) -> str:
    ran.append(at)
    return f"a {at}"


fabric = hookfabric.Client()
agent = hookfabric.Agent("looper", model=model, client=fabric, tools=[look])
agent.on(AgentEvent.QUERY_END).handle(value=lambda status, response: ends.append(response.status) or response)
try:
    response = agent.run("What is 6 times 7?")
except QueryFailed as failed:
    response = failed.response
said = [str(message.content) for message in agent.conversation_history]
print(json.dumps({"status": response.status, "content": response.content, "error": response.error, "errors": response.hook_errors, "calls": len(calls),
                  "ends": ends, "ran": sorted(ran), "news": sum(NEWS in one for one in said), "counted": sum("counted" in one for one in said)}))
