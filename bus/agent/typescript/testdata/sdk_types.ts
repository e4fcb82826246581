// What users write, as the compiler sees it with the SDK's own types.
import type { HookCallbackMatcher, HookEvent, HookInput, HookJSONOutput, Options } from "@anthropic-ai/claude-agent-sdk";
import { claudeHooks, EVENTS } from "./hookfabric.js";

const mine: Partial<Record<HookEvent, HookCallbackMatcher[]>> = {
  PreToolUse: [{ matcher: "Bash", hooks: [async (input: HookInput): Promise<HookJSONOutput> => ({ continue: input.hook_event_name !== "Stop" })] }],
};

export const options: Options = { hooks: claudeHooks({ existing: mine, agent: "agent1" }) };
export const again: Options = { hooks: claudeHooks({ existing: options.hooks }) };
export const events: readonly HookEvent[] = EVENTS;
