from hookfabric import SystemMessage

__all__ = ["SystemMessage"]
