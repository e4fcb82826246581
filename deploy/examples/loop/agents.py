"""Five agents with one hook each. The hook runs in the agent's process or, with --fabric, on the
workers that hooks.yaml selects. hookfabric.py is bus/agent/python/hookfabric.py. The script needs a daemon
(`agentshim serve`), or agentshim on the PATH, which writes the requests for the model's API.

    PYTHONPATH=bus/agent/python python3 deploy/examples/loop/agents.py validating \\
        --format anthropic --url http://127.0.0.1:PORT "What is 6 times 7?"
"""

import argparse

import hookfabric
from hookfabric import AgentEvent, AssistantMessage, HookDecision, HTTPModel, SystemMessage

SCHEMA = "Tables: users (id, name), orders (id, user_id, total)"
CACHE = {"What is NATS?": "<answer>A message bus.</answer>"}


def query_db(sql: str) -> str:
    """Ask the database."""
    if "FROM users" not in sql:
        raise ValueError("database error: no such table")
    return "2 rows"


def fetch_data() -> dict:
    """Return all items."""
    return {"items": ["a", "b", "c"]}


def say(agent: hookfabric.Agent, text: str) -> None:
    agent.conversation_history.append(SystemMessage(content=text))


def validating(agent: hookfabric.Agent) -> None:
    """Output validation: if the answer has no tags, the model answers again."""
    agent.on(AgentEvent.BEFORE_FINAL_RESPONSE).when(
        lambda status: "<answer>" not in (status.assistant_message.content or "")
    ).handle(
        decision=HookDecision.RETRY,
        effects=[lambda status: say(status.agent, "Format your answer with <answer>...</answer> tags.")],
    )


def robust(agent: hookfabric.Agent) -> None:
    """Error recovery: after an error of the database, the model reads its schema."""
    agent.on(AgentEvent.ON_TOOL_ERROR).when(
        lambda status: "database" in (status.error or "").lower()
    ).handle(
        decision=HookDecision.CONTINUE,
        effects=[lambda status: say(status.agent, f"Database schema:\n{SCHEMA}")],
    )


def contextual(agent: hookfabric.Agent) -> None:
    """Context injection: before each call, the model reads the current price."""

    async def price() -> float:
        return 101.5

    async def inject(status: hookfabric.AgentStatus) -> None:
        say(status.agent, f"Stock price: ${await price()}")

    agent.on(AgentEvent.BEFORE_LLM_CALL).handle(decision=HookDecision.CONTINUE, effects=[inject])


def cached(agent: hookfabric.Agent) -> None:
    """Early exit: an answer from the cache needs no model call."""

    def question(status: hookfabric.AgentStatus) -> str:
        return status.agent.conversation_history[-1].content

    agent.on(AgentEvent.BEFORE_LLM_CALL).when(lambda status: question(status) in CACHE).handle(
        decision=HookDecision.STOP,
        value=lambda status, _: AssistantMessage(content=CACHE[question(status)]),
    )


def enriching(agent: hookfabric.Agent) -> None:
    """Result enrichment: a result gets its source and the number of its items."""

    def enrich(status: hookfabric.AgentStatus, result: hookfabric.ToolResult) -> hookfabric.ToolResult:
        if result.tool_name == "fetch_data":
            result.result["source"] = "warehouse"
            result.result["count"] = len(result.result.get("items", []))
        return result

    agent.on(AgentEvent.AFTER_TOOL_EXECUTION).handle(decision=HookDecision.CONTINUE, value=enrich)


EXAMPLES = {f.__name__: f for f in (validating, robust, contextual, cached, enriching)}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("example", choices=EXAMPLES)
    p.add_argument("query")
    p.add_argument("--format", default="anthropic", help="the API of the model (default: anthropic)")
    p.add_argument("--url", help="the URL of the API")
    p.add_argument("--model", default="scripted", help="the name of the model (default: scripted)")
    p.add_argument("--key-file", help="the file with the key of the API")
    p.add_argument("--fabric", action="store_true", help="run the hooks of hooks.yaml in the fabric instead of those in this file")
    a = p.parse_args()
    client = hookfabric.Client(agent=a.example)
    agent = hookfabric.Agent(
        a.example, client=client if a.fabric else None, system="You are helpful.", tools=[query_db, fetch_data],
        model=HTTPModel(a.format, model=a.model, url=a.url, key_file=a.key_file, client=client),
    )
    if not a.fabric:
        EXAMPLES[a.example](agent)
    response = agent.run(a.query)
    for error in response.hook_errors:
        raise SystemExit(f"a hook failed: {error}")
    print(response)


if __name__ == "__main__":
    main()
