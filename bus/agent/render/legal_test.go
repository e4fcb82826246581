package render_test

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// illegal returns why an API would refuse the messages of a request. It implements the
// rules of the APIs independently of the code under test.
func illegal(f render.Format, r render.Request) error {
	switch f {
	case render.Anthropic:
		return illegalAnthropic(r)
	case render.Gemini:
		return illegalGemini(r)
	}
	return illegalOpenAI(r)
}

type spokenBlock struct {
	Type  string         `json:"type"`
	Text  optionalText   `json:"text"`
	ID    optionalText   `json:"id"`
	Of    optionalText   `json:"tool_use_id"`
	Input jsontext.Value `json:"input"`
}

// An optionalText is a member that is a string in blocks of some types. In a block of an unknown type it may be
// anything, and is empty then.
type optionalText string

func (o *optionalText) UnmarshalJSON(data []byte) error {
	if jsontext.Value(data).Kind() != '"' {
		return nil
	}
	return schema.Unmarshal(data, (*string)(o))
}

// The Messages API requires: user and model in turns, the user first and last; no blank
// texts; unique ids of calls; and all their results first in the next message.
func illegalAnthropic(r render.Request) error {
	var waiting []optionalText
	ids := map[optionalText]bool{}
	for i, raw := range r.Messages {
		var m struct {
			Role    string        `json:"role"`
			Content []spokenBlock `json:"content"`
		}
		if err := schema.Unmarshal(raw, &m); err != nil {
			return err
		}
		if want := []string{"user", "assistant"}[i%2]; m.Role != want || len(m.Content) == 0 {
			return fmt.Errorf("message %d is of %s and has %d blocks: %s", i, m.Role, len(m.Content), raw)
		}
		for n, b := range m.Content {
			switch {
			case b.Type == "text" && strings.TrimSpace(string(b.Text)) == "":
				return fmt.Errorf("message %d has a blank text", i)
			case b.Type == "tool_use" && (m.Role != "assistant" || ids[b.ID] || b.ID == "" || b.Input.Kind() != '{'):
				return fmt.Errorf("message %d has an invalid call: %s", i, raw)
			case b.Type == "tool_use":
				waiting, ids[b.ID] = append(waiting, b.ID), true
			case b.Type == "tool_result" && (n > 0 && m.Content[n-1].Type != "tool_result" || len(waiting) == 0 || waiting[0] != b.Of):
				return fmt.Errorf("message %d has a result at a wrong place: %s", i, raw)
			case b.Type == "tool_result":
				waiting = waiting[1:]
			}
		}
		if m.Role == "user" && len(waiting) > 0 {
			return fmt.Errorf("message %d does not answer %q", i, waiting)
		}
	}
	if len(r.Messages)%2 == 0 || len(r.Contents) > 0 || len(r.SystemInstruction) > 0 {
		return fmt.Errorf("%d messages, %d contents", len(r.Messages), len(r.Contents))
	}
	return nil
}

// Chat Completions requires that the results of calls follow directly, and are nowhere
// else.
func illegalOpenAI(r render.Request) error {
	var waiting []string
	for i, raw := range r.Messages {
		var m struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
			Refusal string         `json:"refusal"`
			Of      string         `json:"tool_call_id"`
			Calls   []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string  `json:"name"`
					Arguments *string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		}
		if err := schema.Unmarshal(raw, &m); err != nil {
			return err
		}
		if m.Role == "tool" {
			if len(waiting) == 0 || waiting[0] != m.Of {
				return fmt.Errorf("message %d answers %q, and %q wait", i, m.Of, waiting)
			}
			waiting = waiting[1:]
			continue
		}
		if len(waiting) > 0 {
			return fmt.Errorf("message %d comes before the results of %q", i, waiting)
		}
		if k := m.Content.Kind(); k != '"' && k != '[' && m.Refusal == "" && len(m.Calls) == 0 || len(m.Calls) > 0 && m.Role != "assistant" {
			return fmt.Errorf("message %d is invalid: %s", i, raw)
		}
		for _, c := range m.Calls {
			if c.ID == "" || c.Type != "function" || c.Function.Name == "" || c.Function.Arguments == nil {
				return fmt.Errorf("message %d has an invalid call: %s", i, raw)
			}
			waiting = append(waiting, c.ID)
		}
	}
	if len(waiting) > 0 || len(r.System)+len(r.SystemInstruction)+len(r.Contents) > 0 {
		return fmt.Errorf("%q wait at the end, or there is more than messages", waiting)
	}
	return nil
}

// generateContent requires: the user first and last; user and model in turns, except for
// a content of responses, which is alone and has as many as there were calls.
func illegalGemini(r render.Request) error {
	before, waiting := "", 0
	for i, raw := range r.Contents {
		var c struct {
			Role  string                      `json:"role"`
			Parts []map[string]jsontext.Value `json:"parts"`
		}
		if err := schema.Unmarshal(raw, &c); err != nil {
			return err
		}
		calls, responses := 0, 0
		for _, p := range c.Parts {
			if p["functionCall"] != nil {
				calls++
			}
			if p["functionResponse"] != nil {
				responses++
			}
		}
		speaker := c.Role
		if responses > 0 {
			speaker = "responses"
		}
		switch {
		case len(c.Parts) == 0, i == 0 && c.Role != "user", speaker == before:
			return fmt.Errorf("content %d is of %s after %s: %s", i, speaker, before, raw)
		case responses > 0 && responses != len(c.Parts), responses != waiting, calls > 0 && c.Role != "model":
			return fmt.Errorf("content %d has %d responses among %d parts to %d calls: %s", i, responses, len(c.Parts), waiting, raw)
		}
		before, waiting = speaker, calls
	}
	if before == "model" || before == "" || waiting > 0 || len(r.Messages)+len(r.System) > 0 {
		return fmt.Errorf("%s has the last word", before)
	}
	return nil
}
