// What OpenCode does with a plugin: it calls every export, and then the hooks that these return.
import { pathToFileURL } from "node:url";

const module = await import(pathToFileURL(process.env.PLUGIN));
// sessions are those that OpenCode tells of, and asked for how often it did. One that is a
// function answers by itself.
export const sessions = { ses_1: {}, ses_0: {} };
export const asked = {};
const client = {
  session: {
    get: async ({ path: { id } }) => {
      asked[id] = (asked[id] ?? 0) + 1;
      if (typeof sessions[id] === "function") return sessions[id]();
      return sessions[id] ? { data: { id, ...sessions[id] } } : { error: { name: "NotFoundError" } };
    },
  },
};
export async function make(client) {
  const made = await Promise.all(Object.values(module).map((plugin) => plugin({ client, directory: "/home/dev/project", worktree: "/" })));
  return Object.assign({}, ...made);
}
export const hooks = await make(client);

export const shim = (how) => (process.env[process.env.HOOKFABRIC_TEST_MODE] = how);

// before runs the hook before a tool, and returns what the tool would be called with.
export async function before(tool, args = { command: "rm -rf /", description: "clean up" }, sessionID = "ses_1", of = hooks) {
  const output = { args };
  await of["tool.execute.before"]({ tool, sessionID, callID: "call_1" }, output);
  return output.args;
}

export async function after(tool, output = { title: "t", output: "text", metadata: { output: "text", exit: 0 } }, sessionID = "ses_1") {
  await hooks["tool.execute.after"]({ tool, sessionID, callID: "call_1", args: { command: "ls" } }, output);
  return output;
}

export async function prompt(...texts) {
  const parts = texts.map((text, i) => ({ type: "text", text, id: "prt_" + i, messageID: "msg_1", sessionID: "ses_1" }));
  const output = { message: { id: "msg_1" }, parts: [...parts, { type: "file", url: "file:///a" }] };
  await hooks["chat.message"]({ sessionID: "ses_1", agent: "build" }, output);
  return output.parts;
}
