package fleet

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// recorded is the mix of tools, taken from recorded payloads of runtimes. The test
// TestTheMixIsWhatWasRecorded writes the file when it runs with -update.
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

// A class determines the hooks that match a call, and the expected result.
type class string

// The classes.
const (
	// unmatched: no hook matches it.
	unmatched class = "unmatched"
	// inside: a hook in the broker allows it.
	inside class = "inside"
	// refused: a fail-closed hook in the broker denies it.
	refused class = "refused"
	// remote: a fail-closed hook of the workers' pool allows it, or denies it.
	remote class = "remote"
	// rewritten: the same as remote, and later hooks of two pools rewrite its input.
	rewritten class = "rewritten"
	// slow: a slow hook of the workers' pool allows it.
	slow class = "slow"
)

func classes() []class { return []class{unmatched, inside, refused, remote, rewritten, slow} }

// class returns the class for the kind of the tool. For tools of MCP servers, the name
// decides whether they are slow.
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

// A mix has the recorded tools by class.
type mix map[class][]*Tool

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

// matcher returns the pattern that matches all tools of some classes.
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

// A call is one use of a tool.
type call struct {
	class class
	tool  *Tool
	nonce string
	// deny means that a guard must deny it.
	deny bool
	// input is the input for the tool.
	input jsontext.Value
}

// draw returns a random call according to the shares.
func (m mix) draw(random *rand.Rand, s scenario.Shares) *call {
	c := &call{class: remote}
	x := random.Float64()
	for _, part := range []struct {
		class class
		share float64
		deny  bool
	}{
		{refused, s.Deny / 3, true}, {remote, s.Deny / 3, true}, {rewritten, s.Deny / 3, true}, {rewritten, s.Rewrite, false},
		{unmatched, s.Unmatched, false}, {inside, s.Inside, false}, {slow, s.Slow, false},
	} {
		if x -= part.share; x < 0 {
			c.class, c.deny = part.class, part.deny
			break
		}
	}
	number := random.Uint64() &^ 1
	if c.deny {
		number |= 1
	}
	return m.fill(c, random, number)
}

// fill chooses the tool of a call and sets its input.
func (m mix) fill(c *call, random *rand.Rand, number uint64) *call {
	of := m[c.class]
	c.tool, c.nonce = of[random.IntN(len(of))], nonce(number)
	c.input = with(c.tool.Input, `"`+markKey+`":{"nonce":"`+c.nonce+`"}`)
	return c
}

// with adds a member to an object that has members.
func with(object jsontext.Value, member string) jsontext.Value {
	v := append(make(jsontext.Value, 0, len(object)+len(member)+1), '{')
	v = append(append(v, member...), ',')
	return append(v, object[1:]...)
}

// before returns the event before the tool.
func (c *call) before() *schema.Event {
	return &schema.Event{
		HookType: schema.PreToolUse, Runtime: c.tool.Runtime, ToolName: c.tool.Name, ToolKind: c.tool.Kind,
		ToolArgs: c.tool.Args, ToolInput: c.input, ToolUseID: c.nonce, Cwd: "/home/dev/project",
	}
}

// after returns the event after the tool was used with input. Its output is the recorded
// one, with the call's own nonce.
func (c *call) after(input jsontext.Value) (*schema.Event, error) {
	e := c.before()
	e.HookType, e.ToolInput = schema.PostToolUse, input
	e.ToolOutput = jsontext.Value(`{"nonce":"` + c.nonce + `","output":` + string(c.tool.Output) + `}`)
	if !c.class.observed() {
		return e, nil
	}
	fields, m, err := marked(input)
	if err != nil {
		return nil, err
	}
	if m.Output, err = checksum(e.ToolOutput); err != nil {
		return nil, err
	}
	e.ToolInput, err = remarked(fields, m)
	return e, err
}
