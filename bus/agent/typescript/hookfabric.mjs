// Generated from hookfabric.ts. Change that file, then run the tests of bus/agent/sdktest with -update.
/**
 * The hook fabric's client for agents written in TypeScript or JavaScript.
 *
 * For the Claude Agent SDK, one call adds the fabric's hooks to the hooks that you have:
 *
 *     query({ prompt, options: { hooks: claudeHooks({ existing: myHooks, agent: "agent1" }) } })
 *
 * In a loop of your own, ask before and after each tool call:
 *
 *     const fabric = new Client({ agent: "agent1" });
 *     const verdict = await fabric.ask({ hook_type: "PreToolUse", tool_name: "Bash", tool_input: { command: "ls" } });
 *
 * Both ask the daemon (`agentshim serve`) on this machine. If it does not answer, they start
 * `agentshim hook`, which applies the last known policy. If that fails too, they refuse the
 * call, unless you set unreachable: "allow".
 *
 * The file needs Node 20.3 or later, or bun, and no package. Install it with npm, or copy it
 * beside your program. hookfabric.mjs is the same in JavaScript.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { Agent, request } from "node:http";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
/** Neither the daemon nor `agentshim hook` answered. */
export class Unreachable extends Error {
}
/** The events of the Claude Agent SDK for which claudeHooks adds a hook by default. */
export const EVENTS = ["SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop"];
const FORMATS = ["anthropic", "openai", "openai-structured", "gemini", "grok"];
const DECISIONS = ["continue", "allow", "ask", "deny", "retry", "stop", "fail"];
const LARGEST = 64 << 20; // bytes of an answer
const connections = new Agent({ keepAlive: false }); // not the global agent, which may use a proxy
const OURS = Symbol.for("hookfabric");
/** The only variables that `agentshim hook` inherits, because others may hold secrets. */
const ENVIRONMENT = ["HOME", "PATH", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT"];
/** Names that other systems give to events. The client accepts them, too. */
const SEEDS = {
    BEFORE_LLM_CALL: "BeforeLLMCall", AFTER_LLM_CALL: "AfterLLMCall", BEFORE_TOOL_EXECUTION: "PreToolUse", AFTER_TOOL_EXECUTION: "PostToolUse",
    ON_TOOL_ERROR: "ToolError", BEFORE_FINAL_RESPONSE: "BeforeFinalResponse", Stop: "BeforeFinalResponse", QUERY_END: "QueryEnd"
};
/** Asks the fabric for one agent. */
export class Client {
    agent;
    unreachable;
    #state;
    #daemon;
    #agentshim;
    #start;
    #starting = false;
    constructor(options = {}) {
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
     * Returns the verdict on an event. Its hook_type names the event. render adds messages for
     * that API to the verdict. Only the daemon renders: a verdict of agentshim has no messages.
     * If neither the daemon nor agentshim answers, the option unreachable decides.
     */
    async ask(event, options = {}) {
        if (typeof event.hook_type !== "string" || event.hook_type === "") {
            throw new TypeError('the event has no hook_type; write for example {hook_type: "PreToolUse", ...}');
        }
        const kind = SEEDS[event.hook_type] ?? event.hook_type;
        const body = { ...event, hook_type: kind, ...(this.agent && !event.agent_id && { agent_id: this.agent }) };
        const { render } = options;
        if (render && !FORMATS.includes(render))
            throw new RangeError(`render is ${JSON.stringify(render)}; write one of ${FORMATS.join(", ")}`);
        const query = { unreachable: this.unreachable, ...(render && { render }) };
        try {
            const call = begun(options);
            const verdict = (await this.#judge(call, "generic", kind, to(["v1", "events", kind], query), body));
            if (render && !verdict.messages)
                console.warn(`hookfabric: the verdict on ${kind} has no messages; only an answer of the daemon has them`);
            return verdict;
        }
        catch (why) {
            return this.#unjudged(kind, why);
        }
    }
    /**
     * Acknowledges that the agent has read the content of these verdicts, named by their event_id.
     * The fabric delivers content again if it is not acknowledged. `agentshim hook` acknowledges its
     * verdicts itself; these have no event_id, and ack skips them. For an agent that never calls ack,
     * the next event acknowledges. Rejects with Unreachable.
     */
    async ack(...eventIDs) {
        if (!this.agent)
            throw new TypeError("ack needs the agent's id; write new Client({ agent: ... })");
        const ids = eventIDs.filter(Boolean);
        if (ids.length === 0)
            return;
        const call = begun({ timeoutMs: 5_000 });
        await this.#post(call, "/v1/ack", { agent_id: this.agent, event_ids: ids }, call.deadline);
    }
    /**
     * Returns whether the agent is in vote-only mode: answers of other agents then reach it by a
     * restart, not during its turn. voteOnly sets the mode first, in all sessions of the agent.
     * Rejects with Unreachable.
     */
    async mode(voteOnly) {
        const call = begun({ timeoutMs: 5_000 });
        const said = await this.#post(call, "/v1/mode", { ...this.#about(), ...(voteOnly !== undefined && { vote_only: voteOnly }) }, call.deadline);
        return said.vote_only === true;
    }
    /** Reports that the agent starts again. Its next event delivers the answers that were deferred until then. Rejects with Unreachable. */
    async checkpoint() {
        const call = begun({ timeoutMs: 5_000 });
        await this.#post(call, "/v1/checkpoint", this.#about(), call.deadline);
    }
    #about() {
        if (!this.agent)
            throw new TypeError("the call needs the agent's id; write new Client({ agent: ... })");
        return { agent_id: this.agent };
    }
    /** Sends a runtime's own hook payload, and returns the answer in that runtime's protocol. Rejects with Unreachable. */
    async hook(runtime, event, payload, options = {}) {
        const query = { unreachable: this.unreachable, ...(this.agent && { agent: this.agent }) };
        return this.#judge(begun(options), runtime, event, to(["hook", runtime, event], query), payload);
    }
    /** Asks the daemon about one event, and `agentshim hook` if the daemon fails, within the call's deadline. */
    async #judge(call, runtime, event, path, payload) {
        try {
            return decided(runtime, await this.#post(call, path, payload, call.deadline - call.reserve), "the daemon's answer");
        }
        catch (why) {
            if (call.signal?.aborted)
                throw why;
            if (this.#start)
                this.#startDaemon();
        }
        return decided(runtime, await this.#shim(call, runtime, event, payload), "the answer of agentshim hook");
    }
    #unjudged(kind, why) {
        const blocking = {
            PreToolUse: "deny", UserPromptSubmit: "deny", BeforeLLMCall: "fail", AfterLLMCall: "fail", BeforeFinalResponse: "fail"
        };
        const decision = (this.unreachable === "deny" && blocking[kind]) || "continue";
        console.warn(`hookfabric: neither the daemon nor agentshim judged ${kind}; the answer is ${decision}: ${text(why)}`);
        const verdict = { decision, hook_errors: [text(why)] };
        if (decision !== "continue")
            verdict.reason = refusal(why);
        return verdict;
    }
    async #post(call, path, body, deadline) {
        if (process.versions.bun && (process.env.http_proxy || process.env.HTTP_PROXY)) {
            throw new Unreachable("the daemon was not asked, because bun would send the daemon's token to the proxy; unset http_proxy"); // bun uses the proxy even for loopback
        }
        const { url, token } = this.#find();
        const left = Math.floor(deadline - performance.now());
        if (left <= 0)
            throw new Unreachable("the call's deadline has passed");
        const within = AbortSignal.timeout(left);
        const headers = { authorization: "Bearer " + token, "content-type": "application/json", "hook-id": call.eventID, "hook-left": `${left}ms` };
        const { status, answer } = await post(new URL(path, url), headers, JSON.stringify(body), call.signal ? AbortSignal.any([call.signal, within]) : within);
        if (status === 204)
            return {};
        if (status !== 200)
            throw new Unreachable(`the daemon answered ${status}: ${short(answer)}`);
        return object(answer, "the daemon's answer");
    }
    /** Returns the daemon's URL, and the token that identifies this user. */
    #find() {
        let where = this.#daemon;
        let tokenFile = process.env.HOOKFABRIC_DAEMON_TOKEN_FILE || join(this.#state, "daemon.token");
        if (!where.startsWith("http://")) {
            const found = object(own(where), where);
            tokenFile = resolve(dirname(where), String(found.token_file ?? ""));
            where = String(found.url ?? "");
        }
        const url = URL.canParse(where) ? new URL(where) : undefined;
        if (url?.protocol !== "http:" || !["127.0.0.1", "[::1]", "localhost"].includes(url.hostname)) {
            throw new Unreachable(`the daemon's address is ${JSON.stringify(where)}; it must be an http:// URL on loopback, so that the token does not leave this machine`);
        }
        return { url, token: own(tokenFile).trim() };
    }
    /** Starts a daemon for later calls. It ends by itself if another daemon runs. */
    #startDaemon() {
        if (this.#starting)
            return;
        this.#starting = true;
        const child = spawn(this.#agentshim, ["serve", "--state", this.#state, "--idle", "30m"], { detached: true, stdio: "ignore", env: environment() });
        child.on("error", (err) => console.warn(`hookfabric: agentshim serve cannot be started: ${err.message}`));
        child.on("close", () => (this.#starting = false));
        child.unref();
    }
    async #shim(call, runtime, event, payload) {
        const left = Math.floor(call.deadline - performance.now());
        if (left <= 0)
            throw new Unreachable("the daemon did not answer in time, and no time is left for agentshim hook");
        const args = ["hook", "--runtime", runtime, "--event", event, "--event-id", call.eventID, "--state", this.#state,
            "--timeout", `${left}ms`, "--unreachable", this.unreachable];
        if (this.agent)
            args.push("--agent", this.agent);
        return said(runtime, event, await run(this.#agentshim, args, JSON.stringify(payload), left, call.signal));
    }
}
function begun(options) {
    const timeoutMs = options.timeoutMs ?? 60_000;
    return { deadline: performance.now() + timeoutMs - margin(timeoutMs), reserve: Math.min(5_000, timeoutMs / 4), eventID: newID(), signal: options.signal };
}
/** A UUID of version 7. */
function newID() {
    const bytes = randomBytes(16);
    bytes.writeUIntBE(Date.now(), 0, 6);
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
/**
 * Returns hooks for the options of the Claude Agent SDK: the existing ones, then the fabric's.
 * Hooks of the fabric in existing are not added a second time.
 */
export function claudeHooks(options = {}) {
    const timeoutMs = options.timeoutMs ?? 60_000;
    if (!(timeoutMs > 0))
        throw new RangeError(`timeoutMs is ${timeoutMs}; write milliseconds above 0`);
    const client = options.client ?? new Client({ agent: options.agent, unreachable: options.unreachable });
    const hooks = {};
    for (const [event, matchers] of Object.entries(options.existing ?? {}))
        hooks[event] = [...(matchers ?? [])];
    for (const event of options.events ?? EVENTS) {
        const there = (hooks[event] ??= []);
        if (there.some((m) => m.hooks?.some((callback) => OURS in callback)))
            continue;
        there.push({ hooks: [claudeCallback(client, event, timeoutMs)], timeout: timeoutMs / 1000 });
    }
    return hooks;
}
function claudeCallback(client, event, timeoutMs) {
    const callback = async (input, toolUseID, options) => {
        const payload = { hook_event_name: event, ...input };
        if (toolUseID && !payload.tool_use_id)
            payload.tool_use_id = toolUseID;
        try {
            return await client.hook("claude", event, payload, { timeoutMs, signal: options?.signal });
        }
        catch (why) {
            // The SDK needs an answer after every failure. After an abort it ignores the answer.
            console.warn(`hookfabric: neither the daemon nor agentshim judged ${event} (unreachable: ${client.unreachable}): ${text(why)}`);
            return client.unreachable === "deny" ? claudeRefusal(event, refusal(why)) : {};
        }
    };
    return Object.assign(callback, { [OURS]: true });
}
/** Returns a refusal in the SDK's form, or {} at an event that cannot be refused. */
function claudeRefusal(event, reason) {
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
/** Reads the answer of `agentshim hook`. Exit code 2 is a refusal with its reason on stderr. */
function said(runtime, event, r) {
    if (r.code === 2 && runtime === "claude") {
        return claudeRefusal(event, short(r.stderr) || "the shim refused the call and gave no reason");
    }
    const faulty = runtime === "generic" && r.code === 1 && r.stdout.trim() !== "";
    if (r.code !== 0 && !faulty)
        throw new Unreachable(`agentshim hook ended with exit code ${r.code}: ${short(r.stderr)}`);
    if (r.stderr.trim())
        console.warn("hookfabric: " + short(r.stderr));
    if (runtime === "generic" && r.stdout.trim() === "")
        throw new Unreachable("agentshim hook gave no verdict");
    return object(r.stdout, "the answer of agentshim hook");
}
/** Sends one request to the daemon. The signal interrupts it. */
function post(url, headers, body, signal) {
    return new Promise((done, failed) => {
        const fail = (why) => failed(new Unreachable(`the daemon at ${url.host} did not answer: ${text(signal.aborted ? signal.reason : why)}`));
        const req = request(url, { method: "POST", headers: { ...headers, "content-length": Buffer.byteLength(body) }, signal, agent: connections }, (res) => {
            const parts = [];
            let size = 0;
            res.on("data", (part) => {
                parts.push(part);
                if ((size += part.length) > LARGEST)
                    req.destroy(new Error(`the answer is larger than ${LARGEST} bytes`));
            });
            res.on("error", fail);
            res.on("end", () => done({ status: res.statusCode ?? 0, answer: Buffer.concat(parts).toString("utf8") }));
        });
        req.on("error", fail);
        req.end(body);
    });
}
/** Runs a program without a shell, in a process group of its own, until left (milliseconds) has passed or the signal aborts. */
function run(program, args, stdin, left, signal) {
    return new Promise((done, failed) => {
        const child = spawn(program, args, { detached: process.platform !== "win32", stdio: ["pipe", "pipe", "pipe"], env: environment() });
        const ended = { code: null, stdout: "", stderr: "" };
        const end = (why) => {
            failed(new Unreachable(`${program}: ${why}`));
            try {
                if (child.pid && process.platform !== "win32")
                    process.kill(-child.pid, "SIGKILL");
                else
                    child.kill("SIGKILL");
            }
            catch {
                // It ended by itself.
            }
        };
        const timer = setTimeout(() => end("it did not answer in time"), left);
        const aborted = () => end("the caller abandoned the call");
        signal?.addEventListener("abort", aborted, { once: true });
        if (signal?.aborted)
            aborted();
        child.stdin.on("error", () => { }); // a program that does not read its input reports that with its exit code
        for (const name of ["stdout", "stderr"]) {
            child[name].setEncoding("utf8");
            child[name].on("data", (part) => {
                if ((ended[name] += part).length > LARGEST)
                    end(`its ${name} is larger than ${LARGEST} bytes`);
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
/** Returns value. In the generic form it must have a decision; in a runtime's own form it may be empty. */
function decided(runtime, value, what) {
    if (runtime === "generic" && !DECISIONS.includes(value.decision))
        throw new Unreachable(`${what} has no known decision`);
    return value;
}
/** Parses data as a JSON object. Empty data is {}, which means no opinion. */
function object(data, what) {
    if (data.trim() === "")
        return {};
    let value;
    try {
        value = JSON.parse(data);
    }
    catch (err) {
        throw new Unreachable(`${what} is not JSON: ${text(err)}`);
    }
    if (value === null || typeof value !== "object" || Array.isArray(value))
        throw new Unreachable(`${what} is not a JSON object`);
    return value;
}
/** Reads a small file that only this user or root can write. An attacker who names the daemon could answer in its place. */
function own(path) {
    try {
        const info = statSync(path);
        const uid = process.geteuid?.();
        if (uid !== undefined && ((info.uid !== uid && info.uid !== 0) || (info.mode & 0o022) !== 0)) {
            throw new Unreachable(`${path} can be written by another user; it must belong to you and have mode 0600`);
        }
        if (info.size > 64 << 10)
            throw new Unreachable(`${path} is too large`);
        return readFileSync(path, "utf8");
    }
    catch (err) {
        if (err instanceof Unreachable)
            throw err;
        throw new Unreachable(`there is no daemon: ${text(err)}; start one with 'agentshim serve'`);
    }
}
function to(names, query) {
    return "/" + names.map(encodeURIComponent).join("/") + "?" + new URLSearchParams(query);
}
function environment() {
    return Object.fromEntries(Object.entries(process.env).filter(([name]) => ENVIRONMENT.includes(name) || name.startsWith("HOOKFABRIC_")));
}
function refusal(why) {
    return `no broker judged this call: ${text(why)}. Start 'agentshim serve', or ask the operator of the fabric.`;
}
function text(why) {
    return why instanceof Error ? why.message : String(why);
}
function short(data) {
    return data.slice(0, 4096).trim();
}
/** Returns by how many milliseconds an answer must precede its deadline, as on the fabric's own hops. */
function margin(timeoutMs) {
    return Math.min(Math.max(timeoutMs * 0.05, 20), timeoutMs / 2);
}
function stateHome() {
    const home = process.env.XDG_STATE_HOME ?? "";
    return join(isAbsolute(home) ? home : join(homedir(), ".local", "state"), "hookfabric");
}
