// An agent that is written with the Claude Agent SDK.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { claudeHooks } from "../hookfabric.mjs";

const sdk = createRequire(join(process.env.SDK, "package.json")).resolve("@anthropic-ai/claude-agent-sdk");
const { query } = await import(pathToFileURL(sdk));

let mine = 0;
const existing = { PreToolUse: [{ hooks: [async () => (mine++, {})] }] };
const { SDK, MODEL, HOME, PATH } = process.env;
const env = { HOME, PATH, ANTHROPIC_BASE_URL: MODEL, ANTHROPIC_API_KEY: "none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1", DISABLE_ERROR_REPORTING: "1", HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1" };
const options = { cwd: HOME, env, model: "claude-sonnet-4-5", maxTurns: 3, allowedTools: ["Bash"], hooks: claudeHooks({ existing, agent: "agent1", timeoutMs: 20_000 }) };

for await (const message of query({ prompt: "do it", options })) console.log(JSON.stringify(message));
console.log(`hooks of the agent's own: ${mine}`);
