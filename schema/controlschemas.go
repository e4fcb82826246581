package schema

import "embed"

// controlSchemas are the JSON Schemas of the control requests about what waits
// for agents, by their verbs.
//
//go:embed control/*.schema.json
var controlSchemas embed.FS

// ControlSchema returns the JSON Schema of a verb's request, or "" if the verb has no schema.
func ControlSchema(verb string) string {
	data, err := controlSchemas.ReadFile("control/" + verb + ".schema.json")
	if err != nil {
		return ""
	}
	return string(data)
}
