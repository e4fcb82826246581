import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { after, asked, before, hooks, make, prompt, sessions, shim } from "./world.mjs";

shim("crash"); // the daemon answers
const logged = [];
mock.method(console, "error", (line) => logged.push(line));
beforeEach(() => logged.splice(0));

let passed = 0; // milliseconds, beside those that pass
const now = performance.now.bind(performance);
performance.now = () => now() + passed;

const ARGS = { command: "ls" };
const never = () => new Promise(() => {});
const unknown = (id) => new RegExp(`cannot find out whether the session ${id} belongs to a subagent: [^]*Try again`);

test("while it is not known whose subagent a session is, no tool runs and no prompt passes", async () => {
  const ways = {
    error: () => ({ error: { name: "NotFoundError" } }),
    thrown: () => Promise.reject(new Error("the server is gone")),
    empty: () => ({ data: undefined }),
    nothing: () => undefined,
    number: () => ({ data: { parentID: 7 } }),
    cycle: () => ({ data: { parentID: "ses_cycle" } }),
  };
  for (const [way, answer] of Object.entries(ways)) {
    const id = "ses_" + way;
    sessions[id] = answer;
    await assert.rejects(before("bash", ARGS, id), unknown(id), way);
    assert.match(logged.join("\n"), unknown(id), way);
    await assert.rejects(hooks["chat.message"]({ sessionID: id }, { parts: [{ type: "text", text: "hello" }] }), unknown(id), way);
  }
  assert.equal((await prompt("hello"))[0].text, "hello"); // of a session that is known
});

test("a plugin without a client knows of the sessions that it hears of only", async () => {
  const own = await make(undefined);
  await assert.rejects(before("bash", ARGS, "ses_1", own), unknown("ses_1"));
  assert.equal(logged.length, 1);
  await own.event({ event: { type: "session.created", properties: { sessionID: "ses_new", info: { id: "ses_new" } } } });
  assert.deepEqual(await before("bash", ARGS, "ses_new", own), ARGS);
});

test("of an unknown parent's subagent, no tool runs", async () => {
  sessions.ses_child = { parentID: "ses_lost" };
  await assert.rejects(before("bash", ARGS, "ses_child"), unknown("ses_lost"));
});

test("what ran is told of all the same", async () => {
  assert.match((await after("told", undefined, "ses_gone")).output, /PostToolUse of "told" in session "ses_gone" /);
  assert.match(logged.join("\n"), unknown("ses_gone"));
});

test("a failure is known for a few seconds, and a lookup under way is for all calls", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    sessions.ses_slow = never;
    const calls = [before("bash", ARGS, "ses_slow"), before("bash", ARGS, "ses_slow")];
    const refused = Promise.all(calls.map((call) => assert.rejects(call, /OpenCode did not answer within 2000ms/)));
    mock.timers.tick(2_000);
    await refused;
    sessions.ses_slow = { parentID: "ses_0" };
    mock.timers.tick(4_999);
    await assert.rejects(before("bash", ARGS, "ses_slow"), unknown("ses_slow"));
    assert.equal(asked.ses_slow, 1);
    assert.equal(logged.length, 3); // one for each call
    mock.timers.tick(1);
    assert.deepEqual(await before("bash", ARGS, "ses_slow"), ARGS);
    assert.equal(asked.ses_slow, 2);
  } finally {
    mock.timers.reset();
  }
});

test("all lookups of a call take no longer than one may", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    let answer;
    sessions.ses_below = () => new Promise((done) => (answer = () => done({ data: { parentID: "ses_above" } })));
    sessions.ses_above = never;
    const refused = assert.rejects(before("bash", ARGS, "ses_below"), /OpenCode did not answer within 2000ms/);
    mock.timers.tick((passed += 1_900));
    answer();
    await new Promise(setImmediate);
    mock.timers.tick(100);
    await refused;
  } finally {
    mock.timers.reset();
  }
});

test("what a lookup takes is taken from the time of the call", async () => {
  shim("opencode"); // its refusal is its command line
  sessions.ses_late = () => {
    passed += 900;
    return { data: {} };
  };
  const { message } = await before("broken", ARGS, "ses_late").catch((err) => err);
  const left = Number(/--timeout (\d+)ms/.exec(message)[1]);
  assert.equal(left <= 38_000 - 900, true, message); // of 40 s, the shim takes a margin
});
