package schema_test

import (
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	eventID = "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"
	fabric  = "f-4mk2t9qd"
	// earlierID is the id of an earlier event.
	earlierID = "0199f3c1-5a00-7c3d-8e4f-102132435465"
)

// wireExamples returns the messages of the golden files, by the name of the file: one of
// every kind, and one event of every type.
func wireExamples() map[string]any {
	all := map[string]any{
		"ack":           &schema.Ack{Fabric: fabric, Events: []string{eventID}},
		"beat":          beat(),
		"config":        config(),
		"config.packs":  packs(),
		"control-error": &schema.ControlError{Code: schema.CodeUnavailable, Message: `the verb "inject" is not served by this version`},
		"control-error.limited": &schema.ControlError{
			Code: schema.CodeUnavailable, Message: `there are more than 200 requests a second of the agent "agent1"`, RetryAfter: took(5000),
		},
		"feed.verdict": record(postToolUse, delivered(), 1840),
		"feed.aside":   aside(),
		"feed.expired": expired(),
		"records.line": storedRecord(),
		"status":       status(),
	}
	for t, e := range events() {
		all["event."+string(t)] = e
	}
	maps.Copy(all, results())
	maps.Copy(all, verdicts())
	maps.Copy(all, replies())
	maps.Copy(all, configuring())
	maps.Copy(all, queueing())
	maps.Copy(all, policing())
	maps.Copy(all, freezing())
	return all
}

func events() map[schema.EventType]*schema.Event {
	event := func(t schema.EventType, fill func(e *schema.Event)) *schema.Event {
		e := &schema.Event{
			HookType: t, EventID: eventID, SessionID: "7be05901-cf1a-4925", AgentID: "agent1", Runtime: "claude",
			Timestamp: time.Date(2026, 11, 21, 10, 0, 0, 250e6, time.UTC),
		}
		fill(e)
		return e
	}
	tool := func(e *schema.Event) {
		e.ToolName, e.ToolKind, e.ToolUseID = "Bash", "shell", "toolu_01"
		e.ToolInput = jsontext.Value(`{"command":"rm -r build","timeout":120}`)
	}
	return map[schema.EventType]*schema.Event{
		schema.SessionStart: event(schema.SessionStart, func(e *schema.Event) {
			e.Cwd, e.Labels = "/home/dev/project", map[string]string{"team": "platform", "tier": "prod"}
		}),
		schema.SessionEnd:       event(schema.SessionEnd, func(*schema.Event) {}),
		schema.UserPromptSubmit: event(schema.UserPromptSubmit, func(e *schema.Event) { e.Prompt = "Tidy the build folder." }),
		schema.BeforeLLMCall: event(schema.BeforeLLMCall, func(e *schema.Event) {
			e.Iteration, e.HistoryRef = 3, schema.HistoryRef([]schema.Object{{Digest: "sha256-" + strings.Repeat("0f", 32), Size: 65540}})
			e.History = jsontext.Value(`[{"role":"user","content":"Tidy the build folder."}]`)
			e.Flags = jsontext.Value(`{"reviewed":true}`)
		}),
		schema.AfterLLMCall: event(schema.AfterLLMCall, func(e *schema.Event) {
			e.Iteration, e.Message = 3, jsontext.Value(`{"role":"assistant","content":"I will remove it."}`)
		}),
		schema.PreToolUse: event(schema.PreToolUse, func(e *schema.Event) {
			tool(e)
			e.OrchestratorID, e.Cwd = "orch-7", "/home/dev/project"
			e.Native = `{"hook_event_name":"PreToolUse","tool_name":"Bash"}`
		}),
		schema.PostToolUse: event(schema.PostToolUse, func(e *schema.Event) {
			tool(e)
			e.ToolArgs = jsontext.Value(`{"command":"rm -r build"}`)
			e.ToolOutput = jsontext.Value(`{"stdout":"","stderr":"","interrupted":false}`)
		}),
		schema.ToolError: event(schema.ToolError, func(e *schema.Event) {
			tool(e)
			e.Error = "exit status 1: rm: cannot remove 'build'"
		}),
		schema.BeforeFinalResponse: event(schema.BeforeFinalResponse, func(e *schema.Event) { e.Message = jsontext.Value(`"Done."`) }),
		schema.QueryEnd:            event(schema.QueryEnd, func(e *schema.Event) { e.Response = jsontext.Value(`"Done."`) }),
	}
}

func results() map[string]any {
	return map[string]any{
		"result": &schema.Result{
			Decision: schema.Ask, Reason: "deletes files",
			UpdatedInput: jsontext.Value(`{"command":"rm -ri build"}`),
			Effects:      []jsontext.Value{jsontext.Value(`{"set_flag":{"reviewed":true}}`)},
			Injections:   []schema.Injection{{Content: "Ask before you delete.", Strategy: schema.UserMessage}},
			HookErrors:   []string{"the ledger was locked"},
		},
		"result.stop":   &schema.Result{Decision: schema.Stop, Value: jsontext.Value(`"The budget is spent."`)},
		"result.output": &schema.Result{UpdatedOutput: jsontext.Value(`"[redacted]"`)},
		"result.none":   &schema.Result{},
	}
}

func verdicts() map[string]any {
	return map[string]any{
		"verdict.continue": &schema.Verdict{Decision: schema.Continue, ConfigVersion: 7, Fabric: fabric},
		"verdict.deny":     denied(),
		"verdict.rewrite": &schema.Verdict{
			Decision: schema.Allow, AutoApprove: true, UpdatedInput: jsontext.Value(`{}`),
			Effects:       []jsontext.Value{jsontext.Value(`{"set_flag":{"reviewed":true}}`)},
			ExecutedHooks: []schema.ExecutedHook{{Hook: "rewriter", Decision: schema.Allow, Outcome: schema.OK, Duration: took(310)}},
			ConfigVersion: 7, Fabric: fabric,
		},
		"verdict.post":   delivered(),
		"verdict.queued": queued(),
		"verdict.restart": &schema.Verdict{
			Decision: schema.Continue, Restart: &schema.Restart{
				Reason: "answers of other agents came", Content: "agent2.1: see hookfabric:temp_workspaces/agent2",
			},
			Workspaces: []schema.Workspace{workspace()}, ConfigVersion: 7, Fabric: fabric,
		},
		"verdict.stop": &schema.Verdict{
			Decision: schema.Stop, Value: jsontext.Value(`{"role":"assistant","content":"The time is over."}`),
			Restart:   &schema.Restart{Reason: "a new answer arrived", Content: "Read agent2's answer first."},
			Terminate: &schema.Terminate{Reason: "ten calls were denied in a row"}, ConfigVersion: 7, Fabric: fabric,
		},
	}
}

func delivered() *schema.Verdict {
	return &schema.Verdict{
		Decision: schema.Deny, Reason: "do not print secrets", UpdatedOutput: jsontext.Value(`"[redacted]"`),
		Injections: []schema.Injection{
			{Content: "A test failed on main.", Strategy: schema.ToolResult, Hook: "delivery", Source: "peer", Sequence: 41},
			{Content: "Stop after this step.", Strategy: schema.UserMessage, Hook: "reminders"},
		},
		ExecutedHooks: []schema.ExecutedHook{
			{Hook: "redact", Decision: schema.Deny, Reason: "do not print secrets", Outcome: schema.OK, Duration: took(2100), Worker: "w2"},
			{Hook: "audit", Outcome: schema.Deadline, Duration: took(5e6), Worker: "w2", Error: "did not answer before its deadline"},
		},
		HookErrors: []string{`hook "audit": did not answer before its deadline`}, ConfigVersion: 7, Fabric: fabric,
	}
}

// queued returns a verdict that delivers items in each of their forms.
func queued() *schema.Verdict {
	return &schema.Verdict{
		Decision: schema.Continue,
		Injections: []schema.Injection{
			{
				Content:  "agent2.1 -> agent2.2: the parser is in hookfabric:temp_workspaces/agent2/parser.go",
				Strategy: schema.ToolResult, Hook: schema.MidStreamInjection, Source: schema.SourcePeer, Sequence: 44, Sequences: []uint64{41, 44},
			},
			{
				Strategy: schema.UserMessage, Hook: schema.HumanInput, Source: schema.SourceHuman, Sequence: 45,
				Object: &schema.Object{Digest: "sha256-" + strings.Repeat("1b", 32), Size: 9437184},
			},
			{
				Strategy: schema.ToolResult, Hook: schema.MidStreamInjection, Source: schema.SourcePeer, Sequence: 46,
				Object: &schema.Object{Digest: "sha256-" + strings.Repeat("2c", 32), Size: 5242880},
				Folder: &schema.Folder{Name: "agent2", Path: "/srv/agents/agent2"},
			},
		},
		Workspaces: []schema.Workspace{workspace()},
		Acked:      []string{earlierID}, ConfigVersion: 7, Fabric: fabric,
	}
}

func workspace() schema.Workspace {
	return schema.Workspace{
		Name: "agent2", Path: schema.WorkspacePath("agent2"),
		Snapshot: schema.Object{Digest: "sha256-" + strings.Repeat("c4", 32), Size: 20480},
	}
}

func denied() *schema.Verdict {
	return &schema.Verdict{
		Decision: schema.Deny, Reason: "deletes files outside the project",
		ExecutedHooks: []schema.ExecutedHook{{
			Hook: "no-destructive-shell", Decision: schema.Deny, Reason: "deletes files outside the project",
			Outcome: schema.OK, Duration: took(1200), Worker: "w1",
		}},
		ConfigVersion: 7, Fabric: fabric,
	}
}

func shadowed() *schema.Verdict {
	v := denied()
	v.ExecutedHooks[0].Mode, v.ConfigVersion, v.Fabric = schema.Shadow, 0, ""
	return v
}

func replies() map[string]any {
	refusal := func(s schema.Status, why string) *schema.BatchReply {
		return &schema.BatchReply{Worker: "w1", Status: s, Error: why}
	}
	return map[string]any{
		"reply": &schema.BatchReply{Worker: "w1", Outcomes: []schema.Outcome{
			{Hook: 0, Took: took(120)},
			{Hook: 3, Kind: schema.OK, Result: schema.Denied("deletes files outside the project"), Took: took(1200)},
		}},
		"reply.failures": &schema.BatchReply{Worker: "w1", Outcomes: []schema.Outcome{
			{Hook: 0, Kind: schema.Errored, Error: "exit status 3: no such policy", Took: took(900)},
			{Hook: 1, Kind: schema.Deadline, Took: took(4.98e6)},
			{Hook: 2, Kind: schema.Busy, Error: "all 2 slots of this hook are in use"},
			{Hook: 4, Kind: schema.LoadError, Error: "open ./policies/shell.sh: no such file or directory"},
		}},
		"reply.busy":      refusal(schema.StatusBusy, ""),
		"reply.stale":     refusal(schema.StatusStale, "config version 7 is not known here"),
		"reply.draining":  refusal(schema.StatusDraining, ""),
		"reply.mismatch":  refusal(schema.StatusMismatch, (&schema.Mismatch{Header: "Bash", Body: "Read"}).Error()),
		"reply.malformed": refusal(schema.StatusMalformed, "the event's tool_input is a list; it must be a JSON object"),
	}
}

func beat() *schema.Beat {
	return &schema.Beat{
		Pool: "default", Worker: "w1", InFlight: 2, Capacity: 64, Draining: true, Versions: []uint64{5, 6, 7},
		Batches: []schema.BatchProgress{
			{Batch: "b-91", Outcomes: []schema.Outcome{{Hook: 0, Took: took(120), Worker: "w1"}}},
			{Batch: "b-92"},
		},
		LoadErrors: map[string]string{"lint": "no module named policies.lint"},
	}
}

// record returns the record of a verdict at a fixed time.
func record(r schema.Routing, v *schema.Verdict, microseconds float64) *schema.Record {
	rec := schema.RecordOf(&r, v, took(microseconds).Std())
	rec.Time = time.Date(2026, 11, 21, 10, 0, 0, 251840e3, time.UTC)
	return rec
}

// storedRecord returns a stored record of a fabric that also stores content.
func storedRecord() *schema.Record {
	rec := record(preToolUse, &schema.Verdict{
		Decision: schema.Deny, Reason: "the fabric has more to do than it can", ConfigVersion: 7,
		ExecutedHooks: []schema.ExecutedHook{{Hook: "no-destructive-shell", Decision: schema.Deny, Outcome: schema.Busy}},
	}, 510_000)
	rec.Attempt, rec.Failed, rec.Shed, rec.Malformed = 2, schema.FailedClosed, true, true
	rec.TraceID = "0af7651916cd43dd8448eb211c80319c"
	rec.Runtime, rec.Host, rec.Broker, rec.ToolKind = "claude", "build-7", "node-a-17-x3k9", "shell"
	rec.InputHash = "sha256-44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
	rec.Content, rec.Cut = jsontext.Value(`{"tool_input":{"command":"curl -u me:[removed] https://example.org"}}`), []string{"tool_output"}
	return rec
}

func aside() *schema.Record {
	rec := record(preToolUse, shadowed(), 0)
	rec.Aside, rec.Would = true, schema.Deny
	return rec
}

// expired returns the record of an expired item.
func expired() *schema.Record {
	rec := schema.ExpiredRecord(&schema.Item{
		Scope: schema.Scope{Session: "7be05901-cf1a-4925"}, Producer: "ci", Number: 17, Key: "s-7be05901-cf1a-4925.ci.17", Sequence: 40,
		Source: "ci", Strategy: schema.ToolResult, Content: "A test failed on main.", Matcher: "Bash",
	})
	rec.Time, rec.Expired.Age = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), schema.DefaultTimeout
	return rec
}

var postToolUse = schema.Routing{
	Event: schema.PostToolUse, Agent: "agent1", Session: "7be05901-cf1a-4925", Tool: "Bash", ID: eventID,
}

var preToolUse = schema.Routing{
	Event: schema.PreToolUse, Agent: "agent1", Session: "7be05901-cf1a-4925", Tool: "Bash", ID: eventID,
}

func status() *schema.FabricStatus {
	return &schema.FabricStatus{
		Fabric: fabric, Version: "0.1.0", ConfigVersion: 7, Ready: true, Hooks: 2, InFlight: 3,
		LoadErrors: map[string]string{"lint": "no module named policies.lint"},
		Pools: []schema.PoolStatus{
			{Pool: "default", Workers: []schema.WorkerStatus{
				{Worker: "w1", InFlight: 2, Capacity: 64, Versions: []uint64{5, 6, 7}},
				{Worker: "w2", Capacity: 64, Draining: true, Silent: true},
			}},
			{Pool: "gpu", Workers: []schema.WorkerStatus{}},
		},
	}
}

func config() *schema.Config {
	return &schema.Config{
		Version: 7, Presets: []string{"delivery"}, PythonPath: []string{"./lib"}, Dir: "/etc/hookfabric",
		Hooks: []schema.Hook{
			{
				Name: "human_input", Event: schema.PostToolUse, Type: schema.Builtin, Handler: schema.HumanInput,
				Timeout: schema.DefaultTimeout, Readonly: true, Idempotent: true, System: true, Preset: "delivery",
			},
			{
				Name: "no-destructive-shell", Event: schema.PreToolUse, Matcher: "Bash|run_shell_command", Type: schema.Command,
				Handler: "./policies/shell.sh", Args: []string{"--strict"}, Timeout: took(5e6), FailClosed: true, Pool: schema.DefaultPool,
				Readonly: true, Idempotent: true, When: `tool_input.command.contains("rm ")`, Needs: []string{schema.NeedNative},
				MaxConcurrent: 4, System: true, AutoApprove: true, Shell: true, Env: []string{"CI"},
			},
			{
				Name: "log", Event: schema.PostToolUse, Agent: "agent*", Type: schema.Builtin, Handler: "log",
				Timeout: schema.DefaultTimeout, Pool: schema.DefaultPool, Mode: schema.Shadow, Options: map[string]any{"level": "info"},
			},
		},
		Overrides: []schema.Override{{Agent: "agent1", Event: schema.PostToolUse}},
	}
}

func took(microseconds float64) schema.Duration {
	return schema.Duration(microseconds * float64(time.Microsecond))
}

// packs is a configuration with a pack of rules.
func packs() *schema.Config {
	return &schema.Config{
		Version: 8,
		Packs: []schema.Pack{{
			Name: "ours", File: "./rules/ours.yaml", Mode: schema.Shadow, Exclude: []string{"a"}, Shadow: []string{"b"}, Unparsed: schema.RuleAsk, Dynamic: schema.RuleShadow,
		}},
		PackExceptions: []schema.RuleException{{Rule: "b", Agents: "release-*", Until: "2027-01-31", Owner: "platform"}},
		Hooks:          []schema.Hook{{Name: "ours-shadow", Event: schema.PreToolUse, Type: schema.Builtin, Handler: schema.RulesHandler, Pool: "default", Mode: schema.Shadow, Pack: "ours"}},
	}
}
