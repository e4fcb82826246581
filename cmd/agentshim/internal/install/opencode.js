// The fabric's plugin for OpenCode, written here by `agentshim install opencode`.
//
// OpenCode has no command hooks, so this plugin asks `agentshim serve` on this machine. If
// the daemon does not answer, the plugin starts `agentshim hook --runtime opencode`, which
// applies the last known policy. OpenCode sets no deadline, so the plugin sets one. If the
// fabric did not judge a tool call or a prompt, the plugin refuses it, unless SETTINGS say
// "allow".
//
// cmd/agentshim/internal/dialect/opencode.go of hookfabric describes requests and answers. The
// plugin does not let a call pass on an answer in another form.
//
// The plugin runs in bun and in node, and needs nothing else.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { Agent, request } from "node:http";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";

// The installer writes its flags here:
//   agentshim    the program; absent: agentshim on the PATH
//   args         more arguments for `agentshim hook`
//   agent        the agent's id; absent: opencode-<session>
//   daemon       the daemon's URL or the file that names it; absent: daemon.json in the state folder; false: no daemon
//   state        the state folder; absent: the user's
//   timeoutMs    time limit of a call in milliseconds; absent: 60000
//   unreachable  "allow": run calls that the fabric did not judge; absent: refuse them
const SETTINGS = {};

const REFUSABLE = ["tool.execute.before", "chat.message"]; // hooks that can say no
const TIMEOUT_MS = SETTINGS.timeoutMs > 0 ? SETTINGS.timeoutMs : 60_000; // what a call may take
const LOOKUP_MS = Math.min(2_000, TIMEOUT_MS / 4); // what finding out whose subagent a session is may take of it
const FAILURE_MS = 5_000; // how long it is known that it failed
const LARGEST = 64 * 1024 * 1024; // bytes of an answer
const PASSED = ["HOME", "PATH", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"]; // with HOOKFABRIC_*: what the shim sees of our environment

const connections = new Agent({ keepAlive: false }); // of our own, since the global one may know proxies

export const HookFabric = async ({ client, directory }) => {
  const parents = new Map(); // by session, or what becomes of a lookup; null: it is no subagent's
  let version;
  const parentOf = (id) => {
    if (id && !parents.has(id)) {
      const found = look(client, id); // it is older than this plugin
      remember(parents, id, found);
      const forget = () => parents.get(id) === found && parents.delete(id);
      found.catch(() => setTimeout(forget, FAILURE_MS).unref?.());
    }
    return parents.get(id);
  };
  // rootOf is the session that the user has: what holds for its agent holds for subagents.
  const rootOf = async (id) => {
    const late = performance.now() + LOOKUP_MS;
    let root;
    let of = id;
    try {
      for (let depth = 0; ; depth++, of = root) {
        const parent = await within(parentOf(of), late - performance.now());
        if (!parent) return root;
        if (depth >= 32) throw new Error("more than 32 sessions are above it");
        root = parent;
      }
    } catch (err) {
      throw new Error(`the plugin cannot find out whether the session ${of} belongs to a subagent: ${err.message}. It needs this to apply freezes and limits. Try again in a few seconds; if it fails again, restart OpenCode`);
    }
  };
  const ask = async (hook, sessionID, more) => {
    const deadline = performance.now() + TIMEOUT_MS - Math.min(Math.max(TIMEOUT_MS * 0.05, 20), TIMEOUT_MS / 2);
    let parentID;
    try {
      parentID = await rootOf(sessionID);
    } catch (err) {
      console.error(`hookfabric: ${hook}: ${err.message}`);
      if (REFUSABLE.includes(hook)) return { decision: "deny", reason: err.message };
    }
    return judge(hook, { hook, sessionID, directory, version, parentID, ...more }, deadline);
  };
  return {
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input;
      const said = await ask("tool.execute.before", sessionID, { tool, callID, args: output.args });
      refuse(said);
      rewrite(output, said);
    },
    "tool.execute.after": async (input, output) => {
      if (!isObject(output)) return;
      const { tool, sessionID, callID, args } = input;
      tell(output, await ask("tool.execute.after", sessionID, { tool, callID, args, output }));
    },
    "chat.message": async (input, output) => {
      const prompt = textParts(output).map((part) => part.text).join("\n");
      const said = await ask("chat.message", input.sessionID, { agent: input.agent, prompt });
      refuse(said);
      tellUser(output, said);
    },
    event: async ({ event }) => {
      if (!["session.created", "session.idle", "session.deleted"].includes(event?.type)) return;
      const { sessionID, info } = event.properties ?? {};
      const id = sessionID ?? info?.id;
      version = info?.version ?? version;
      if (info && id) remember(parents, id, info.parentID ?? null);
      await ask(event.type, id, {}); // OpenCode does not wait here, and takes no answer
      if (event.type === "session.deleted") parents.delete(id);
    },
  };
};

// look asks OpenCode whose subagent a session is.
async function look(client, id) {
  if (!client?.session?.get) throw new Error("this OpenCode gives its plugins no client for sessions; update OpenCode");
  const { data, error } = (await within(client.session.get({ path: { id } }), LOOKUP_MS)) ?? {};
  if (!isObject(data)) throw new Error(`OpenCode answers ${short(JSON.stringify(error) ?? "nothing")}`);
  const parent = data.parentID ?? null;
  if (parent !== null && typeof parent !== "string") throw new Error(`OpenCode answers that its parent is ${short(JSON.stringify(parent))}`);
  return parent;
}

// within waits for a promise for so many milliseconds.
async function within(promise, left) {
  let timer;
  try {
    const late = new Promise((_, failed) => (timer = setTimeout(() => failed(new Error(`OpenCode did not answer within ${LOOKUP_MS}ms`)), left)));
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function remember(parents, id, parent) {
  parents.set(id, parent);
  if (parents.size > 10_000) parents.delete(parents.keys().next().value);
}

// refuse ends the call: an error is the only no that OpenCode knows, and its text is what the model reads.
function refuse(said) {
  if (said.decision !== "allow") throw new Error(said.reason || "a hook denies this call, without a reason");
}

// rewrite replaces the arguments in place, since OpenCode holds on to the object. What is not among them is gone.
function rewrite(output, said) {
  if (said.args === undefined) return;
  if (!isObject(said.args)) throw new Error("a hook rewrites the arguments of this call to a value that is not a JSON object, so the call did not run");
  if (!isObject(output.args)) {
    output.args = said.args;
    return;
  }
  for (const name of Object.keys(output.args)) if (!Object.hasOwn(said.args, name)) delete output.args[name];
  setMembers(output.args, said.args);
}

// setMembers sets members under any name, __proto__ as well.
function setMembers(object, members) {
  for (const [name, value] of Object.entries(members)) {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  }
}

// tell replaces and appends in either shape of a tool's output: MCP tools have content, the others a text.
function tell(output, said) {
  if (isObject(said.output)) setMembers(output, said.output);
  const mcp = Array.isArray(output.content);
  if (typeof said.output === "string") {
    if (mcp) output.content = [{ type: "text", text: said.output }];
    else output.output = said.output;
    delete output.structuredContent; // the same, in another form
    if (isObject(output.metadata) && "output" in output.metadata) output.metadata.output = said.output; // what the screen shows
  }
  if (!isText(said.append)) return;
  if (mcp) output.content.push({ type: "text", text: said.append });
  else output.output = isText(output.output) ? output.output + "\n\n" + said.append : said.append;
}

// tellUser appends to what the user wrote.
function tellUser(output, said) {
  if (!isText(said.append)) return;
  const last = textParts(output).at(-1);
  if (last) last.text += "\n\n" + said.append;
  else console.error("hookfabric: dropped the injection for a prompt, because the prompt has no text");
}

function textParts(output) {
  return (Array.isArray(output?.parts) ? output.parts : []).filter((part) => part?.type === "text" && typeof part.text === "string");
}

// judge returns the answer to one payload, always before the deadline.
async function judge(hook, payload, deadline) {
  const id = newID(); // the same id for the daemon and the shim
  let why;
  try {
    const body = JSON.stringify(payload);
    if (SETTINGS.daemon !== false) {
      try {
        return await askDaemon(hook, id, body, deadline - Math.min(5_000, TIMEOUT_MS / 4));
      } catch (err) {
        why = err; // the shim says what it knows
      }
    }
    return await askShim(hook, id, body, deadline);
  } catch (err) {
    why = why ? `${why.message}; ${err.message}` : err.message;
  }
  console.error(`hookfabric: the fabric did not judge ${hook}: ${why}`);
  if (SETTINGS.unreachable === "allow") return { decision: "allow" };
  return { decision: "deny", reason: `the fabric did not judge this call: ${why}. Start 'agentshim serve', or ask the operator of the fabric.` };
}

async function askDaemon(hook, id, body, deadline) {
  const { url, token } = findDaemon();
  const target = new URL("/hook/opencode/" + encodeURIComponent(hook), url);
  for (const name of ["agent", "unreachable"]) if (SETTINGS[name]) target.searchParams.set(name, SETTINGS[name]);
  const left = Math.floor(deadline - performance.now());
  if (left <= 0) throw new Error("no time is left");
  const { status, answer } = await post(target, { authorization: "Bearer " + token, "content-type": "application/json", "hook-id": id, "hook-left": `${left}ms` }, body, left);
  if (status !== 200) throw new Error(`the daemon answered ${status}: ${short(answer)}`);
  return readAnswer(answer, "the daemon's answer");
}

// newID is a UUID of version 7.
function newID() {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// findDaemon is where the daemon is, and the token by which it knows this user.
function findDaemon() {
  if (process.versions.bun && (process.env.http_proxy || process.env.HTTP_PROXY)) {
    throw new Error("the plugin does not ask the daemon, because bun would send the token to the proxy"); // also what is for loopback
  }
  const state = SETTINGS.state || process.env.HOOKFABRIC_STATE || stateHome();
  let where = SETTINGS.daemon || process.env.HOOKFABRIC_DAEMON || join(state, "daemon.json");
  let tokenFile = process.env.HOOKFABRIC_DAEMON_TOKEN_FILE || join(state, "daemon.token");
  if (!where.startsWith("http://")) {
    const found = readObject(readOwn(where), where);
    tokenFile = resolve(dirname(where), String(found.token_file ?? ""));
    where = String(found.url ?? "");
  }
  const url = URL.canParse(where) ? new URL(where) : undefined;
  if (url?.protocol !== "http:" || !["127.0.0.1", "[::1]", "localhost"].includes(url.hostname)) {
    throw new Error(`the daemon's address is ${JSON.stringify(where)}; it must be http:// and on loopback`);
  }
  return { url, token: readOwn(tokenFile).trim() };
}

// post makes one request, which ends with the time that is left.
function post(url, headers, body, left) {
  return new Promise((done, failed) => {
    const signal = AbortSignal.timeout(left);
    const req = request(url, { method: "POST", headers: { ...headers, "content-length": Buffer.byteLength(body) }, agent: connections, signal }, (res) => {
      const parts = [];
      let size = 0;
      res.on("data", (part) => {
        parts.push(part);
        if ((size += part.length) > LARGEST) req.destroy(new Error(`the daemon's answer is larger than ${LARGEST} bytes`));
      });
      res.on("error", failed);
      res.on("end", () => done({ status: res.statusCode, answer: Buffer.concat(parts).toString("utf8") }));
    });
    req.on("error", (err) => failed(new Error(`the daemon at ${url.host} did not answer: ${err.message}`)));
    req.end(body);
  });
}

async function askShim(hook, id, body, deadline) {
  const left = Math.floor(deadline - performance.now());
  if (left <= 0) throw new Error("no time is left for agentshim hook");
  const args = ["hook", "--runtime", "opencode", "--event", hook, "--event-id", id, "--timeout", `${left}ms`];
  if (SETTINGS.agent) args.push("--agent", SETTINGS.agent);
  if (SETTINGS.state) args.push("--state", SETTINGS.state);
  const { code, stdout, stderr } = await run(SETTINGS.agentshim || process.env.HOOKFABRIC_AGENTSHIM || "agentshim", [...args, ...(SETTINGS.args ?? [])], body, left);
  if (code !== 0) throw new Error(`agentshim hook ended with exit code ${code}: ${short(stderr)}`);
  if (stderr.trim()) console.error("hookfabric: " + short(stderr));
  return readAnswer(stdout, "the answer of agentshim hook");
}

// run starts one program, without a shell, in a process group of its own, which ends with the time that is left.
function run(program, args, stdin, left) {
  return new Promise((done, failed) => {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => PASSED.includes(name) || name.startsWith("HOOKFABRIC_")));
    const group = process.platform !== "win32";
    const child = spawn(program, args, { detached: group, stdio: ["pipe", "pipe", "pipe"], env });
    const said = { stdout: "", stderr: "" };
    const end = (why) => {
      failed(new Error(`${program}: ${why}`));
      try {
        if (group && child.pid) process.kill(-child.pid, "SIGKILL");
        else child.kill("SIGKILL");
      } catch {
        // It ended by itself.
      }
    };
    const timer = setTimeout(() => end("it did not answer in time"), left);
    child.stdin.on("error", () => {}); // who does not read its input says so by its exit code
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8");
      child[name].on("data", (part) => {
        if ((said[name] += part).length > LARGEST) end(`its ${name} is larger than ${LARGEST} bytes`);
      });
    }
    child.on("error", (err) => end(err.code === "ENOENT" ? "there is no such program; install agentshim there" : err.message));
    child.on("close", (code) => {
      clearTimeout(timer);
      done({ code, ...said });
    });
    child.stdin.end(stdin);
  });
}

// readAnswer is an answer of a shim that works, which always decides.
function readAnswer(data, what) {
  const said = readObject(data, what);
  if (said.decision !== "allow" && said.decision !== "deny") throw new Error(`${what} has no decision`);
  return said;
}

function readObject(data, what) {
  let value;
  try {
    value = JSON.parse(data);
  } catch (err) {
    throw new Error(`${what} is not JSON: ${err.message}`);
  }
  if (!isObject(value)) throw new Error(`${what} is not a JSON object`);
  return value;
}

// readOwn reads a small file that only this user or root can write: its content names the daemon.
function readOwn(path) {
  const info = statSync(path);
  const uid = process.geteuid?.();
  if (uid !== undefined && ((info.uid !== uid && info.uid !== 0) || (info.mode & 0o022) !== 0)) {
    throw new Error(`another user can write ${path}; make the file yours, with mode 0600`);
  }
  if (info.size > 64 * 1024) throw new Error(`${path} is too large`);
  return readFileSync(path, "utf8");
}

function stateHome() {
  const home = process.env.XDG_STATE_HOME ?? "";
  return join(isAbsolute(home) ? home : join(homedir(), ".local", "state"), "hookfabric");
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function isText(value) {
  return typeof value === "string" && value !== "";
}

function short(data) {
  return data.slice(0, 4096).trim();
}
