package render

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

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
