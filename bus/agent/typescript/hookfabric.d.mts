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
/** The decision on calls that no broker judged. */
export type Unreachability = "deny" | "allow";
/** A JSON object. */
export type JSONObject = {
    [name: string]: unknown;
};
/** An event in the fabric's canonical form; unknown members are ignored. */
export type FabricEvent = JSONObject & {
    hook_type: string;
};
/** The combined answer of all hooks. It has messages if `render` was set and the daemon answered. */
export type Verdict = JSONObject & {
    decision: string;
    reason?: string;
    event_id?: string;
};
/** The API for which the daemon renders the messages of a verdict. */
export type Format = "anthropic" | "openai" | "openai-structured" | "gemini" | "grok";
/** A callback of the Claude Agent SDK. */
export type HookCallback = (input: any, toolUseID: string | undefined, options: {
    signal: AbortSignal;
}) => Promise<any>;
/** A matcher of the Claude Agent SDK; timeout is in seconds. */
export type HookCallbackMatcher = {
    matcher?: string;
    hooks: HookCallback[];
    timeout?: number;
};
/** The hooks of the Claude Agent SDK's options. */
export type Hooks = {
    [event: string]: HookCallbackMatcher[] | undefined;
};
/** The options of a Client, all optional. */
export type ClientOptions = {
    /** The agent's id. Default: the event's agent_id, else runtime and session. */
    agent?: string;
    /** The daemon's URL, or the file that has it. Default: $HOOKFABRIC_DAEMON, else daemon.json in the state folder. */
    daemon?: string;
    /** The state folder. Default: $HOOKFABRIC_STATE, else hookfabric below $XDG_STATE_HOME. */
    state?: string;
    /** The program to run if the daemon does not answer. Default: $HOOKFABRIC_AGENTSHIM, else agentshim on the PATH. */
    agentshim?: string;
    /** Start a daemon if none runs. Default: false. */
    start?: boolean;
    /** The decision on calls that no broker judged. Default: "deny". */
    unreachable?: Unreachability;
};
/** Neither the daemon nor `agentshim hook` answered. */
export declare class Unreachable extends Error {
}
/** The events of the Claude Agent SDK for which claudeHooks adds a hook by default. */
export declare const EVENTS: readonly ["SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop"];
/** Asks the fabric for one agent. */
export declare class Client {
    #private;
    readonly agent: string | undefined;
    readonly unreachable: Unreachability;
    constructor(options?: ClientOptions);
    /**
     * Returns the verdict on an event. Its hook_type names the event. render adds messages for
     * that API to the verdict. Only the daemon renders: a verdict of agentshim has no messages.
     * If neither the daemon nor agentshim answers, the option unreachable decides.
     */
    ask(event: FabricEvent, options?: {
        render?: Format;
        timeoutMs?: number;
        signal?: AbortSignal;
    }): Promise<Verdict>;
    /**
     * Acknowledges that the agent has read the content of these verdicts, named by their event_id.
     * The fabric delivers content again if it is not acknowledged. `agentshim hook` acknowledges its
     * verdicts itself; these have no event_id, and ack skips them. For an agent that never calls ack,
     * the next event acknowledges. Rejects with Unreachable.
     */
    ack(...eventIDs: (string | undefined)[]): Promise<void>;
    /**
     * Returns whether the agent is in vote-only mode: answers of other agents then reach it by a
     * restart, not during its turn. voteOnly sets the mode first, in all sessions of the agent.
     * Rejects with Unreachable.
     */
    mode(voteOnly?: boolean): Promise<boolean>;
    /** Reports that the agent starts again. Its next event delivers the answers that were deferred until then. Rejects with Unreachable. */
    checkpoint(): Promise<void>;
    /** Sends a runtime's own hook payload, and returns the answer in that runtime's protocol. Rejects with Unreachable. */
    hook(runtime: string, event: string, payload: JSONObject, options?: {
        timeoutMs?: number;
        signal?: AbortSignal;
    }): Promise<JSONObject>;
}
/** The options of claudeHooks, all optional. */
export type ClaudeHooksOptions = {
    /** Hooks that you have. They run first and are not changed. */
    existing?: Hooks;
    /** The agent's id. Default: claude-<session>. */
    agent?: string;
    /** The SDK's timeout in milliseconds. The hooks answer a little earlier. Default: 60000. */
    timeoutMs?: number;
    /** The client to use. Default: a new one with agent and unreachable. */
    client?: Client;
    /** The SDK's names of the events to ask about. Default: EVENTS. */
    events?: readonly string[];
    /** The decision on calls that no broker judged. Default: "deny". */
    unreachable?: Unreachability;
};
/**
 * Returns hooks for the options of the Claude Agent SDK: the existing ones, then the fabric's.
 * Hooks of the fabric in existing are not added a second time.
 */
export declare function claudeHooks(options?: ClaudeHooksOptions): {
    [event: string]: HookCallbackMatcher[];
};
