class RobustAgent(BaseAgent):
    def __init__(self):
        super().__init__(system_message="...")

        self.on(AgentEvent.ON_TOOL_ERROR).when(
            lambda s: "database" in (s.error or "").lower()
        ).handle(
            decision=HookDecision.CONTINUE,
            effects=[self._inject_schema],
        )

    def _inject_schema(self, status) -> None:
        schema = "Tables: users (id, name), orders (id, user_id, total)"
        status.agent.conversation_history.append(
            SystemMessage(content=f"Database schema:\n{schema}")
        )
