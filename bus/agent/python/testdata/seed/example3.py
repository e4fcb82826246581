class ContextAwareAgent(BaseAgent):
    def __init__(self):
        super().__init__(system_message="...")

        self.on(AgentEvent.BEFORE_LLM_CALL).handle(
            decision=HookDecision.CONTINUE,
            effects=[self._inject_current_context],
        )

    async def _inject_current_context(self, status) -> None:
        # Fetch real-time data
        timestamp = datetime.now().isoformat()
        stock_price = await self._fetch_stock_price()

        msg = SystemMessage(
            content=f"Current time: {timestamp}, Stock price: ${stock_price}"
        )
        status.agent.conversation_history.append(msg)

    async def _fetch_stock_price(self) -> float:
        # Connect to API or database
        ...
