from hookfabric import AssistantMessage
from hookfabric import Response as AssistantResponse

__all__ = ["AssistantMessage", "AssistantResponse"]
