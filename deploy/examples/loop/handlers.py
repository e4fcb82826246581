"""Hooks of agent loops that run on workers. hooks.yaml says when they run.

Effects are data. The agent's process applies them.
"""

FORMAT = "Format your answer with <answer>...</answer> tags."
SCHEMA = "Tables: users (id, name), orders (id, user_id, total)"
CACHE = {"What is NATS?": "<answer>A message bus.</answer>"}


def append(text):
    return {"append_message": {"role": "system", "content": text}}


def demand_tags(event):
    """The answer has no tags: tell the model, and let it answer again."""
    return {"decision": "retry", "reason": "the answer has no tags", "effects": [append(FORMAT)]}


def show_schema(event):
    """After a wrong query, the model reads the schema."""
    return {"effects": [append("Database schema:\n" + SCHEMA)]}


async def tell_price(event):
    """Before each call, the model reads the current price."""
    return {"effects": [append(f"Stock price: ${await price()}")]}


async def price():
    return 101.5


def from_cache(event):
    """An answer from the cache needs no model call."""
    answer = CACHE.get(event.history[-1].content)
    return {"decision": "stop", "value": {"role": "assistant", "content": answer}} if answer else None


def enrich(event):
    """Add the source and the number of items to the result."""
    output = event.tool_output
    return {"value": {**output, "source": "warehouse", "count": len(output["items"])}}
