class EnrichingAgent(BaseAgent):
    def __init__(self):
        super().__init__(system_message="...")

        self.on(AgentEvent.AFTER_TOOL_EXECUTION).handle(
            decision=HookDecision.CONTINUE,
            value=self._enrich_result,
        )

    def _enrich_result(self, status, result: ToolResult) -> ToolResult:
        if result.tool_name == "fetch_data":
            # Add metadata
            result.result["enriched_at"] = datetime.now().isoformat()
            result.result["count"] = len(result.result.get("items", []))
        return result
