package dialect

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// normalise says of what kind a runtime's tool is, and what a policy for all
// runtimes needs to know of the call: see [schema.ToolFacts]. What the payload
// knows better than the tool's name, such as the server of an MCP tool, its
// dialect puts over that.
func normalise(runtime, tool string, input jsontext.Value) (kind string, args jsontext.Value) {
	return schema.ToolFacts(runtime, tool, input)
}
