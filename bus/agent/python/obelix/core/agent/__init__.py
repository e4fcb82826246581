"""Obelix's agent. hookfabric.Agent runs it."""

from typing import Any, Callable, Optional

import hookfabric

__all__ = ["BaseAgent"]


class BaseAgent(hookfabric.Agent):
    """An agent with Obelix's constructor. provider is the model of hookfabric.Agent; it may be set later. client asks the fabric at
    each event (default: None, in-process hooks only)."""

    def __init__(self, system_message: str = "", provider: Optional[Callable[..., Any]] = None, max_iterations: int = 15,
                 tools: Any = None, *, client: Optional[hookfabric.Client] = None, **more: Any) -> None:
        if more:
            raise TypeError(f"the stand-in for Obelix's BaseAgent has no {', '.join(sorted(more))}; install Obelix to use it")
        tools = () if tools is None else tools if isinstance(tools, (list, tuple)) else (tools,)
        super().__init__(type(self).__name__, model=provider, system=system_message, client=client, max_iterations=max_iterations, tools=tools)

    @property
    def provider(self) -> Optional[Callable[..., Any]]:
        return self.model

    @provider.setter
    def provider(self, provider: Optional[Callable[..., Any]]) -> None:
        self.model = provider

    def register_tool(self, tool: Any) -> None:
        self._add_tool(tool if isinstance(tool, hookfabric.Tool) else hookfabric.Tool.of(tool))

    def execute_query(self, query: str) -> hookfabric.Response:
        """Run a query and return the response. Raises hookfabric.QueryFailed if it ends without an answer."""
        return self.run(query)

    async def execute_query_async(self, query: str) -> hookfabric.Response:
        return await self.arun(query)
