package fleet

import (
	"math/rand/v2"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// A call is one use of a tool.
type call struct {
	class class
	tool  *Tool
	nonce string
	// deny: a guard is to deny it.
	deny bool
	// input is what the tool is to be called with.
	input jsontext.Value
}

// draw draws one by its shares.
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

// fill picks the tool of a call and gives it its input.
func (m mix) fill(c *call, random *rand.Rand, number uint64) *call {
	of := m[c.class]
	c.tool, c.nonce = of[random.IntN(len(of))], nonce(number)
	c.input = with(c.tool.Input, `"`+markKey+`":{"nonce":"`+c.nonce+`"}`)
	return c
}

// with is an object, which must have members, with one member more.
func with(object jsontext.Value, member string) jsontext.Value {
	v := append(make(jsontext.Value, 0, len(object)+len(member)+1), '{')
	v = append(append(v, member...), ',')
	return append(v, object[1:]...)
}

// before is the event before the tool is used.
func (c *call) before() *schema.Event {
	return &schema.Event{
		HookType: schema.PreToolUse, Runtime: c.tool.Runtime, ToolName: c.tool.Name, ToolKind: c.tool.Kind,
		ToolArgs: c.tool.Args, ToolInput: c.input, ToolUseID: c.nonce, Cwd: "/home/dev/project",
	}
}

// after is the event after the tool was used with input and returned what was
// recorded, under the call's own nonce.
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
