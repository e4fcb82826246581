"""Hooks of agent loops, as workers run them. hooks.yaml says when they are asked.

Effects are data: the agent's side applies them, wherever it runs.
"""

FORMAT = "Format your answer with <answer>...</answer> tags."
SCHEMA = "Tables: users (id, name), orders (id, user_id, total)"
CACHE = {"What is NATS?": "<answer>A message bus.</answer>"}


def append(text):
    return {"append_message": {"role": "system", "content": text}}


def demand_tags(event):
    """An answer without tags is no answer yet: the model is told, and asked again."""
    return {"decision": "retry", "reason": "the answer has no tags", "effects": [append(FORMAT)]}


def show_schema(event):
    """Whoever got a query wrong sees what there is."""
    return {"effects": [append("Database schema:\n" + SCHEMA)]}


async def tell_price(event):
    """The model knows what things cost now."""
    return {"effects": [append(f"Stock price: ${await price()}")]}


async def price():
    return 101.5


def from_cache(event):
    """What was answered before needs no model."""
    answer = CACHE.get(event.history[-1].content)
    return {"decision": "stop", "value": {"role": "assistant", "content": answer}} if answer else None


def enrich(event):
    """The result says how much of it there is."""
    output = event.tool_output
    return {"value": {**output, "source": "warehouse", "count": len(output["items"])}}
