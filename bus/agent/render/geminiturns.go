package render

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// unsigned replaces the signature of a call that no model of this API made. The API's
// manual specifies this value.
const unsigned = "skip_thought_signature_validator"

type geminiCalled struct {
	Call      geminiCall `json:"functionCall"`
	Signature string     `json:"thoughtSignature,omitzero"`
}

type geminiCall struct {
	ID   string         `json:"id,omitzero"`
	Name string         `json:"name"`
	Args jsontext.Value `json:"args"`
}

type geminiTool struct {
	Declarations []geminiDeclaration `json:"functionDeclarations"`
}

type geminiDeclaration struct {
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	// Parameters may be any JSON Schema. The API's older member accepts only a dialect.
	Parameters jsontext.Value `json:"parametersJsonSchema,omitzero"`
}

func geminiTools(tools []Tool) []any {
	var all geminiTool
	for _, t := range tools {
		all.Declarations = append(all.Declarations, geminiDeclaration{t.Name, t.Description, t.Schema})
	}
	return []any{all}
}

// geminiTurns are contents in turns. Nothing is added to a content with results, so that
// a user's content may follow it.
type geminiTurns []geminiContent

func (t *geminiTurns) add(c geminiContent) {
	switch n := len(*t); {
	case len(c.Parts) == 0:
	case n > 0 && (*t)[n-1].Role == c.Role && !(*t)[n-1].responses && !c.responses:
		(*t)[n-1].Parts = append((*t)[n-1].Parts, c.Parts...)
	default:
		*t = append(*t, c)
	}
}

func (t *geminiTurns) say(text string) {
	t.add(geminiContent{Role: "user", Parts: []any{geminiPart{Text: text}}})
}

func geminiConversation(_ Format, steps []step, r *Request) (err error) {
	identify(steps, func(string) bool { return true })
	system, steps := leading(steps)
	var turns geminiTurns
	for i := range steps {
		if err := turns.step(&steps[i]); err != nil {
			return err
		}
	}
	if len(turns) == 0 {
		return errNoMessage
	}
	if turns[0].Role != "user" {
		turns = append(geminiTurns{{Role: "user", Parts: []any{geminiPart{Text: droppedLine}}}}, turns...)
	}
	if turns[len(turns)-1].Role != "user" {
		turns.say(goOnLine)
	}
	if r.Contents, err = encoded(turns); err != nil || len(system) == 0 {
		return err
	}
	var parts []any
	for _, s := range system {
		parts = append(parts, geminiPart{Text: s})
	}
	r.SystemInstruction, err = schema.Marshal(map[string]any{"parts": parts})
	return err
}

func (t *geminiTurns) step(s *step) error {
	text := func(text string) any { return geminiPart{Text: text} }
	switch s.role {
	case schema.RoleSystem:
		if !blank(s.text) {
			t.say(framed(s.text))
		}
	case schema.RoleUser:
		native := geminiNative(s)
		if s.foreign(native) {
			return s.errForeign()
		}
		t.add(geminiContent{Role: "user", Parts: s.blocks(native, tongue{text: func(words string) any { return text(unframed(words)) }})})
	case schema.RoleAssistant:
		t.add(geminiContent{Role: "model", Parts: s.blocks(geminiNative(s), tongue{text: text, call: geminiCallOf})})
		written, err := gemini(s.results)
		if err != nil {
			return err
		}
		for _, c := range written {
			if c, ok := c.(geminiContent); ok {
				t.add(c)
			}
		}
	}
	return nil
}

func geminiCallOf(c *schema.ToolCall, first bool) any {
	part := geminiCalled{Call: geminiCall{c.ID, c.Name, argsOf(c)}}
	if first {
		part.Signature = unsigned
	}
	return part
}
