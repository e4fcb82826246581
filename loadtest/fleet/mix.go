package fleet

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// recorded is the mix of tools, taken from recorded payloads of runtimes. The
// test TestTheMixIsWhatWasRecorded writes it anew when it runs with -update.
//
//go:embed mix.json
var recorded []byte

// A Tool is one call as a runtime made it.
type Tool struct {
	Runtime string         `json:"runtime"`
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`
	Args    jsontext.Value `json:"args,omitzero"`
	Input   jsontext.Value `json:"input"`
	Output  jsontext.Value `json:"output"`
}

// A class is what hooks a call meets, and so what must come of it.
type class string

// The classes.
const (
	// unmatched: no hook asks for it.
	unmatched class = "unmatched"
	// inside: a hook inside of the broker allows it.
	inside class = "inside"
	// refused: a fail-closed hook inside of the broker denies it.
	refused class = "refused"
	// remote: a fail-closed hook of the workers' pool allows it, or denies it.
	remote class = "remote"
	// rewritten: the same, and behind it hooks of two pools that rewrite its input.
	rewritten class = "rewritten"
	// slow: a hook of the workers' pool that takes its time.
	slow class = "slow"
)

// classes are all of them.
func classes() []class { return []class{unmatched, inside, refused, remote, rewritten, slow} }

// class is by the kind of the tool; tools of another program's server by the name
// are slow or not.
func (t *Tool) class() class {
	switch t.Kind {
	case "file.read":
		return unmatched
	case "file.write":
		return rewritten
	case "shell":
		return remote
	case "subagent":
		return refused
	}
	if strings.HasPrefix(t.Name, slowPrefix) {
		return slow
	}
	return inside
}

const slowPrefix = "mcp__"

// A mix is the recorded tools by class.
type mix map[class][]*Tool

// readMix reads the recorded tools.
func readMix() (mix, error) {
	var all []*Tool
	if err := schema.Unmarshal(recorded, &all); err != nil {
		return nil, fmt.Errorf("the recorded tools: %w", err)
	}
	m := mix{}
	for _, t := range all {
		m[t.class()] = append(m[t.class()], t)
	}
	for _, c := range classes() {
		if len(m[c]) == 0 {
			return nil, fmt.Errorf("the class %s has no recorded tool", c)
		}
	}
	return m, nil
}

// matcher is the pattern of all tools of some classes.
func (m mix) matcher(of ...class) string {
	var names []string
	for _, c := range of {
		for _, t := range m[c] {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "|")
}
