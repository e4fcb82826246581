package hooksyaml_test

import (
	"errors"
	"fmt"

	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// How do I validate a hooks.yaml?
func Example_howDoIValidateAHooksYAML() {
	_, err := hooksyaml.Read("hooks.yaml", []byte(`
hooks:
  PreToolUse:
    - {type: builtin, handler: deny, timout: 5}
  PreToolUze: []
`), hooksyaml.Options{})
	if faults, ok := errors.AsType[hooksyaml.Faults](err); ok {
		for _, f := range faults {
			fmt.Printf("line %d: %s; %s\n", f.Line, f.Message, f.Hint)
		}
	}
	// Output:
	// line 4: unknown key "timout" of a hook; did you mean "timeout"?
	// line 5: unknown event "PreToolUze"; did you mean "PreToolUse"?
}
