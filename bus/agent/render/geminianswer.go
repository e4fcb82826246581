package render

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

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
