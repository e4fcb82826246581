package gen

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

// A Shape bounds the drawn configurations. A fabric with only the pool default can run those of the
// zero Shape.
type Shape struct {
	// Pools are the pools that hooks name. If it is empty, hooks use the default pool.
	Pools []string
	// Conditions are the values that hooks may have in when. If it is empty, no hook has a
	// condition.
	Conditions []string
	// Hooks is the largest number of hooks in one configuration; 0 means 8.
	Hooks int
	// Stages adds hooks that run in the aggregator itself, and hooks that belong to a preset.
	Stages bool
}

// A Case is a whole call: a configuration, an event, and the hooks' answers.
type Case struct {
	Config schema.Config
	Event  schema.Event
	Table  Table
}

// Cases draws a call at any event, with a configuration that has hooks for the event.
func Cases(s Shape) *rapid.Generator[Case] {
	return rapid.Custom(func(t *rapid.T) Case {
		event := EventTypes().Draw(t, "event type")
		cfg := Configs(event, s).Draw(t, "config")
		return Case{Config: cfg, Event: Events(event).Draw(t, "event"), Table: Tables(cfg).Draw(t, "answers")}
	})
}

// Judge returns the model's expectation for the case.
func (c Case) Judge(o model.Options) model.Expectation {
	return model.Judge(c.Config, c.Event, c.Table.Script, o)
}

// Configs draws a configuration in which most hooks are about one event: the
// global ones first, then those of agents, named exactly or by a glob.
func Configs(event schema.EventType, s Shape) *rapid.Generator[schema.Config] {
	return rapid.Custom(func(t *rapid.T) schema.Config {
		cfg := schema.Config{Version: rapid.Uint64Range(1, 9).Draw(t, "version")}
		most := s.Hooks
		if most == 0 {
			most = 8
		}
		n := upTo(most).Draw(t, "hooks")
		global := upTo(n).Draw(t, "global hooks")
		auditors := upTo(2).Draw(t, "only readonly hooks") == 2 // they run side by side
		for i := range n {
			h := Hooks(event, s).Draw(t, "hook")
			h.Name = fmt.Sprintf("hook-%d", i)
			h.Readonly = h.Readonly || auditors
			if i >= global {
				h.Agent = entries().Draw(t, "agent entry")
			}
			cfg.Hooks = append(cfg.Hooks, h)
		}
		if upTo(7).Draw(t, "override") == 7 {
			cfg.Overrides = []schema.Override{{Agent: entries().Draw(t, "overriding"), Event: event}}
		}
		return cfg
	})
}

// entries draws the agent keys of a configuration. [Events] are of agent-1, which most keys match.
func entries() *rapid.Generator[string] {
	return oneOf("agent-1", "agent-1", "agent-*", "*", "agent-[12]", "agent-[!1]", "agent-2")
}

// Hooks draws a hook of an event, now and then of another one. It has no name yet.
func Hooks(event schema.EventType, s Shape) *rapid.Generator[schema.Hook] {
	return rapid.Custom(func(t *rapid.T) schema.Hook {
		flag := func(what string) bool { return rapid.Bool().Draw(t, what) }
		rare := func(what string) bool { return upTo(7).Draw(t, what) == 7 }
		h := schema.Hook{
			Event: event, Type: schema.Builtin, Handler: "scripted", Timeout: schema.DefaultTimeout,
			Pool:       oneOf(or(s.Pools, schema.DefaultPool)...).Draw(t, "pool"),
			FailClosed: flag("fail_closed"), Readonly: flag("readonly"), Idempotent: flag("idempotent"),
			System: flag("system"), AutoApprove: flag("auto_approve"),
			When: oneOf(or(s.Conditions, "")...).Draw(t, "when"),
		}
		if rare("shadow") {
			h.Mode = schema.Shadow
		}
		if rare("another event") {
			h.Event = EventTypes().Draw(t, "other event")
		}
		if s.Stages {
			stage(t, &h)
		}
		if h.Event.HasTool() {
			h.Matcher = Matchers().Draw(t, "matcher")
		}
		return h
	})
}

// stage makes a hook, now and then, one of the aggregator's own, and one of a
// preset. Some are as no file may have them: they must do no harm either.
func stage(t *rapid.T, h *schema.Hook) {
	if upTo(3).Draw(t, "stage") == 0 {
		return
	}
	h.Handler = rapid.SampledFrom(append(schema.DeliveryStages(), schema.RoundTimeoutPre, "scripted")).Draw(t, "handler")
	if upTo(2).Draw(t, "preset") == 2 {
		h.Preset = "delivery"
	}
}

func or(some []string, none string) []string {
	if len(some) == 0 {
		return []string{none}
	}
	return some
}

// Matchers draws a matcher; most fit some tool of [Events].
func Matchers() *rapid.Generator[string] {
	return oneOf(
		"", "", "", "", "*", "*", "Bash", "Write|Edit", " Bash | Write ", "mcp__*", "*__vote", "?ash", "[BW]*", "[!B]*", "Bash||Edit", "bash",
	)
}

// Events draws an event of agent-1 with all the parts that its type has.
func Events(event schema.EventType) *rapid.Generator[schema.Event] {
	return rapid.Custom(func(t *rapid.T) schema.Event {
		e := schema.Event{HookType: event, AgentID: "agent-1", SessionID: "session-1", EventID: "0192f000-0000-7000-8000-000000000001"}
		e.Runtime = rapid.SampledFrom([]string{"generic", "claude"}).Draw(t, "runtime")
		switch event {
		case schema.PreToolUse, schema.PostToolUse, schema.ToolError:
			e.ToolName = oneOf("Bash", "Write", "Edit", "mcp__a__vote").Draw(t, "tool")
			e.ToolInput = Objects().Draw(t, "tool_input")
			if event != schema.PreToolUse {
				e.ToolOutput = Values().Filter(some).Draw(t, "tool_output")
			}
			if event == schema.ToolError {
				e.Error = "exit status 1"
			}
		case schema.UserPromptSubmit:
			e.Prompt = "do it"
		case schema.AfterLLMCall, schema.BeforeFinalResponse:
			e.Message = rapid.OneOf(Objects(), rapid.SampledFrom(messages())).Draw(t, "message")
		case schema.QueryEnd:
			e.Response = Values().Filter(some).Draw(t, "response")
		}
		return e
	})
}
