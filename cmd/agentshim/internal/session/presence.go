package session

import (
	"maps"
	"os"

	"github.com/hookfabric/hookfabric/schema"
)

// introduce adds the host and the runtime's version to the event of a new session, so that operators
// can find agents that no longer send events.
func (x *Exchange) introduce(e *schema.Event) {
	if e.HookType != schema.SessionStart {
		return
	}
	labels := map[string]string{}
	if host, err := os.Hostname(); err == nil && host != "" {
		labels[schema.LabelHost] = host
	}
	if v := x.version(e.Runtime); v != "" {
		labels[schema.LabelVersion] = v
	}
	maps.Copy(labels, e.Labels) // the runtime's own labels take precedence
	e.Labels = labels
}

// version returns the version of the runtime. Only few runtimes pass it to their hooks.
func (x *Exchange) version(runtime string) string {
	for _, v := range [][2]string{{"cursor", "CURSOR_VERSION"}, {"copilot", "COPILOT_CLI_BINARY_VERSION"}} {
		if v[0] == runtime && x.Env != nil && x.Env(v[1]) != "" {
			return x.Env(v[1])
		}
	}
	if x.Versions == nil {
		return ""
	}
	return x.Versions()[runtime]
}
