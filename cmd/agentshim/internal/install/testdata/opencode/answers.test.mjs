import assert from "node:assert/strict";
import { test } from "node:test";
import { after, asked, before, hooks, prompt, sessions, shim } from "./world.mjs";

shim("crash"); // the daemon answers

test("a call of no interest runs as it is", async () => {
  assert.deepEqual(await before("bash"), { command: "rm -rf /", description: "clean up" });
  assert.deepEqual(await after("bash"), { title: "t", output: "text", metadata: { output: "text", exit: 0 } });
});

test("a denied call throws the reason", async () => {
  await assert.rejects(before("denied"), { message: "not this one" });
});

test("a call that a person must approve is denied, since nobody can be asked", async () => {
  await assert.rejects(before("asked"), /a person must approve this call/);
});

test("a rewrite is all the arguments, in the object that OpenCode holds", async () => {
  const args = { command: "rm -rf /", description: "clean up" };
  assert.equal(await before("rewritten", args), args);
  assert.deepEqual(Object.keys(args), ["command", "__proto__"]);
  assert.equal(args.command, "ls");
  assert.equal(Object.getPrototypeOf(args), Object.prototype);
});

test("what is told stands below the output", async () => {
  const { output } = await after("told");
  assert.match(output, /^text\n\none\n[^]*PostToolUse of "told" in session "ses_1" at "\/home\/dev\/project" by "call_1"/);
  assert.match(output, /\{"command":"ls"\} \{.*"exit":0/);
});

test("what is told is a block of its own in an MCP tool's output", async () => {
  const { content } = await after("told", { content: [{ type: "text", text: "Echo: hello" }] });
  assert.equal(content.length, 2);
  assert.deepEqual(content[0], { type: "text", text: "Echo: hello" });
  assert.match(content[1].text, /^one\n/);
});

test("a replaced output is read nowhere any more", async () => {
  const bash = await after("replaced");
  assert.deepEqual(bash, { title: "t", output: "[redacted]\n\none", metadata: { output: "[redacted]", exit: 0 } });
  const mcp = await after("replaced", { content: [{ type: "text", text: "password" }], structuredContent: { password: 1 } });
  assert.deepEqual(mcp, { content: [{ type: "text", text: "[redacted]" }, { type: "text", text: "one" }] });
});

test("an object replaces the members that it has", async () => {
  assert.deepEqual(await after("patched"), { title: "new", output: "text", metadata: { output: "text", exit: 0 } });
});

test("objections to a result stand below it", async () => {
  assert.equal((await after("denied")).output.includes("not this one"), true);
});

test("a tool without an output is none of ours", async () => {
  assert.equal(await after("told", undefined) === undefined, false);
  await hooks["tool.execute.after"]({ tool: "told", sessionID: "ses_1", callID: "c" }, undefined);
});

test("a prompt is refused, or told something", async () => {
  await assert.rejects(prompt("denied"), { message: "not this one" });
  assert.equal((await prompt("hello"))[0].text, "hello");
  const parts = await prompt("to", "ld");
  assert.deepEqual(parts.map((part) => part.type), ["text", "text", "file"]);
  assert.equal(parts[0].text, "to");
  assert.match(parts[1].text, /^ld\n\none\n/);
});

test("a subagent's calls say so, and events are passed on", async () => {
  const event = (type, properties) => hooks.event({ event: { type, properties } });
  await event("session.created", { sessionID: "ses_1", info: { id: "ses_1", version: "1.18.33", parentID: "ses_0" } });
  assert.match((await after("told")).output, /in session "ses_0" .*1\.18\.33/);
  await event("session.idle", { sessionID: "ses_1" });
  await event("message.updated", {});
  await event("session.deleted", { info: { id: "ses_1" } });
});

test("a subagent that is older than the plugin belongs to the user's session, too", async () => {
  Object.assign(sessions, { ses_old: { parentID: "ses_between" }, ses_between: { parentID: "ses_user" }, ses_user: {} });
  const told = async (id) => (await after("told", undefined, id)).output;
  assert.match(await told("ses_old"), /in session "ses_user" .*subagent:ses_old/);
  assert.match(await told("ses_between"), /in session "ses_user" .*subagent:ses_between/);
  assert.match(await told("ses_user"), /in session "ses_user" /);
  assert.deepEqual([asked.ses_old, asked.ses_between, asked.ses_user], [1, 1, 1]);
});
