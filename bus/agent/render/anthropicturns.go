package render

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

type anthropicCall struct {
	Type  string         `json:"type"`
	ID    string         `json:"id"`
	Name  string         `json:"name"`
	Input jsontext.Value `json:"input"`
}

type anthropicTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	InputSchema jsontext.Value `json:"input_schema"`
}

func anthropicTools(tools []Tool) []any {
	all := make([]any, 0, len(tools))
	for _, t := range tools {
		all = append(all, anthropicTool{t.Name, t.Description, t.schemaOr()})
	}
	return all
}

// anthropicTurns are messages in alternating turns.
type anthropicTurns []anthropicMessage

func (t *anthropicTurns) add(role string, blocks ...any) {
	switch n := len(*t); {
	case len(blocks) == 0:
	case n > 0 && (*t)[n-1].Role == role:
		(*t)[n-1].Content = append((*t)[n-1].Content, blocks...)
	default:
		*t = append(*t, anthropicMessage{Role: role, Content: blocks})
	}
}

func anthropicConversation(_ Format, steps []step, r *Request) error {
	first := unused()
	identify(steps, func(id string) bool { return anthropicID(id) && first(id) })
	system, steps := leading(steps)
	var turns anthropicTurns
	for i := range steps {
		if err := turns.step(&steps[i]); err != nil {
			return err
		}
	}
	if len(turns) == 0 {
		return errNoMessage
	}
	if turns[0].Role != "user" {
		turns = append(anthropicTurns{{Role: "user", Content: []any{anthropicText(droppedLine)}}}, turns...)
	}
	if turns[len(turns)-1].Role != "user" {
		turns.add("user", anthropicText(goOnLine))
	}
	return anthropicRequest(system, turns, r)
}

// anthropicID reports whether the API accepts an id. Ids of other APIs may contain dots
// and colons.
func anthropicID(id string) bool {
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '_' && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

func anthropicRequest(system []string, turns anthropicTurns, r *Request) (err error) {
	if len(system) > 0 {
		blocks := make([]anthropicBlock, 0, len(system))
		for _, s := range system {
			blocks = append(blocks, anthropicText(s))
		}
		if r.System, err = schema.Marshal(blocks); err != nil {
			return err
		}
	}
	r.Messages, err = encoded(turns)
	return err
}

func (t *anthropicTurns) step(s *step) error {
	switch s.role {
	case schema.RoleSystem:
		if !blank(s.text) {
			t.add("user", anthropicText(framed(s.text)))
		}
	case schema.RoleUser:
		native := anthropicNative(s)
		if s.foreign(native) {
			return s.errForeign()
		}
		t.add("user", s.blocks(native, tongue{text: func(text string) any { return anthropicText(unframed(text)) }})...)
	case schema.RoleAssistant:
		t.add("assistant", s.blocks(anthropicNative(s), tongue{
			text: func(text string) any { return anthropicText(text) },
			call: func(c *schema.ToolCall, _ bool) any { return anthropicCall{"tool_use", c.ID, c.Name, argsOf(c)} },
		})...)
		written, err := anthropic(s.results)
		if err != nil {
			return err
		}
		for _, m := range written {
			if m, ok := m.(anthropicMessage); ok {
				t.add(m.Role, m.Content...)
			}
		}
	}
	return nil
}
