package hooksyaml_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// How do I list the hooks of a hooks.yaml, with all defaults?
func Example_howDoIListTheHooks() {
	doc, err := hooksyaml.Read("hooks.yaml", []byte(`
presets: []
hooks:
  PreToolUse:
    - {handler: ./policies/shell.sh, matcher: Bash, fail_closed: true}
agents:
  - id: "ci-*"
    hooks:
      PreToolUse:
        - {type: builtin, handler: deny, matcher: deploy}
`), hooksyaml.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range doc.Config.Hooks {
		fmt.Printf("%s: %s %s, agent %q, tools %q, pool %s, %s\n", h.Name, h.Type, h.Handler, h.Agent, h.Matcher, h.Pool, h.Timeout.Std())
	}
	// Output:
	// shell: command ./policies/shell.sh, agent "", tools "Bash", pool default, 30s
	// deny: builtin deny, agent "ci-*", tools "deploy", pool default, 30s
}
