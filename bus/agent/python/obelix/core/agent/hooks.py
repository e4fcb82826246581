"""The words of Obelix's hooks."""

from hookfabric import AgentEvent, AgentStatus, Hook, HookDecision

__all__ = ["AgentEvent", "AgentStatus", "Hook", "HookDecision"]
