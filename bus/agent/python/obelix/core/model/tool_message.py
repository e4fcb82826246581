from hookfabric import ToolCall, ToolMessage, ToolResult

__all__ = ["ToolCall", "ToolMessage", "ToolResult"]
