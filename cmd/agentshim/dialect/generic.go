package dialect

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// generic is the fabric's own form, for agent loops and scripts of users: the
// canonical event in, one verdict object out, exit code 0.
type generic struct{}

// Decode reads a canonical event.
func (generic) Decode(payload []byte, want schema.EventType) (*schema.Event, error) {
	e, err := schema.ReadEvent(payload)
	if err != nil {
		return nil, fmt.Errorf("the event on stdin can not be read: %w; write one JSON object such as "+
			`{"hook_type":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`, err)
	}
	switch {
	case e.HookType == "" && want == "":
		return nil, fmt.Errorf("the event on stdin has no hook_type; name it there or with --event")
	case e.HookType == "":
		e.HookType = want
	case want != "" && e.HookType != want:
		return nil, fmt.Errorf("the event on stdin is a %s, but --event says %s; the hook is configured at the wrong event", e.HookType, want)
	}
	if _, err := schema.ParseEventType(string(e.HookType)); err != nil {
		return nil, fmt.Errorf("the event on stdin: hook_type: %w", err)
	}
	return e, nil
}

// Encode is the verdict itself.
func (generic) Encode(_ *schema.Event, v *schema.Verdict) (Answer, error) {
	said := *v
	said.Fabric, said.Acked = "", nil // between the shim and the fabric
	if said.Decision == schema.None {
		said.Decision = schema.Continue
	}
	data, err := schema.Marshal(&said)
	if err != nil {
		return Answer{}, fmt.Errorf("encoding the verdict: %w", err)
	}
	return Answer{Stdout: append(data, '\n')}, nil
}
