package hooksyaml

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

var (
	documentKeys = []string{"presets", "packs", "pack_exceptions", "python_path", "python", "hooks", "agents"}
	agentKeys    = []string{"id", "hooks", "backend"}
)

// document reads the file's top level. Global hooks come first in registration order,
// wherever they are in the file. It returns the packs that the hooks come from.
func (r *reader) document(root *yaml.Node) (packs []used) {
	r.config = schema.Config{Presets: slices.Clone(presetNames), Hooks: []schema.Hook{}}
	entries, _ := r.mapping(root, "the file", "write hooks: and the events below it")
	var agents, exceptions *entry
	for _, e := range entries {
		switch e.key {
		case "agents":
			agents = &e
			r.massgen = hasBackend(e.value)
		case "packs":
			packs = r.packs(e)
		case "pack_exceptions":
			exceptions = &e
		}
	}
	if exceptions != nil {
		r.exceptions(*exceptions, packs)
	}
	var foreign []entry
	for _, e := range entries {
		switch e.key {
		case "presets":
			r.config.Presets = r.list(e, "presets", r.preset)
		case "python_path":
			r.config.PythonPath = r.list(e, "python_path", r.folder)
		case "python":
			r.python(e)
		case "hooks":
			r.section(e, "")
		case "$schema":
			r.word(e.value, "$schema", "write where the editor finds the schema, such as ./hooks.schema.json")
		case "agents", "packs", "pack_exceptions":
		default:
			foreign = append(foreign, e)
		}
	}
	r.foreign(foreign, "the file", documentKeys, r.massgen)
	if agents != nil {
		r.agents(*agents)
	}
	return packs
}

// hasBackend reports whether some agent has a backend, as only MassGen's files have.
func hasBackend(agents *yaml.Node) bool {
	for _, a := range agents.Content {
		a = deref(a)
		for i := 0; i+1 < len(a.Content); i += 2 {
			if a.Kind == yaml.MappingNode && deref(a.Content[i]).Value == "backend" {
				return true
			}
		}
	}
	return false
}

// foreign handles unknown keys of one place. They are faults, or in MassGen's files one
// warning, unless they look like misspelt known keys, so that a spelling mistake does not
// remove a policy.
func (r *reader) foreign(entries []entry, where string, known []string, tolerated bool) {
	var skipped []string
	for _, e := range entries {
		near := nearest(e.key, known)
		switch {
		case near != "":
			r.fault(e.at, fmt.Sprintf("unknown key %s", quote(e.key)), "did you mean "+quote(near)+"?")
		case tolerated:
			skipped = append(skipped, clip(e.key))
		case isEvent(e.key):
			r.fault(e.at, fmt.Sprintf("the event %s is outside hooks", e.key), "write it below hooks:")
		default:
			r.fault(e.at, fmt.Sprintf("unknown key %s", quote(e.key)), fmt.Sprintf("%s knows %s", where, words(known)))
		}
	}
	if len(skipped) > 0 {
		r.warn(entries[0].at, fmt.Sprintf("keys of MassGen are skipped here: %s", clipList(skipped)))
	}
}

// words joins names in a sentence.
func words(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func clipList(names []string) string {
	const most = 12
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (r *reader) preset(n *yaml.Node) (string, bool) {
	if slices.Contains(presetNames, n.Value) && n.Tag == "!!str" {
		return n.Value, true
	}
	r.fault(n, fmt.Sprintf("there is no preset %s", quote(n.Value)), "write delivery, or [] for none")
	return "", false
}

func (r *reader) folder(n *yaml.Node) (string, bool) {
	return r.word(n, "a folder of python_path", "write a path such as ./policies")
}

// agents reads the agents' own hooks.
func (r *reader) agents(e entry) {
	if e.isNull() {
		return
	}
	if e.value.Kind != yaml.SequenceNode {
		r.fault(e.value, fmt.Sprintf("agents is %s; it must be a list", describe(e.value)), "write - id: agent1 and its hooks below it")
		return
	}
	lines := map[string]int{}
	for _, n := range e.value.Content {
		r.agent(deref(n), lines)
	}
}

func (r *reader) agent(n *yaml.Node, lines map[string]int) {
	entries, ok := r.mapping(n, "an agent", "write id: agent1 and hooks:")
	if !ok {
		return
	}
	var id, hooks, backend *entry
	var foreign []entry
	for _, e := range entries {
		switch e.key {
		case "id":
			id = &e
		case "hooks":
			hooks = &e
		case "backend":
			backend = &e
		default:
			foreign = append(foreign, e)
		}
	}
	r.foreign(foreign, "an agent", agentKeys, r.massgen)
	name := r.agentID(n, id, lines)
	if backend != nil {
		hooks = r.backend(*backend, hooks, name)
	}
	if hooks != nil {
		r.section(*hooks, name)
	}
}

// noAgent replaces a faulty id, so that its hooks are still checked as those of an agent.
const noAgent = "?"

func (r *reader) agentID(n *yaml.Node, id *entry, lines map[string]int) string {
	if id == nil {
		r.fault(n, "an agent has no id", `write id: with the agent's id, or a glob such as "team-*"`)
		return noAgent
	}
	s, ok := r.word(id.value, "an agent's id", `write the agent's id, or a glob such as "team-*"`)
	if !ok {
		return noAgent
	}
	if _, err := match.Compile(s); err != nil {
		r.badPattern(id.value, "the agent id", err)
	}
	if line, ok := lines[s]; ok {
		r.fault(id.value, fmt.Sprintf("the agent %s appears twice; it is already on line %d", quote(s), line), "put all of its hooks into one place")
	} else {
		lines[s] = id.value.Line
	}
	return s
}

// backend reads MassGen's level between an agent and its hooks.
func (r *reader) backend(e entry, outer *entry, agent string) *entry {
	if e.isNull() {
		return outer
	}
	entries, _ := r.mapping(e.value, "backend", "write hooks: below it")
	var foreign, delay []entry
	for _, inner := range entries {
		switch {
		case inner.key == delaySeconds || inner.key == delayAfter:
			delay = append(delay, inner)
		case inner.key != "hooks":
			foreign = append(foreign, inner)
		case outer != nil:
			r.fault(inner.at, fmt.Sprintf("the agent has hooks twice; the first ones are on line %d", outer.at.Line), "put all of them into one place")
		default:
			outer = &inner
		}
	}
	r.foreign(foreign, "backend", []string{"hooks", delaySeconds, delayAfter}, true)
	r.delay(delay, agent)
	return outer
}

// MassGen's keys that delay an agent. They are options of the builtin of that name.
const (
	delayHandler = "debug_delay"
	delaySeconds = "debug_delay_seconds"
	delayAfter   = "debug_delay_after_n_tools"
)

// delay makes a hook of an agent's delay.
func (r *reader) delay(entries []entry, agent string) {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.key == delaySeconds && !e.isNull() })
	if i < 0 {
		return
	}
	options := &yaml.Node{Kind: yaml.MappingNode, Line: entries[i].at.Line, Column: entries[i].at.Column}
	for _, e := range entries {
		options.Content = append(options.Content, e.at, e.value)
	}
	at := func(n yaml.Node) *yaml.Node { n.Line, n.Column = entries[i].at.Line, entries[i].at.Column; return &n }
	word := func(s string) *yaml.Node { return at(yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}) }
	r.hook(at(yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		word("type"), word("builtin"), word("handler"), word(delayHandler), word("options"), options}}), place{agent: agent, event: schema.PostToolUse})
}
