class CachedAgent(BaseAgent):
    def __init__(self):
        super().__init__(system_message="...")
        self._cache = {}

        self.on(AgentEvent.BEFORE_LLM_CALL).when(
            self._cache_hit
        ).handle(
            decision=HookDecision.STOP,
            value=self._get_cached_response,
        )

    def _cache_hit(self, status) -> bool:
        query = status.agent.conversation_history[-1].content
        return query in self._cache

    def _get_cached_response(self, status):
        query = status.agent.conversation_history[-1].content
        cached_text = self._cache[query]
        return AssistantMessage(content=cached_text)
