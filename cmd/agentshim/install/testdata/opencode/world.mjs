// What OpenCode does with a plugin: it calls every export, and then the hooks that these return.
import { pathToFileURL } from "node:url";

const module = await import(pathToFileURL(process.env.PLUGIN));
const made = await Promise.all(Object.values(module).map((plugin) => plugin({ directory: "/home/dev/project", worktree: "/" })));
export const hooks = Object.assign({}, ...made);

export const shim = (how) => (process.env[process.env.HOOKFABRIC_TEST_MODE] = how);

// before runs the hook before a tool, and returns what the tool would be called with.
export async function before(tool, args = { command: "rm -rf /", description: "clean up" }) {
  const output = { args };
  await hooks["tool.execute.before"]({ tool, sessionID: "ses_1", callID: "call_1" }, output);
  return output.args;
}

export async function after(tool, output = { title: "t", output: "text", metadata: { output: "text", exit: 0 } }) {
  await hooks["tool.execute.after"]({ tool, sessionID: "ses_1", callID: "call_1", args: { command: "ls" } }, output);
  return output;
}

export async function prompt(...texts) {
  const parts = texts.map((text, i) => ({ type: "text", text, id: "prt_" + i, messageID: "msg_1", sessionID: "ses_1" }));
  const output = { message: { id: "msg_1" }, parts: [...parts, { type: "file", url: "file:///a" }] };
  await hooks["chat.message"]({ sessionID: "ses_1", agent: "build" }, output);
  return output.parts;
}
