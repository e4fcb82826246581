import assert from "node:assert/strict";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const env = process.env;
const shim = (how) => (env[env.HOOKFABRIC_TEST_MODE] = how);

// suite tests one form of the file.
export function suite({ Client, claudeHooks, EVENTS }) {
  asking(Client);
  finding(Client);
  hooking(claudeHooks, EVENTS);
}

function asking(Client) {
  const ask = (tool, options) => new Client({ agent: "agent1" }).ask({ hook_type: "PreToolUse", tool_name: tool }, options);

  test("the daemon judges", async () => {
    assert.deepEqual(await ask("Bash", { render: "anthropic" }), { by: "daemon", decision: "continue", path: "/v1/events/PreToolUse?unreachable=deny&render=anthropic" });
    await assert.rejects(ask("Bash", { render: "pascal" }), /openai-structured/);
    await assert.rejects(new Client().ask({ tool_name: "Bash" }), /hook_type/);
  });

  test("what was handed over is said", async () => {
    await new Client({ agent: "agent1" }).ack("e1", undefined, "e2");
    await assert.rejects(new Client().ack("e1"), /ack needs the agent's id/);
  });

  test("the mode and a new start are said", async () => {
    const agent = new Client({ agent: "agent1" });
    assert.equal(await agent.mode(), false);
    await agent.mode(true);
    await agent.checkpoint();
    await assert.rejects(new Client().mode(), /the call needs the agent's id/);
    await assert.rejects(new Client().checkpoint(), /the call needs the agent's id/);
  });

  test("the shim judges where the daemon fails", async () => {
    shim("echo");
    for (const tool of ["broken", "junk", "list", "quiet", "{}", '{"decision":"maybe"}']) {
      const said = await ask(tool);
      assert.equal(said.by, "shim");
      const id = readFileSync(join(env.HOOKFABRIC_STATE, "asked-id"), "utf8");
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      assert.deepEqual(said.args.slice(0, 7), ["hook", "--runtime", "generic", "--event", "PreToolUse", "--event-id", id]);
      assert.deepEqual(said.args.slice(-4), ["--unreachable", "deny", "--agent", "agent1"]);
      assert.equal(JSON.parse(said.payload).tool_name, tool);
      assert.ok(!said.environ.some((v) => v.includes("hunter2")), "a secret of the agent reaches the shim");
    }
  });

  test("the shim judges where the daemon hangs", async () => {
    shim("echo");
    const all = await Promise.all(["hang", "drip"].map((tool) => ask(tool, { timeoutMs: 10_000 })));
    assert.deepEqual(all.map((said) => said.by), ["shim", "shim"]);
  });

  test("where nobody judges it is a no", async () => {
    for (const how of ["crash", "junk", "deny", "hang"]) {
      shim(how);
      const verdict = await ask("broken", { timeoutMs: 1_000 });
      assert.equal(verdict.decision, "deny");
      assert.match(verdict.reason, /no broker judged/);
    }
    shim("crash");
    assert.equal((await new Client().ask({ hook_type: "BEFORE_TOOL_EXECUTION", tool_name: "broken" }, { timeoutMs: 1_000 })).decision, "deny");
  });

  test("where nobody judges it may be a yes, and what ran is not refused", async () => {
    shim("crash");
    const verdict = await new Client({ unreachable: "allow" }).ask({ hook_type: "PreToolUse", tool_name: "broken" });
    assert.equal(verdict.decision, "continue");
    assert.equal(verdict.hook_errors.length, 1);
    assert.equal((await new Client().ask({ hook_type: "PostToolUse", tool_name: "broken" })).decision, "continue");
    assert.throws(() => new Client({ unreachable: "maybe" }), RangeError);
  });
}

function finding(Client) {
  const card = JSON.parse(readFileSync(join(env.HOOKFABRIC_STATE, "daemon.json"), "utf8"));
  const token_file = join(env.HOOKFABRIC_STATE, "daemon.token");
  const file = (content, mode = 0o600) => {
    const path = join(env.HOOKFABRIC_TEST_DIR, "daemon.json");
    writeFileSync(path, JSON.stringify(content));
    chmodSync(path, mode);
    return path;
  };
  const said = (options) => {
    shim("crash");
    return new Client(options).ask({ hook_type: "PreToolUse", tool_name: "Bash" });
  };

  test("the daemon is found by its URL and by its file", async () => {
    assert.equal((await said({ daemon: card.url })).by, "daemon");
    assert.equal((await said({ daemon: file({ ...card, token_file }) })).by, "daemon");
  });

  test("no file that others can write names a daemon", async () => {
    assert.equal((await said({ daemon: file({ ...card, token_file }, 0o622) })).decision, "deny");
  });

  test("a daemon is on this machine, and knows the token", async () => {
    for (const url of ["http://192.0.2.1:80", "https://127.0.0.1:1", "http://127.0.0.1.example.com:1", "http://127.0.0.1:99999", ""]) {
      assert.equal((await said({ daemon: file({ url, token_file }) })).decision, "deny", url);
    }
    assert.equal((await said({ daemon: file({ ...card, token_file: file({}) }) })).decision, "deny");
  });

  test("no daemon and no shim is a no", async () => {
    const verdict = await said({ daemon: "/nonexistent/daemon.json", agentshim: "absent-program" });
    assert.equal(verdict.decision, "deny");
    assert.match(verdict.reason, /absent-program/);
  });
}

function hooking(claudeHooks, EVENTS) {
  const call = (event, input, options = {}, signal = new AbortController().signal) =>
    claudeHooks(options)[event].at(-1).hooks[0](input, "toolu_1", { signal });

  test("hooks that are there are kept and come first", () => {
    const theirs = { matcher: "Bash", hooks: [async () => ({})] };
    const existing = { PreToolUse: [theirs], PreCompact: [theirs], Setup: undefined };
    const hooks = claudeHooks({ existing, timeoutMs: 1_500 });
    assert.equal(hooks.PreToolUse[0], theirs);
    assert.equal(hooks.PreToolUse.length, 2);
    assert.equal(hooks.PreToolUse[1].timeout, 1.5);
    assert.deepEqual(hooks.PreCompact, [theirs]);
    assert.deepEqual(existing.PreToolUse, [theirs]);
    assert.deepEqual(claudeHooks({ existing: hooks }), hooks, "they are added twice");
    for (const event of EVENTS) assert.equal(typeof hooks[event].at(-1).hooks[0], "function");
    assert.deepEqual(Object.keys(claudeHooks({ events: ["Stop"] })), ["Stop"]);
    assert.throws(() => claudeHooks({ timeoutMs: 0 }), RangeError);
  });

  test("the daemon's answer is given", async () => {
    const answer = { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: "no" } };
    assert.deepEqual(await call("PreToolUse", { tool_name: JSON.stringify(answer) }, { agent: "agent/1" }), answer);
    assert.deepEqual(await call("PostToolUse", { tool_name: "quiet" }), {});
  });

  test("the shim gets the call with its id", async () => {
    shim("echo");
    const said = await call("PostToolUse", { tool_name: "broken" });
    assert.deepEqual(JSON.parse(said.payload), { hook_event_name: "PostToolUse", tool_name: "broken", tool_use_id: "toolu_1" });
  });

  test("a no of the shim is one of the SDK", async () => {
    shim("deny");
    const { hookSpecificOutput } = await call("PreToolUse", { tool_name: "broken" });
    assert.equal(hookSpecificOutput.permissionDecision, "deny");
    assert.equal(hookSpecificOutput.permissionDecisionReason, "refused by the last known policy");
    assert.equal((await call("UserPromptSubmit", { tool_name: "broken" })).decision, "block");
  });

  test("where nobody judges a hook says no", async () => {
    for (const how of ["crash", "junk", "hang"]) {
      shim(how);
      const { hookSpecificOutput } = await call("PreToolUse", { tool_name: "broken" }, { timeoutMs: 1_000 });
      assert.equal(hookSpecificOutput.permissionDecision, "deny");
      assert.deepEqual(await call("PostToolUse", { tool_name: "broken" }, { timeoutMs: 1_000 }), {});
    }
    shim("crash");
    assert.deepEqual(await call("PreToolUse", { tool_name: "broken" }, { unreachable: "allow" }), {});
    const round = { tool_name: "Bash" };
    round.tool_input = round;
    assert.equal((await call("PreToolUse", round)).hookSpecificOutput.permissionDecision, "deny");
  });

  test("an abort ends the waiting with a no", async () => {
    shim("hang");
    for (const tool of ["hang", "broken"]) {
      const abort = new AbortController();
      const said = call("PreToolUse", { tool_name: tool }, { timeoutMs: 600_000 }, abort.signal);
      setTimeout(() => abort.abort(), 300);
      assert.equal((await said).hookSpecificOutput.permissionDecision, "deny");
      assert.equal((await call("PreToolUse", { tool_name: tool }, {}, abort.signal)).hookSpecificOutput.permissionDecision, "deny");
    }
  });
}
