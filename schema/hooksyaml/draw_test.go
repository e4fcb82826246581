package hooksyaml_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

// configs draws a configuration that a file can have, in the order of the file.
func configs(t *rapid.T) schema.Config {
	c := schema.Config{
		Version: rapid.Uint64Max(1).Draw(t, "version"), Dir: rapid.SampledFrom([]string{"", "/etc/hooks"}).Draw(t, "dir"),
		Presets:    rapid.SampledFrom([][]string{{"delivery"}, {}}).Draw(t, "presets"),
		PythonPath: rapid.SliceOfNDistinct(words(), 0, 3, rapid.ID[string]).Draw(t, "path"),
		Python: schema.PythonHosts{
			Interpreter: rapid.OneOf(rapid.Just(""), words()).Draw(t, "interpreter"), Hosts: rapid.IntRange(0, 64).Draw(t, "hosts"),
			Memory:  rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1<<24, 1<<40), rapid.SampledFrom([]int64{1 << 30, 5e8, 1 << 40, 20000 << 10})).Draw(t, "memory"),
			Recycle: rapid.IntRange(0, 1000).Draw(t, "recycle"),
		},
	}
	names := map[string]bool{}
	for _, agent := range append([]string{""}, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "team-*", "true", "7", "a: b", "[ab]?"}), 0, 3, rapid.ID[string]).Draw(t, "agents")...) {
		for _, event := range rapid.SliceOfNDistinct(rapid.SampledFrom(schema.EventTypes()), 0, 3, rapid.ID[schema.EventType]).Draw(t, "events") {
			if agent != "" && rapid.Bool().Draw(t, "override") {
				c.Overrides = append(c.Overrides, schema.Override{Agent: agent, Event: event, Registered: rapid.Bool().Draw(t, "registered")})
			}
			for range rapid.IntRange(0, 4).Draw(t, "hooks") {
				h := hooks(t, agent, event)
				for n := 1; h.Name == "" || names[h.Name]; n++ {
					h.Name = strings.TrimSuffix(fmt.Sprintf("%s-%d", rapid.SampledFrom([]string{"a", "p.f", "log", "true", "human_input"}).Draw(t, "base"), n), "-1")
				}
				names[h.Name] = true
				c.Hooks = append(c.Hooks, h)
			}
		}
	}
	c.Hooks = append(presetsOf(&c), c.Hooks...)
	return c
}

// presetsOf returns the preset hooks of c, implemented a second time.
func presetsOf(c *schema.Config) (out []schema.Hook) {
	if len(c.Presets) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, h := range c.Hooks {
		names[h.Name] = true
	}
	for line := range strings.FieldsSeq(`
PostToolUse/mid_stream_injection PostToolUse/high_priority_task_reminder PostToolUse/human_input PostToolUse/subagent_complete
PostToolUse/background_tool_complete PostToolUse/round_timeout_post
ToolError/mid_stream_injection ToolError/human_input ToolError/subagent_complete ToolError/background_tool_complete ToolError/round_timeout_post
BeforeFinalResponse/mid_stream_injection BeforeFinalResponse/human_input BeforeFinalResponse/subagent_complete
BeforeFinalResponse/background_tool_complete BeforeFinalResponse/round_timeout_post
PreToolUse/round_timeout_pre`) {
		event, handler, _ := strings.Cut(line, "/")
		h := schema.Hook{Name: handler, Event: schema.EventType(event), Type: schema.Builtin, Handler: handler, Timeout: schema.DefaultTimeout,
			Readonly: true, Idempotent: true, System: true, Preset: "delivery"}
		if handler == "high_priority_task_reminder" {
			h.Matcher, h.Pool = "*update_task_status", "default"
		}
		for _, o := range c.Hooks {
			if o.Event != schema.PostToolUse || o.Agent != "" || o.Type != h.Type || o.Handler != handler {
				continue
			}
			if event == "ToolError" || event == "BeforeFinalResponse" {
				h.Options = o.Options
			}
			if event == "ToolError" {
				h.Matcher = o.Matcher
			}
		}
		for n := 2; names[h.Name]; n++ {
			h.Name = fmt.Sprintf("%s-%d", handler, n)
		}
		if !slices.ContainsFunc(c.Hooks, func(o schema.Hook) bool {
			return o.Agent == "" && o.Event == h.Event && o.Handler == handler && o.Type == h.Type
		}) {
			names[h.Name] = true
			out = append(out, h)
		}
	}
	return out
}

func hooks(t *rapid.T, agent string, event schema.EventType) schema.Hook {
	h := schema.Hook{
		Agent: agent, Event: event, Name: rapid.OneOf(rapid.Just(""), printable()).Draw(t, "name"),
		Type:       rapid.SampledFrom([]schema.Kind{schema.Builtin, schema.Command, schema.Python, schema.HTTP}).Draw(t, "type"),
		Timeout:    schema.Duration(rapid.OneOf(rapid.SampledFrom([]time.Duration{30 * time.Second, time.Second, time.Hour, 90 * time.Minute, 24 * time.Hour}), rapid.Custom(durations)).Draw(t, "timeout")),
		FailClosed: rapid.Bool().Draw(t, "fail_closed"), Pool: rapid.SampledFrom([]string{"default", "gpu", "1", "true", "-"}).Draw(t, "pool"),
		Readonly: rapid.Bool().Draw(t, "readonly"), Idempotent: rapid.Bool().Draw(t, "idempotent"),
		Mode: rapid.SampledFrom([]schema.Mode{schema.Enforce, schema.Shadow}).Draw(t, "mode"),
		When: rapid.OneOf(rapid.Just(""), words()).Draw(t, "when"), MaxConcurrent: rapid.IntRange(0, 9).Draw(t, "max_concurrent"),
		Needs:      rapid.SampledFrom([][]string{nil, {"native"}, {"history", "native"}}).Draw(t, "needs"),
		System:     agent == "" && rapid.Bool().Draw(t, "system"),
		Registered: rapid.Bool().Draw(t, "registered"),
	}
	if event.HasTool() {
		h.Matcher = rapid.SampledFrom([]string{"", "*", "Write|Edit", "mcp__*", " Bash", "[!a]?", "'"}).Draw(t, "matcher")
	}
	h.AutoApprove = event == schema.PreToolUse && rapid.Bool().Draw(t, "auto_approve")
	switch h.Type {
	case schema.Builtin:
		h.Handler = rapid.SampledFrom([]string{"log", "7", "true", "a.sh", "human_input", "high_priority_task_reminder", "round_timeout_pre"}).Draw(t, "handler")
		h.Options, _ = options(3).Draw(t, "options").(map[string]any)
		h = stage(h)
	case schema.Command:
		h.Handler = rapid.OneOf(rapid.SampledFrom([]string{"./a", "b/a.sh", "a.py", "jq", "p.f", "https://p.f", "./~"}), words()).Draw(t, "handler")
		h.Args, h.Env = rapid.SliceOfN(texts("\x00"), 0, 3).Draw(t, "args"), variables().Draw(t, "env")
		h.Shell = rapid.Bool().Draw(t, "shell")
	case schema.Python:
		h.Handler = rapid.SampledFrom([]string{"p.f", "p.mod.f", "prüfung.los"}).Draw(t, "handler")
		h.Env = variables().Draw(t, "env")
	case schema.HTTP:
		h.Handler = rapid.SampledFrom([]string{"https://p.example/a?b=%23c", "https://[::1]:9/"}).Draw(t, "handler")
		h.Headers = rapid.MapOfN(rapid.SampledFrom([]string{"X-Team", "authorization", "~", "*"}), rapid.SampledFrom([]string{"Bearer ${TOKEN}", "5", "a: b", "ü #"}), 0, 3).Draw(t, "headers")
		h.Sign = rapid.SampledFrom([]string{"", "SECRET", "null", "y"}).Draw(t, "sign")
		h.TLS = rapid.SampledFrom([]schema.TLS{{}, {CA: "ca.pem"}, {Cert: "5", Key: "true", ServerName: "::1"}}).Draw(t, "tls")
	}
	return h
}

// stage limits a stage to fields and events that a file can have.
func stage(h schema.Hook) schema.Hook {
	if !h.Stage() {
		return h
	}
	out := schema.Hook{Agent: h.Agent, Event: h.Event, Name: h.Name, Type: h.Type, Handler: h.Handler, Timeout: schema.DefaultTimeout, Readonly: true, Idempotent: true,
		System: h.System, Registered: h.Registered, Options: h.Options, Matcher: h.Matcher}
	if h.Event == schema.PreToolUse {
		out.Handler, out.FailClosed = schema.RoundTimeoutPre, h.FailClosed
	} else if out.Handler = schema.HumanInput; !h.Event.TakesDelivery() {
		out.Handler, out.Pool = "log", "default"
	}
	return out
}

func durations(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(24*time.Hour)).Draw(t, "duration"))
}

// notDrawn are the fields that are not written, and those of packs, which have a test of their own.
var notDrawn = []string{"Fabric", "Packs", "PackExceptions", "Pack"}

// The writer could forget a field that is never drawn.
func TestEveryFieldIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	for seed := range 300 {
		c := rapid.Custom(configs).Example(seed)
		note(drawn, reflect.ValueOf(c))
		note(drawn, reflect.ValueOf(c.Python))
		for _, h := range c.Hooks {
			note(drawn, reflect.ValueOf(h))
			note(drawn, reflect.ValueOf(h.TLS))
		}
		for _, o := range c.Overrides {
			note(drawn, reflect.ValueOf(o))
		}
	}
	for _, of := range []any{schema.Config{}, schema.PythonHosts{}, schema.Hook{}, schema.TLS{}, schema.Override{}} {
		for f := range reflect.TypeOf(of).Fields() {
			if name := reflect.TypeOf(of).Name() + "." + f.Name; !drawn[name] && !slices.Contains(notDrawn, f.Name) {
				t.Errorf("%s is never drawn; add it where configurations are drawn, and let Write write it", name)
			}
		}
	}
}

// note records the set fields of v.
func note(drawn map[string]bool, v reflect.Value) {
	for f, field := range v.Fields() {
		if !field.IsZero() {
			drawn[v.Type().Name()+"."+f.Name] = true
		}
	}
}

// texts draws texts without the given characters, including texts that YAML could
// misread.
func texts(without string) *rapid.Generator[string] {
	odd := rapid.SampledFrom([]string{"yes", "~", "null", "0755", "1e3", "2026-01-02", "<<", "=", "- a", "a: b", "#", "a #b", "'", `"`, "%d", "@x", "`", "\\", "|\n a", "a\n\nb\n", " \n", "\u2028", "!!int 5", "&a", "*a", "?", "---", "..."})
	return rapid.Map(rapid.OneOf(odd, rapid.StringN(0, 12, -1)), func(s string) string {
		return strings.Map(func(c rune) rune {
			if strings.ContainsRune(without, c) {
				return -1
			}
			return c
		}, s)
	})
}

// words draws texts that are not empty and have no spaces around them.
func words() *rapid.Generator[string] {
	return rapid.Map(texts("\x00"), strings.TrimSpace).Filter(func(s string) bool { return s != "" })
}

func printable() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-zA-Z0-9#:*&!|>@%'"~ü][a-z0-9 :#,{}\[\]-]{0,8}[a-z0-9:#'"]`)
}

func variables() *rapid.Generator[[]string] {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"HOME", "NO", "y", "_", "null"}), 0, 3, rapid.ID[string])
}

// options draws JSON values up to a depth.
func options(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		m := map[string]any{}
		for _, k := range rapid.SliceOfNDistinct(texts(""), 0, 3, rapid.ID[string]).Draw(t, "keys") {
			m[k] = option(depth).Draw(t, "value")
		}
		return m
	})
}

func option(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), texts("").AsAny(), rapid.Float64Range(-1e300, 1e300).AsAny(), rapid.Map(rapid.Int32(), func(n int32) any { return float64(n) }),
		rapid.SampledFrom([]any{0.1, 1e21, 1 << 53 * 1.0, -1e-7, 123456789.0}),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	list := rapid.Custom(func(t *rapid.T) any {
		out := []any{}
		return append(out, rapid.SliceOfN(option(depth-1), 0, 3).Draw(t, "items")...)
	})
	return rapid.OneOf(append(leaves, list, options(depth-1))...)
}
