package render

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// geminiContent is a content of generateContent.
type geminiContent struct {
	Role string `json:"role"`
	// Parts are made here, or as the API sent them.
	Parts []any `json:"parts"`

	// responses means that it has the results of calls, and nothing may be added to it.
	responses bool
}

type geminiPart struct {
	FunctionResponse *geminiResponse `json:"functionResponse,omitzero"`
	Text             string          `json:"text,omitzero"`
}

// geminiResponse names a call by its function, and by its id if the model gave one.
type geminiResponse struct {
	ID       string                    `json:"id,omitzero"`
	Name     string                    `json:"name"`
	Response map[string]jsontext.Value `json:"response"`
}

// gemini puts all responses of a turn into one content. The API refuses a turn in which
// one is missing or other parts precede them.
func gemini(turn []rendering) ([]any, error) {
	var results []any
	var messages []any
	for _, s := range turn {
		if s.result != nil {
			r, err := geminiResult(s)
			if err != nil {
				return nil, err
			}
			results = append(results, geminiPart{FunctionResponse: r})
		}
		for _, t := range s.texts {
			messages = append(messages, geminiContent{Role: "user", Parts: []any{geminiPart{Text: t}}})
		}
	}
	if len(results) == 0 {
		return messages, nil
	}
	return append([]any{geminiContent{Role: "user", Parts: results, responses: true}}, messages...), nil
}

// geminiResult returns a response with the API's own keys, output and error.
func geminiResult(s rendering) (*geminiResponse, error) {
	r := s.result
	if err := r.named(); err != nil {
		return nil, err
	}
	value := r.output
	if len(value) == 0 || len(s.notes) > 0 {
		text, err := schema.Marshal(separated(r.words(), s.notes))
		if err != nil {
			return nil, fmt.Errorf("encoding a tool's result: %w", err)
		}
		value = text
	}
	key := "output"
	if r.failed {
		key = "error"
	}
	return &geminiResponse{ID: r.id, Name: r.tool, Response: map[string]jsontext.Value{key: value}}, nil
}

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

// geminiKept is what Native keeps of an answer of generateContent.
type geminiKept struct {
	Stop    string `json:"finishReason,omitzero"`
	Content struct {
		Role  string           `json:"role"`
		Parts []jsontext.Value `json:"parts"`
	} `json:"content"`
}

// geminiAnswer reads an answer of generateContent.
func geminiAnswer(response jsontext.Value) (a answer, err error) {
	var in struct {
		Candidates []struct {
			Stop    jsontext.Value `json:"finishReason"`
			Why     jsontext.Value `json:"finishMessage"`
			Content jsontext.Value `json:"content"`
		} `json:"candidates"`
		Feedback jsontext.Value `json:"promptFeedback"`
	}
	if err := schema.Unmarshal(response, &in); err != nil {
		return a, unread(err)
	}
	if len(in.Candidates) == 0 {
		if why := wordOf(objectOf(in.Feedback)["blockReason"]); why != "" {
			return a, fmt.Errorf("%w: the prompt was blocked for %.100q", ErrRefused, why)
		}
		return a, misshapen("one with candidates", response)
	}
	c := in.Candidates[0]
	kept := geminiKept{Stop: wordOf(c.Stop)}
	kept.Content.Role, kept.Content.Parts = "model", listOf(objectOf(c.Content)["parts"])
	if a.blocks, err = geminiBlocks(kept.Content.Parts); err != nil {
		return a, err
	}
	if a.native, err = schema.Marshal(&kept); err != nil {
		return a, unread(err)
	}
	if len(a.calls()) == 0 && slices.Contains([]string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"}, kept.Stop) {
		return a, fmt.Errorf("the model made a call that its API could not read (%s): %.300q", kept.Stop, wordOf(c.Why))
	}
	return a, a.ended(kept.Stop, !slices.Contains([]string{"", "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED"}, kept.Stop), kept.Stop == "MAX_TOKENS")
}

func geminiBlocks(parts []jsontext.Value) (all []block, err error) {
	for i, raw := range parts {
		m := objectOf(raw)
		if m == nil {
			return nil, misshapen("a list of parts", raw)
		}
		b := block{raw: raw}
		switch call := objectOf(m["functionCall"]); {
		case call != nil:
			if b.call, err = called(i, call["id"], call["name"]); err != nil {
				return nil, err
			}
			b.call.Input, b.odd = inputOf(call["args"]), len(call["args"]) > 0 && call["args"].Kind() != '{'
		case string(m["thought"]) == "true":
		case textOf(m["text"]) != nil && (len(m) == 1 || !blank(wordOf(m["text"]))): // a part without text may have a signature
			b.text = textOf(m["text"])
		}
		all = append(all, b)
	}
	return all, nil
}

// geminiNative returns the parts of a step in this API's form, or an empty answer.
func geminiNative(s *step) *answer {
	members := objectOf(s.native)
	if c := members["content"]; c.Kind() == '{' {
		members = objectOf(c)
	}
	blocks, err := geminiBlocks(listOf(members["parts"]))
	if err != nil || s.role == schema.RoleUser && slices.ContainsFunc(blocks, notAUsers) {
		return &answer{}
	}
	return &answer{blocks: blocks}
}

func notAUsers(b block) bool {
	return b.call != nil || objectOf(b.raw)["functionResponse"] != nil
}
