package fabric_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// batches tells, each time it is called, which batches were sent to workers
// since then: of each the hooks, by their place in the file.
func (f *fabric) batches() func() []string {
	f.t.Helper()
	var mu sync.Mutex
	var sent []string
	_, err := f.connect("overhears").Subscribe("hook.v1.run.>", func(m *nats.Msg) {
		b, err := bus.ParseBatchMsg(m)
		if err != nil {
			f.t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, strings.Trim(fmt.Sprint(b.Hooks), "[]"))
	})
	if err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
	return func() []string {
		<-time.After(time.Second) // shadow hooks are asked after the verdict
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := sent
		sent = nil
		return got
	}
}

// wants compares the batches that were sent.
func wants(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("batches of the hooks %q were sent; want %q", got, want)
	}
}

var quiet = handlers{"x": does(schema.Result{}), "y": does(schema.Result{}), "z": does(schema.Result{})}

func TestConditions(t *testing.T) {
	inBubbles(t, []scenario{
		{"a false condition costs no message, a true one costs one", falseCostsNothing},
		{"of a batch only the hooks whose conditions hold are asked for, in one message", onlyThoseThatHold},
		{"conditions hold at every event", atEveryEvent},
		{"conditions of an agent's own hooks", ofAnAgentsOwn},
		{"conditions of shadow hooks", ofShadowHooks},
		{"a condition sees the input as the hooks before left it", seesTheRewrite},
		{"a condition that cannot be evaluated counts as true", countsAsTrue},
	})
}

func falseCostsNothing(t *testing.T) {
	f := start(t, `{presets: [], hooks: {PreToolUse: [{type: builtin, handler: x, pool: go, when: 'tool_input.command.contains("rm ")'}]}}`)
	f.serve("w", quiet)
	sent, a := f.batches(), f.agent("agent1")
	a.call("Bash", bash)
	wants(t, sent())
	a.call("Bash", `{"command":"rm -rf /"}`)
	wants(t, sent(), "0")
}

func onlyThoseThatHold(t *testing.T) {
	f := start(t, `
presets: []
hooks:
  PreToolUse:
    - {type: builtin, handler: x, pool: go, readonly: true, when: 'tool_input.n > 1'}
    - {type: builtin, handler: y, pool: go, readonly: true}
    - {type: builtin, handler: z, pool: go, readonly: true, when: 'tool_input.n > 2'}
`)
	f.serve("w", quiet)
	sent, a := f.batches(), f.agent("agent1")
	for n := range 4 {
		a.call("Bash", fmt.Sprintf(`{"n":%d}`, n))
	}
	wants(t, sent(), "1", "1", "0 1", "0 1 2")
}

func atEveryEvent(t *testing.T) {
	var yaml strings.Builder
	yaml.WriteString("presets: []\nhooks:\n")
	for _, e := range schema.EventTypes() {
		fmt.Fprintf(&yaml, "  %s: [{type: builtin, handler: x, pool: go, when: 'iteration == 2 && hook_type == %q'}]\n", e, e)
	}
	f := start(t, yaml.String())
	f.serve("w", quiet)
	sent, a := f.batches(), f.agent("agent1")
	for _, e := range schema.EventTypes() {
		for _, n := range []int{1, 2} {
			event := &schema.Event{HookType: e, Iteration: n}
			if e.HasTool() {
				event.ToolName = "Bash"
			}
			a.ask(event)
		}
		if got := sent(); len(got) != 1 {
			t.Errorf("%s: batches of the hooks %q were sent; want one", e, got)
		}
	}
}

func ofAnAgentsOwn(t *testing.T) {
	f := start(t, `
presets: []
agents:
  - id: "agent*"
    hooks:
      PreToolUse: [{type: builtin, handler: x, pool: go, when: 'agent_id == "agent1" && tool_name in ["Bash", "Edit"]'}]
`)
	f.serve("w", quiet)
	sent := f.batches()
	f.agent("agent1").call("Write", `{}`)
	f.agent("agent2").call("Bash", bash)
	wants(t, sent())
	f.agent("agent1").call("Bash", bash)
	wants(t, sent(), "0")
}

func ofShadowHooks(t *testing.T) {
	f := start(t, `
presets: []
hooks:
  PreToolUse:
    - {type: builtin, handler: x, pool: go, mode: shadow, when: 'tool_input.?command.orValue("") == "ls"'}
    - {type: builtin, handler: y, pool: go, mode: shadow, when: 'has(tool_input.path)'}
`)
	f.serve("w", quiet)
	sent, a := f.batches(), f.agent("agent1")
	a.call("Bash", `{"command":"rm"}`)
	wants(t, sent())
	a.call("Bash", bash)
	wants(t, sent(), "0")
	a.call("Write", `{"path":"x"}`)
	wants(t, sent(), "1")
}

func seesTheRewrite(t *testing.T) {
	f := start(t, `
presets: []
hooks:
  PreToolUse:
    - {type: builtin, handler: safe, pool: go}
    - {type: builtin, handler: x, pool: go, when: 'tool_input.command.contains("rm")'}
    - {type: builtin, handler: y, pool: go, when: 'tool_input.command == "ls"'}
`)
	hs := handlers{"safe": func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Rewritten(jsontext.Value(`{"command":"ls"}`)), nil
	}, "x": quiet["x"], "y": quiet["y"]}
	f.serve("w", hs)
	sent, a := f.batches(), f.agent("agent1")
	a.call("Bash", `{"command":"rm -rf /"}`)
	wants(t, sent(), "0", "2")
	a.want(`Bash ran with {"command":"ls"}`, `result "done"`)
}

func countsAsTrue(t *testing.T) {
	f := start(t, `{presets: [], hooks: {PreToolUse: [{type: builtin, handler: no, pool: go, when: 'tool_input.command.contains("rm ")'}]}}`)
	f.serve("w", handlers{"no": does(schema.Denied("asked"))})
	sent, a := f.batches(), f.agent("agent1")
	a.call("Write", `{"path":"x"}`)
	wants(t, sent(), "0")
	a.want("error asked")
}
