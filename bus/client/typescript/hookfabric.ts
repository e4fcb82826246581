/**
 * Hooks of the fabric for agents that are written in TypeScript or JavaScript.
 *
 * For the Claude Agent SDK, one call makes the fabric's hooks out of the daemon's answers,
 * beside the hooks that are there already:
 *
 *     query({ prompt, options: { hooks: claudeHooks({ existing: myHooks, agent: "agent1" }) } })
 *
 * For a loop of your own, ask before and after each tool call:
 *
 *     const fabric = new Client({ agent: "agent1" });
 *     const verdict = await fabric.ask({ hook_type: "PreToolUse", tool_name: "Bash", tool_input: { command: "ls" } });
 *
 * Both speak to `agentshim serve` on this machine, and where it does not answer, start
 * `agentshim hook` instead, which knows the last known policy. A call that nobody can
 * judge is refused unless you say unreachable: "allow".
 *
 * Node 20.3 or newer, or bun; nothing else. hookfabric.mjs beside this file is the same
 * without the types, for a node that can not take them out itself.
 */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { Agent, request } from "node:http";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";

/** What becomes of calls that nobody could judge. */
export type Unreachability = "deny" | "allow";

/** A JSON object. */
export type JSONObject = { [name: string]: unknown };

/** An event in the fabric's canonical form; unknown members are ignored. */
export type FabricEvent = JSONObject & { hook_type: string };

/** The fold of all hooks' answers. Messages are there if they were asked for. */
export type Verdict = JSONObject & { decision: string; reason?: string; event_id?: string };

/** The API whose messages the daemon adds to a verdict. */
export type Format = "anthropic" | "openai" | "openai-structured" | "gemini" | "grok";

/** A callback of the Claude Agent SDK. */
export type HookCallback = (input: any, toolUseID: string | undefined, options: { signal: AbortSignal }) => Promise<any>;

/** A matcher of the Claude Agent SDK; timeout is in seconds. */
export type HookCallbackMatcher = { matcher?: string; hooks: HookCallback[]; timeout?: number };

/** The hooks of the Claude Agent SDK's options. */
export type Hooks = { [event: string]: HookCallbackMatcher[] | undefined };

/** How the fabric is reached; everything may be left out. */
export type ClientOptions = {
  /** The agent's id; absent: what events say, else runtime and session. */
  agent?: string;
  /** The daemon's URL, or the file that names it; absent: $HOOKFABRIC_DAEMON, else daemon.json in the state folder. */
  daemon?: string;
  /** The folder of state; absent: $HOOKFABRIC_STATE, else hookfabric below $XDG_STATE_HOME. */
  state?: string;
  /** The program; absent: $HOOKFABRIC_AGENTSHIM, else agentshim on the PATH. */
  agentshim?: string;
  /** A daemon that is not there is started. */
  start?: boolean;
  /** What becomes of calls that nobody could judge; absent: "deny". */
  unreachable?: Unreachability;
};

/** Nobody answered: neither the daemon nor `agentshim hook`. */
export class Unreachable extends Error {}

/** The moments of the Claude Agent SDK that are asked about unless you name others. */
export const EVENTS = ["SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop"] as const;

const FORMATS: readonly string[] = ["anthropic", "openai", "openai-structured", "gemini", "grok"];
const DECISIONS: readonly unknown[] = ["continue", "allow", "ask", "deny", "retry", "stop", "fail"];
const LARGEST = 64 << 20; // bytes of an answer
const connections = new Agent({ keepAlive: false }); // of our own, since the global one may know proxies
const OURS = Symbol.for("hookfabric");
/** What `agentshim hook` may see of this process's environment, which may hold secrets. */
const ENVIRONMENT = ["HOME", "PATH", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT"];

/** What one agent asks the fabric by. */
export class Client {
  readonly agent: string | undefined;
  readonly unreachable: Unreachability;
  readonly #state: string;
  readonly #daemon: string;
  readonly #agentshim: string;
  readonly #start: boolean;
  #starting = false;

  constructor(options: ClientOptions = {}) {
    const unreachable = options.unreachable ?? "deny";
    if (unreachable !== "deny" && unreachable !== "allow") {
      throw new RangeError(`unreachable is ${JSON.stringify(unreachable)}; write "deny" or "allow"`);
    }
    const env = process.env;
    this.agent = options.agent;
    this.unreachable = unreachable;
    this.#state = options.state || env.HOOKFABRIC_STATE || stateHome();
    this.#daemon = options.daemon || env.HOOKFABRIC_DAEMON || join(this.#state, "daemon.json");
    this.#agentshim = options.agentshim || env.HOOKFABRIC_AGENTSHIM || "agentshim";
    this.#start = options.start ?? false;
  }

  /**
   * The verdict about an event in the canonical form. render has the daemon add the
   * messages for that API; without a daemon there are none. Where nobody answers, the
   * verdict is that of unreachable.
   */
  async ask(event: FabricEvent, options: { render?: Format; timeoutMs?: number; signal?: AbortSignal } = {}): Promise<Verdict> {
    const kind = event.hook_type;
    if (typeof kind !== "string" || kind === "") {
      throw new TypeError('the event has no hook_type; write for example {hook_type: "PreToolUse", ...}');
    }
    const body = this.agent && !event.agent_id ? { ...event, agent_id: this.agent } : event;
    const { render } = options;
    if (render && !FORMATS.includes(render)) throw new RangeError(`render is ${JSON.stringify(render)}; write one of ${FORMATS.join(", ")}`);
    const query = { unreachable: this.unreachable, ...(render && { render }) };
    try {
      const call = begun(options);
      const verdict = (await this.#judge(call, "generic", kind, to(["v1", "events", kind], query), body)) as Verdict;
      if (render && !verdict.messages) console.warn(`hookfabric: the verdict about ${kind} comes without messages, since the daemon did not give it`);
      return verdict;
    } catch (why) {
      return this.#unjudged(kind, why);
    }
  }

  /**
   * Say that the agent has what these verdicts brought, by their event_id. A verdict
   * without one, which `agentshim hook` gave, is acknowledged already. An agent that never says so
   * says it by asking on. What it does not say comes again. Rejects with Unreachable.
   */
  async ack(...eventIDs: (string | undefined)[]): Promise<void> {
    if (!this.agent) throw new TypeError("nobody is named who acknowledges; write new Client({ agent: ... })");
    const ids = eventIDs.filter(Boolean);
    if (ids.length === 0) return;
    const call = begun({ timeoutMs: 5_000 });
    await this.#post(call, "/v1/ack", { agent_id: this.agent, event_ids: ids }, call.deadline);
  }

  /** A runtime's own payload, answered as that runtime's hooks answer. Rejects with Unreachable. */
  async hook(runtime: string, event: string, payload: JSONObject, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<JSONObject> {
    const query = { unreachable: this.unreachable, ...(this.agent && { agent: this.agent }) };
    return this.#judge(begun(options), runtime, event, to(["hook", runtime, event], query), payload);
  }

  /** Ask the daemon, and where that fails `agentshim hook`, about one event, all within its deadline. */
  async #judge(call: Call, runtime: string, event: string, path: string, payload: JSONObject): Promise<JSONObject> {
    try {
      return decided(runtime, await this.#post(call, path, payload, call.deadline - call.reserve), "the daemon's answer");
    } catch (why) {
      if (call.signal?.aborted) throw why;
      if (this.#start) this.#startDaemon();
    }
    return decided(runtime, await this.#shim(call, runtime, event, payload), "the answer of agentshim hook");
  }

  #unjudged(kind: string, why: unknown): Verdict {
    const blocking: { [kind: string]: string } = {
      PreToolUse: "deny", UserPromptSubmit: "deny", BeforeLLMCall: "fail", AfterLLMCall: "fail", BeforeFinalResponse: "fail" };
    const decision = (this.unreachable === "deny" && blocking[kind]) || "continue";
    console.warn(`hookfabric: ${kind} passes with ${decision}, since nobody judged it: ${text(why)}`);
    const verdict: Verdict = { decision, hook_errors: [text(why)] };
    if (decision !== "continue") verdict.reason = refusal(why);
    return verdict;
  }

  async #post(call: Call, path: string, body: unknown, deadline: number): Promise<JSONObject> {
    if (process.versions.bun && (process.env.http_proxy || process.env.HTTP_PROXY)) {
      throw new Unreachable("the daemon is not asked, since bun would send its token to the proxy"); // also what is for loopback
    }
    const { url, token } = this.#find();
    const left = Math.floor(deadline - performance.now());
    if (left <= 0) throw new Unreachable("no time is left");
    const within = AbortSignal.timeout(left);
    const headers = { authorization: "Bearer " + token, "content-type": "application/json", "hook-id": call.eventID, "hook-left": `${left}ms` };
    const { status, answer } = await post(new URL(path, url), headers, JSON.stringify(body), call.signal ? AbortSignal.any([call.signal, within]) : within);
    if (status === 204) return {};
    if (status !== 200) throw new Unreachable(`the daemon answered ${status}: ${short(answer)}`);
    return object(answer, "the daemon's answer");
  }

  /** Where the daemon is, and the token by which it knows this user. */
  #find(): { url: URL; token: string } {
    let where = this.#daemon;
    let tokenFile = process.env.HOOKFABRIC_DAEMON_TOKEN_FILE || join(this.#state, "daemon.token");
    if (!where.startsWith("http://")) {
      const found = object(own(where), where);
      tokenFile = resolve(dirname(where), String(found.token_file ?? ""));
      where = String(found.url ?? "");
    }
    const url = URL.canParse(where) ? new URL(where) : undefined;
    if (url?.protocol !== "http:" || !["127.0.0.1", "[::1]", "localhost"].includes(url.hostname)) {
      throw new Unreachable(`the daemon's address is ${JSON.stringify(where)}; it must be http:// and on loopback, or the token would leave this machine`);
    }
    return { url, token: own(tokenFile).trim() };
  }

  /** Start a daemon for the calls after this one; if another is there, it ends by itself. */
  #startDaemon(): void {
    if (this.#starting) return;
    this.#starting = true;
    const child = spawn(this.#agentshim, ["serve", "--state", this.#state, "--idle", "30m"], { detached: true, stdio: "ignore", env: environment() });
    child.on("error", (err) => console.warn(`hookfabric: agentshim serve can not be started: ${err.message}`));
    child.on("close", () => (this.#starting = false));
    child.unref();
  }

  async #shim(call: Call, runtime: string, event: string, payload: JSONObject): Promise<JSONObject> {
    const left = Math.floor(call.deadline - performance.now());
    if (left <= 0) throw new Unreachable("the daemon took all the time there was");
    const args = ["hook", "--runtime", runtime, "--event", event, "--event-id", call.eventID, "--state", this.#state,
      "--timeout", `${left}ms`, "--unreachable", this.unreachable];
    if (this.agent) args.push("--agent", this.agent);
    return said(runtime, event, await run(this.#agentshim, args, JSON.stringify(payload), left, call.signal));
  }
}

/** One call: its deadline, what is left of it for the shim if the daemon hangs, and its id, whoever judges it. */
type Call = { deadline: number; reserve: number; eventID: string; signal?: AbortSignal };

function begun(options: { timeoutMs?: number; signal?: AbortSignal }): Call {
  const timeoutMs = options.timeoutMs ?? 60_000;
  return { deadline: performance.now() + timeoutMs - margin(timeoutMs), reserve: Math.min(5_000, timeoutMs / 4), eventID: newID(), signal: options.signal };
}

/** A UUID of version 7. */
function newID(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** What claudeHooks may be told; everything may be left out. */
export type ClaudeHooksOptions = {
  /** Hooks that are there already; they are kept, come first, and are not changed. */
  existing?: Hooks;
  /** The agent's id; absent: claude-<session>. */
  agent?: string;
  /** The SDK's timeout, in milliseconds; answers come before it. Absent: a minute. */
  timeoutMs?: number;
  /** Who is asked; absent: one that is made of agent and unreachable. */
  client?: Client;
  /** The SDK's names of the moments that are asked about; absent: EVENTS. */
  events?: readonly string[];
  /** What becomes of calls that nobody could judge; absent: "deny". */
  unreachable?: Unreachability;
};

/**
 * The fabric's hooks for the options of the Claude Agent SDK, after those in existing.
 * Hooks of the fabric that are there already are not added twice.
 */
export function claudeHooks(options: ClaudeHooksOptions = {}): { [event: string]: HookCallbackMatcher[] } {
  const timeoutMs = options.timeoutMs ?? 60_000;
  if (!(timeoutMs > 0)) throw new RangeError(`timeoutMs is ${timeoutMs}; it must be longer than nothing`);
  const client = options.client ?? new Client({ agent: options.agent, unreachable: options.unreachable });
  const hooks: { [event: string]: HookCallbackMatcher[] } = {};
  for (const [event, matchers] of Object.entries(options.existing ?? {})) hooks[event] = [...(matchers ?? [])];
  for (const event of options.events ?? EVENTS) {
    const there = (hooks[event] ??= []);
    if (there.some((m) => m.hooks?.some((callback) => OURS in callback))) continue;
    there.push({ hooks: [claudeCallback(client, event, timeoutMs)], timeout: timeoutMs / 1000 });
  }
  return hooks;
}

function claudeCallback(client: Client, event: string, timeoutMs: number): HookCallback {
  const callback: HookCallback = async (input, toolUseID, options) => {
    const payload: JSONObject = { hook_event_name: event, ...input };
    if (toolUseID && !payload.tool_use_id) payload.tool_use_id = toolUseID;
    try {
      return await client.hook("claude", event, payload, { timeoutMs, signal: options?.signal });
    } catch (why) {
      // Whatever breaks, the SDK gets an answer. Nobody waits for one after an abort; it is a no all the same.
      console.warn(`hookfabric: nobody judged ${event} (unreachable: ${client.unreachable}): ${text(why)}`);
      return client.unreachable === "deny" ? claudeRefusal(event, refusal(why)) : {};
    }
  };
  return Object.assign(callback, { [OURS]: true });
}

/** A no as the SDK understands it; where nothing can be refused any more, nothing. */
function claudeRefusal(event: string, reason: string): JSONObject {
  switch (event) {
    case "PreToolUse":
      return { hookSpecificOutput: { hookEventName: event, permissionDecision: "deny", permissionDecisionReason: reason } };
    case "PermissionRequest":
      return { hookSpecificOutput: { hookEventName: event, decision: { behavior: "deny", message: reason } } };
    case "UserPromptSubmit":
      return { decision: "block", reason };
  }
  return {};
}

type Ended = { code: number | null; stdout: string; stderr: string };

/** What `agentshim hook` said. Exit code 2 is a no, and stderr its reason. */
function said(runtime: string, event: string, r: Ended): JSONObject {
  if (r.code === 2 && runtime === "claude") {
    return claudeRefusal(event, short(r.stderr) || "the shim refused the call and gave no reason");
  }
  const faulty = runtime === "generic" && r.code === 1 && r.stdout.trim() !== "";
  if (r.code !== 0 && !faulty) throw new Unreachable(`agentshim hook ended with exit code ${r.code}: ${short(r.stderr)}`);
  if (r.stderr.trim()) console.warn("hookfabric: " + short(r.stderr));
  if (runtime === "generic" && r.stdout.trim() === "") throw new Unreachable("agentshim hook gave no verdict");
  return object(r.stdout, "the answer of agentshim hook");
}

/** One request to the daemon; it ends with the signal. */
function post(url: URL, headers: { [name: string]: string }, body: string, signal: AbortSignal): Promise<{ status: number; answer: string }> {
  return new Promise((done, failed) => {
    const fail = (why: unknown) => failed(new Unreachable(`the daemon at ${url.host} did not answer: ${text(signal.aborted ? signal.reason : why)}`));
    const req = request(url, { method: "POST", headers: { ...headers, "content-length": Buffer.byteLength(body) }, signal, agent: connections }, (res) => {
      const parts: Buffer[] = [];
      let size = 0;
      res.on("data", (part: Buffer) => {
        parts.push(part);
        if ((size += part.length) > LARGEST) req.destroy(new Error(`the answer is larger than ${LARGEST} bytes`));
      });
      res.on("error", fail);
      res.on("end", () => done({ status: res.statusCode ?? 0, answer: Buffer.concat(parts).toString("utf8") }));
    });
    req.on("error", fail);
    req.end(body);
  });
}

/** One program, without a shell, in a process group of its own; it ends with the time or the signal. */
function run(program: string, args: string[], stdin: string, left: number, signal?: AbortSignal): Promise<Ended> {
  return new Promise((done, failed) => {
    const child = spawn(program, args, { detached: process.platform !== "win32", stdio: ["pipe", "pipe", "pipe"], env: environment() });
    const ended: Ended = { code: null, stdout: "", stderr: "" };
    const end = (why: string) => {
      failed(new Unreachable(`${program}: ${why}`));
      try {
        if (child.pid && process.platform !== "win32") process.kill(-child.pid, "SIGKILL");
        else child.kill("SIGKILL");
      } catch {
        // It ended by itself.
      }
    };
    const timer = setTimeout(() => end("it did not answer in time"), left);
    const aborted = () => end("the call was given up");
    signal?.addEventListener("abort", aborted, { once: true });
    if (signal?.aborted) aborted();
    child.stdin.on("error", () => {}); // who does not read its input says so by its exit code
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8");
      child[name].on("data", (part: string) => {
        if ((ended[name] += part).length > LARGEST) end(`its ${name} is larger than ${LARGEST} bytes`);
      });
    }
    child.on("error", (err) => end(err.message));
    child.on("close", (code) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
      done({ ...ended, code });
    });
    child.stdin.end(stdin);
  });
}

/** A verdict always decides; what a runtime is answered may be nothing. */
function decided(runtime: string, value: JSONObject, what: string): JSONObject {
  if (runtime === "generic" && !DECISIONS.includes(value.decision)) throw new Unreachable(`${what} has no decision that is known`);
  return value;
}

/** data as a JSON object; nothing at all is an empty one, which is no opinion. */
function object(data: string, what: string): JSONObject {
  if (data.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch (err) {
    throw new Unreachable(`${what} is not JSON: ${text(err)}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Unreachable(`${what} is not a JSON object`);
  return value as JSONObject;
}

/** A small file that nobody else can have written: who names the daemon judges for it. */
function own(path: string): string {
  try {
    const info = statSync(path);
    const uid = process.geteuid?.();
    if (uid !== undefined && ((info.uid !== uid && info.uid !== 0) || (info.mode & 0o022) !== 0)) {
      throw new Unreachable(`${path} may have been written by somebody else; it must be yours, with mode 0600`);
    }
    if (info.size > 64 << 10) throw new Unreachable(`${path} is too large`);
    return readFileSync(path, "utf8");
  } catch (err) {
    if (err instanceof Unreachable) throw err;
    throw new Unreachable(`there is no daemon: ${text(err)}; start one with 'agentshim serve'`);
  }
}

function to(names: string[], query: { [name: string]: string }): string {
  return "/" + names.map(encodeURIComponent).join("/") + "?" + new URLSearchParams(query);
}

function environment(): { [name: string]: string | undefined } {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => ENVIRONMENT.includes(name) || name.startsWith("HOOKFABRIC_")));
}

function refusal(why: unknown): string {
  return `nobody judged this call: ${text(why)}. Start 'agentshim serve', or ask who runs the fabric.`;
}

function text(why: unknown): string {
  return why instanceof Error ? why.message : String(why);
}

function short(data: string): string {
  return data.slice(0, 4096).trim();
}

/** What an answer must be earlier than a deadline, as the fabric's own hops keep it. */
function margin(timeoutMs: number): number {
  return Math.min(Math.max(timeoutMs * 0.05, 20), timeoutMs / 2);
}

function stateHome(): string {
  const home = process.env.XDG_STATE_HOME ?? "";
  return join(isAbsolute(home) ? home : join(homedir(), ".local", "state"), "hookfabric");
}
