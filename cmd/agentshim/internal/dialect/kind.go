package dialect

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// normalise returns the kind of a runtime's tool and the facts that policies for all runtimes need:
// see [schema.ToolFacts]. A dialect overrides facts that its payload states more exactly, such as the
// server of an MCP tool.
func normalise(runtime, tool string, input jsontext.Value) (kind string, args jsontext.Value) {
	return schema.ToolFacts(runtime, tool, input)
}
