package render

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// anthropicMessage is a message of the Messages API.
type anthropicMessage struct {
	Role string `json:"role"`
	// Content are blocks, made here or as the API sent them.
	Content []any `json:"content"`
}

type anthropicBlock struct {
	Type      string `json:"type"`
	ToolUseID string `json:"tool_use_id,omitzero"`
	// Content is a string or a list of blocks.
	Content jsontext.Value `json:"content,omitzero"`
	IsError bool           `json:"is_error,omitzero"`
	Text    string         `json:"text,omitzero"`
}

// anthropic needs no separators, because the API has blocks. The API requires results
// first in the message.
func anthropic(turn []rendering) ([]any, error) {
	var results, notes []any
	var messages []any
	for _, s := range turn {
		if r := s.result; r != nil {
			if err := r.identified(); err != nil {
				return nil, err
			}
			content, err := anthropicContent(r)
			if err != nil {
				return nil, err
			}
			results = append(results, anthropicBlock{Type: "tool_result", ToolUseID: r.id, Content: content, IsError: r.failed})
		}
		for _, n := range s.notes {
			notes = append(notes, anthropicText(n))
		}
		for _, t := range s.texts {
			messages = append(messages, anthropicMessage{Role: "user", Content: []any{anthropicText(t)}})
		}
	}
	if len(results)+len(notes) == 0 {
		return messages, nil
	}
	return append([]any{anthropicMessage{Role: "user", Content: append(results, notes...)}}, messages...), nil
}

func anthropicText(text string) anthropicBlock { return anthropicBlock{Type: "text", Text: text} }

// anthropicContent returns a result's content: the tool's output if it is blocks that the
// API accepts, else text.
func anthropicContent(r *result) (jsontext.Value, error) {
	if isBlocks(r.output) {
		return r.output, nil
	}
	text := r.words()
	if text == "" {
		return nil, nil
	}
	return schema.Marshal(text)
}

// isBlocks reports whether a tool's output is a list of text and image blocks of the API.
func isBlocks(output jsontext.Value) bool {
	if output.Kind() != '[' {
		return false
	}
	var blocks []map[string]jsontext.Value
	if schema.Unmarshal(output, &blocks) != nil || len(blocks) == 0 {
		return false
	}
	for _, b := range blocks {
		text := string(b["type"]) == `"text"` && b["text"].Kind() == '"' && len(b["text"]) > 2
		image := string(b["type"]) == `"image"` && b["source"].Kind() == '{'
		if len(b) != 2 || !text && !image {
			return false
		}
	}
	return true
}

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

// anthropicKept is what Native keeps of an answer of the Messages API.
type anthropicKept struct {
	Type    string           `json:"type"`
	Role    string           `json:"role"`
	Content []jsontext.Value `json:"content"`
	Stop    string           `json:"stop_reason,omitzero"`
}

// anthropicAnswer reads an answer of the Messages API.
func anthropicAnswer(response jsontext.Value) (a answer, err error) {
	var in struct {
		Type    jsontext.Value `json:"type"`
		Content jsontext.Value `json:"content"`
		Stop    jsontext.Value `json:"stop_reason"`
	}
	if err := schema.Unmarshal(response, &in); err != nil {
		return a, unread(err)
	}
	if wordOf(in.Type) != "message" || in.Content.Kind() != '[' {
		return a, misshapen(`of the type "message" with its content as a list`, response)
	}
	kept := anthropicKept{Type: "message", Role: "assistant", Content: listOf(in.Content), Stop: wordOf(in.Stop)}
	if a.blocks, err = anthropicBlocks(kept.Content); err != nil {
		return a, err
	}
	if n := len(a.blocks); kept.Stop == "max_tokens" && n > 0 && a.blocks[n-1].call != nil {
		cut := a.blocks[n-1].call // the last call was cut off, even if it is valid JSON
		if cut.Input, err = schema.Marshal(string(cut.Input)); err != nil {
			return a, err
		}
	}
	if a.native, err = schema.Marshal(&kept); err != nil {
		return a, unread(err)
	}
	return a, a.ended(kept.Stop, kept.Stop == "refusal", kept.Stop == "max_tokens" || kept.Stop == "model_context_window_exceeded")
}

func anthropicBlocks(content []jsontext.Value) (all []block, err error) {
	for i, raw := range content {
		m := objectOf(raw)
		if wordOf(m["type"]) == "" {
			return nil, misshapen("a list of blocks with types", raw)
		}
		b := block{raw: raw}
		switch wordOf(m["type"]) {
		case "text":
			b.text = new(wordOf(m["text"]))
		case "tool_use":
			if b.call, err = called(i, m["id"], m["name"]); err != nil {
				return nil, err
			}
			b.call.Input, b.odd = inputOf(m["input"]), m["input"].Kind() != '{'
		}
		all = append(all, b)
	}
	return all, nil
}

// anthropicNative returns the parts of a step in this API's form, or an empty answer.
func anthropicNative(s *step) *answer {
	if s.role == schema.RoleAssistant {
		if a, err := anthropicAnswer(s.native); err == nil || len(a.blocks) > 0 {
			return &a
		}
		return &answer{}
	}
	content := listOf(objectOf(s.native)["content"])
	a := &answer{}
	for _, raw := range content {
		b := block{raw: raw}
		switch m := objectOf(raw); wordOf(m["type"]) {
		case "text":
			b.text = new(wordOf(m["text"]))
		case "image", "document", "search_result":
		default:
			return &answer{} // of another API, or not allowed for a user
		}
		a.blocks = append(a.blocks, b)
	}
	return a
}
