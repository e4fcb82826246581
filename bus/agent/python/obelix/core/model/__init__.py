"""The messages of a conversation."""

from hookfabric import AssistantMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, ToolResult
from hookfabric import Response as AssistantResponse

__all__ = ["AssistantMessage", "AssistantResponse", "HumanMessage", "SystemMessage", "ToolCall", "ToolMessage", "ToolResult"]
