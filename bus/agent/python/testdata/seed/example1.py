from obelix.core.agent import BaseAgent
from obelix.core.agent.hooks import AgentEvent, HookDecision
from obelix.core.model.system_message import SystemMessage


class ValidatingAgent(BaseAgent):
    def __init__(self):
        super().__init__(system_message="...")

        self.on(AgentEvent.BEFORE_FINAL_RESPONSE).when(
            self._missing_answer_tag
        ).handle(
            decision=HookDecision.RETRY,
            effects=[self._inject_format_guidance],
        )

    def _missing_answer_tag(self, status) -> bool:
        content = status.assistant_message.content or ""
        return "<answer>" not in content

    def _inject_format_guidance(self, status) -> None:
        status.agent.conversation_history.append(
            SystemMessage(content="Format your answer with <answer>...</answer> tags.")
        )
