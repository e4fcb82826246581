package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// many is how many queries run at the same time where there is more than one.
const many = 16

// remote is the pool that has a hookworker of its own.
const remote = "remote"

// A setup is the hooks that a query's events meet.
type setup struct {
	name string
	// agent is whose query it is: the configuration gives it the hooks.
	agent string
	// hooks is how many are shown each event, messages how many messages to workers a
	// whole query must take.
	hooks, messages int
	way             roles.Way
}

// setups lists everything that is measured; the first is what the others are
// divided by.
func setups() []setup {
	return []setup{
		{name: "bare request-replies", agent: "loop-raw", way: roles.Raw},
		{name: "no hook", agent: "loop-none", way: roles.Fabric},
		{name: "a hook on each event whose when is false", agent: "loop-false", way: roles.Fabric},
		{name: "a hook on each event inside broker", agent: "loop-broker", hooks: 1, way: roles.Fabric},
		{name: "a hook on each event of a remote pool", agent: "loop-remote", hooks: 1, messages: roles.QueryEvents, way: roles.Fabric},
	}
}

// shapes are in which order tools run: one after the other, and at once.
func shapes() []bool { return []bool{false, true} }

// A contender is a setup in one shape.
type contender struct {
	setup
	together bool // the tools run at once
}

func (c contender) title() string {
	if c.together {
		return c.name + ", tools at once"
	}
	return c.name + ", tools in sequence"
}

func (c contender) target() roles.Target {
	return roles.Target{Way: c.way, Query: &roles.Query{Agent: c.agent, AtOnce: c.together, Hooks: c.hooks}}
}

func contenders() []contender {
	var all []contender
	for _, atOnce := range shapes() {
		for _, s := range setups() {
			all = append(all, contender{s, atOnce})
		}
	}
	return all
}

// hooksYAML gives each agent its hooks at the events of a query.
func hooksYAML() string {
	var b strings.Builder
	b.WriteString("presets: []\nagents:\n")
	each := func(agent, more string) {
		fmt.Fprintf(&b, "  - id: %s\n    hooks:\n", agent)
		for _, e := range slices.Sorted(slices.Values(events())) {
			fmt.Fprintf(&b, "      %s:\n        - {type: builtin, handler: allow, %s}\n", e, more)
		}
	}
	each("loop-broker", "pool: "+schema.DefaultPool)
	each("loop-remote", "pool: "+remote)
	each("loop-false", `pool: `+remote+`, when: "iteration > 1000"`)
	return b.String()
}

// events are those of a query in which no tool fails.
func events() []schema.EventType {
	return []schema.EventType{
		schema.UserPromptSubmit, schema.BeforeLLMCall, schema.AfterLLMCall, schema.PreToolUse, schema.PostToolUse, schema.BeforeFinalResponse, schema.QueryEnd,
	}
}
