from hookfabric import HumanMessage

__all__ = ["HumanMessage"]
