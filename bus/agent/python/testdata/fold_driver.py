"""Judges what the tests in Go ask, and says what it comes to."""

import json
import sys

import hookfabric


def verdict(call):
    folded = {}
    for hook, outcome in zip(call["hooks"] or [], call["outcomes"] or []):
        folded = hookfabric._fold(call["event"], folded, hookfabric._settle(hook, outcome))
    return {"decision": "", **hookfabric._with_feedback(call["event"], folded)}


def left(case):
    history = [hookfabric.message(one) for one in case["messages"]]
    fault = hookfabric._effect_fault(case["effect"]) or hookfabric._apply_effect(case["effect"], history, {})
    return {"messages": [one.to_dict() for one in history], "fault": fault}


asked = json.load(sys.stdin)
if asked == "table":
    said = hookfabric._CONTRACT
elif "messages" in asked[0]:
    said = [left(case) for case in asked]
else:
    said = [verdict(call) for call in asked]
json.dump(said, sys.stdout)
