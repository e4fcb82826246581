package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/hookfabric/hookfabric/schema"
)

// eventNames returns the names of events in hooks.yaml.
func eventNames() []string {
	var names []string
	for _, t := range schema.EventTypes() {
		names = append(names, string(t))
	}
	return slices.Concat(names, schema.SeedNames())
}

func ref(name string) *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/" + name} }

func list(of *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: of}
}

func distinct(of *jsonschema.Schema) *jsonschema.Schema {
	s := list(of)
	s.UniqueItems = true
	return s
}

func absentOr(s ...*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: slices.Concat([]*jsonschema.Schema{{Type: "null"}}, s)}
}

// hooksSchema describes hooks.yaml before defaults are filled in, in its nested and in
// its flat form. `broker check` reports what a schema cannot express, such as which key
// fits which kind of handler.
func hooksSchema(d docs) (*jsonschema.Schema, error) {
	own := []any{"$schema", "presets", "packs", "pack_exceptions", "python_path", "python", "hooks", "agents"}
	agentKeys := []any{"id", "hooks", "backend"}
	return &jsonschema.Schema{
		Title:       "hooks.yaml",
		Description: "The hooks of the fabric: at which events they run, and for which agents.",
		Type:        "object",
		Defs: map[string]*jsonschema.Schema{
			"hook": hook(d), "flatHook": flatHook(d), "globalHooks": section("globalEvent"), "globalEvent": globalEvent(),
			"agentHooks": section("agentEvent"), "agentEvent": agentEvent(), "agent": agent(agentKeys),
		},
		Properties: map[string]*jsonschema.Schema{
			"presets":         described(distinct(enum("delivery")), "The active presets, which are built-in groups of hooks; []: no preset.", `["delivery"]`),
			"packs":           described(list(pack()), "The groups of rules that are used.", "[]"),
			"pack_exceptions": described(list(packException()), "Agents that need not follow a rule, for a time.", "[]"),
			"python_path":     described(distinct(word("")), "The folders of modules and programs, after the folder of this file.", ""),
			"python":          described(absentOr(pythonHosts(d)), "The host processes of Python functions.", ""),
			"$schema":         {Type: "string", Description: "The location of this schema, for editors."},
			"hooks":           described(ref("globalHooks"), "The hooks of every agent, in the order in which they run.", ""),
			"agents":          described(absentOr(list(ref("agent"))), "The agents' own hooks. They run after the global ones.", ""),
		},
		PropertyOrder: []string{"$schema", "presets", "packs", "pack_exceptions", "python_path", "python", "hooks", "agents"},
		// If an agent has a backend, the file is MassGen's and unknown keys are
		// tolerated. In any other file they are faults.
		If: &jsonschema.Schema{
			Properties: map[string]*jsonschema.Schema{
				"agents": {Type: "array", Contains: &jsonschema.Schema{Type: "object", Required: []string{"backend"}}},
			},
			Required: []string{"agents"},
		},
		Else: &jsonschema.Schema{
			PropertyNames: &jsonschema.Schema{Enum: own},
			Properties: map[string]*jsonschema.Schema{
				"agents": {Items: &jsonschema.Schema{PropertyNames: &jsonschema.Schema{Enum: agentKeys}}},
			},
		},
	}, nil
}

// pack describes the use of a group of rules.
func pack() *jsonschema.Schema {
	answer := func(description string) *jsonschema.Schema {
		return described(enum("deny", "ask", "shadow", "off"), description, "")
	}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{word("The name of a pack."), {
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"name":     word("A shipped pack, or the name of a file's hooks."),
			"file":     word("A file of rules, relative to this file."),
			"mode":     described(enum("enforce", "shadow", "off"), "Whether the answers count.", ""),
			"exclude":  described(distinct(word("")), "The ids of rules that are not used.", ""),
			"shadow":   described(distinct(word("")), "The ids of rules that are only watched.", ""),
			"unparsed": answer("The answer to a call whose facts are incomplete."),
			"dynamic":  answer("The answer to a command that is known only when it runs."),
		},
		PropertyOrder: []string{"name", "file", "mode", "exclude", "shadow", "unparsed", "dynamic"}, AdditionalProperties: never(),
		AnyOf: []*jsonschema.Schema{{Required: []string{"name"}}, {Required: []string{"file"}}},
	}}}
}

// packException describes an exception from a rule.
func packException() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"rule":   word("The id of the rule."),
			"agents": word("A glob of agent ids."),
			"until":  {Type: "string", Pattern: `^\d{4}-\d{2}-\d{2}$`, Description: "The last day, in UTC."},
			"owner":  word("Who answers for the exception."),
		},
		PropertyOrder: []string{"rule", "agents", "until", "owner"}, Required: []string{"rule", "until", "owner"}, AdditionalProperties: never(),
	}
}

func described(s *jsonschema.Schema, description, fallback string) *jsonschema.Schema {
	s.Description = description
	if fallback != "" {
		s.Default = json.RawMessage(fallback)
	}
	return s
}

// word describes a text that is not empty and has no spaces around it.
func word(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^\S(.*\S)?$`, Description: description}
}

// section describes the hooks of all agents or of one: events with their hooks, or a flat
// list of hooks that name their event.
func section(event string) *jsonschema.Schema {
	nested := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: never()}
	for _, name := range eventNames() {
		nested.Properties[name] = ref(event)
		nested.PropertyOrder = append(nested.PropertyOrder, name)
	}
	return absentOr(nested, list(ref("flatHook")))
}

// never is the schema that matches nothing.
func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func globalEvent() *jsonschema.Schema {
	return eventObject(&jsonschema.Schema{Type: "boolean", Enum: []any{false}, Description: "Only an agent can override global hooks."})
}

func agentEvent() *jsonschema.Schema {
	return eventObject(&jsonschema.Schema{Type: "boolean", Description: "true: the global hooks of this event do not run for this agent, except system hooks."})
}

func eventObject(override *jsonschema.Schema) *jsonschema.Schema {
	return absentOr(list(ref("hook")), &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{"override": override, "hooks": absentOr(list(ref("hook")))},
		PropertyOrder:        []string{"override", "hooks"},
		AdditionalProperties: never(),
	})
}

func agent(keys []any) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"id":    word("The agent's id, or a glob."),
			"hooks": ref("agentHooks"),
			"backend": described(absentOr(&jsonschema.Schema{
				Type: "object", Properties: map[string]*jsonschema.Schema{"hooks": ref("agentHooks")},
			}), "MassGen's level between an agent and its hooks. The reader skips its other keys.", ""),
		},
		Required: []string{"id"},
	}
	for _, k := range keys {
		s.PropertyOrder = append(s.PropertyOrder, k.(string))
	}
	return s
}

// hook describes one hook below its event.
func hook(d docs) *jsonschema.Schema {
	fields := hookFields()
	fields["tls"] = object[schema.TLS](d, map[string]*jsonschema.Schema{
		"ca": word(""), "server_name": word(""),
		"cert": word("The client certificate, for a server that asks for one."), "key": word("The private key of cert."),
	})
	fields["tls"].DependentRequired = map[string][]string{"cert": {"key"}, "key": {"cert"}}
	s := object[schema.Hook](d, fields)
	s.If = &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": enum(schema.CEL)}, Required: []string{"type"}}
	s.Then = &jsonschema.Schema{Required: []string{"options"}}
	s.Else = &jsonschema.Schema{Required: []string{"handler"}}
	return s
}

// object describes a mapping with the given keys, in the order of T's fields. Keys
// without a description get the comments of T.
func object[T any](d docs, keys map[string]*jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: keys, AdditionalProperties: never()}
	t := reflect.TypeFor[T]()
	for f := range t.Fields() {
		if p := keys[jsonName(f)]; p != nil {
			p.Description = cmp.Or(p.Description, d.of(t, f))
			s.PropertyOrder = append(s.PropertyOrder, jsonName(f))
		}
	}
	return s
}

// pythonHosts describes the settings of Python hosts.
func pythonHosts(d docs) *jsonschema.Schema {
	whole := func(description string, least, most float64, fallback string) *jsonschema.Schema {
		return described(&jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: &most}, description, fallback)
	}
	return object[schema.PythonHosts](d, map[string]*jsonschema.Schema{
		"interpreter": described(word(""), "The Python program: a name on the PATH, or a path that resolves as programs do.", `"python3"`),
		"hosts":       whole("The number of host processes in each worker.", 1, 64, "2"),
		"memory": described(&jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "integer", Minimum: new(float64(16 << 20)), Maximum: new(float64(1 << 40))}, {Type: "string", Pattern: `^[0-9]+(\.[0-9]+)? ?[KMGT]i?B$`},
		}}, "The memory limit of one host: bytes, or a number with its unit, such as 512MiB.", `"1GiB"`),
		"recycle": whole("The number of calls after which a worker replaces a host; 0: never.", 0, 1e9, "0"),
	})
}

// flatHook describes one hook of the flat list, whose type is its event.
func flatHook(d docs) *jsonschema.Schema {
	s := hook(d)
	s.Properties = maps.Clone(s.Properties)
	s.Properties["type"] = described(enum(eventNames()...), "The event at which the hook runs.", "")
	s.Properties["callable"] = s.Properties["handler"].CloneSchemas()
	s.Required = []string{"type"}
	s.If, s.Then, s.Else = nil, nil, nil
	s.OneOf = []*jsonschema.Schema{{Required: []string{"handler"}}, {Required: []string{"callable"}}}
	return s
}

// environment matches names of environment variables.
const environment = `^[A-Za-z_][A-Za-z0-9_]*$`

func hookFields() map[string]*jsonschema.Schema {
	flag := func(fallback string) *jsonschema.Schema {
		return described(&jsonschema.Schema{Type: "boolean"}, "", fallback)
	}
	token := `^[A-Za-z0-9_-]{1,64}$`
	return map[string]*jsonschema.Schema{
		"name":    word(""),
		"matcher": {Types: []string{"string", "null"}},
		"type":    enum(schema.Kinds()...),
		"handler": word(""),
		"args":    list(&jsonschema.Schema{Type: "string"}),
		"timeout": described(&jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "number", Minimum: new(0.001), Maximum: new(86400.0)}, {Type: "string", Pattern: duration},
		}}, "", "30"),
		"fail_closed":    flag("false"),
		"pool":           described(&jsonschema.Schema{Type: "string", Pattern: token}, "", `"default"`),
		"readonly":       flag(""),
		"idempotent":     flag(""),
		"mode":           described(enum("enforce", schema.Shadow), "", `"enforce"`),
		"when":           {Type: "string"},
		"needs":          distinct(enum(schema.NeedNative, schema.NeedHistory, schema.NeedAction)),
		"max_concurrent": described(&jsonschema.Schema{Type: "integer", Minimum: new(0.0)}, "", "0"),
		"system":         flag("false"),
		"auto_approve":   flag("false"),
		"shell":          flag("false"),
		"env":            distinct(&jsonschema.Schema{Type: "string", Pattern: environment}),
		"options":        {Type: "object"},
		"headers": {Type: "object", AdditionalProperties: word(""), PropertyNames: &jsonschema.Schema{
			Pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$",
		}},
		"sign": {Type: "string", Pattern: environment},
	}
}
