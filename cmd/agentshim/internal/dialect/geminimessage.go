package dialect

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// geminiMessage is a model's message in Gemini CLI's form.
type geminiMessage struct {
	Candidates []geminiCandidate `json:"candidates"`
}

type geminiCandidate struct {
	Content jsontext.Value `json:"content"`
	Finish  string         `json:"finishReason"`
	Index   int            `json:"index"`
}

// answered reads the model's message. Of the chunks of a stream, the fabric judges the last one.
func (gemini) answered(c *Call, answer jsontext.Value) {
	var said struct {
		Text       string `json:"text"`
		Candidates []struct {
			Content jsontext.Value `json:"content"`
			Finish  jsontext.Value `json:"finishReason"`
		} `json:"candidates"`
	}
	if answer.Kind() != '{' || schema.Unmarshal(answer, &said) != nil {
		return // an unreadable chunk may be the last one, so the fabric judges it
	}
	last := false
	for _, one := range said.Candidates {
		last = last || word(one.Finish) != ""
	}
	if !last {
		m := c.Moment
		m.Event = ""
		c.become(m)
		return
	}
	var m schema.Message
	if len(said.Candidates) > 0 {
		m = geminiContent(said.Candidates[0].Content)
	}
	if m.Content = cmp.Or(said.Text, m.Content); m.Content != "" && len(m.ToolCalls) == 0 {
		c.Event.Message = quoted(m.Content)
	} else if v, err := schema.Marshal(&m); err == nil && m.Native != nil {
		c.Event.Message = v
	}
}

// geminiContent converts Gemini's content, whose texts are strings for hooks, to a message.
func geminiContent(content jsontext.Value) schema.Message {
	m := schema.Message{Role: schema.RoleAssistant, Native: present(content)}
	var said struct {
		Parts []jsontext.Value `json:"parts"`
	}
	if content.Kind() != '{' || schema.Unmarshal(content, &said) != nil {
		return m
	}
	var texts []string
	for _, part := range said.Parts {
		var p struct {
			Text    string `json:"text"`
			Thought bool   `json:"thought"`
			Call    *struct {
				ID   string         `json:"id"`
				Name string         `json:"name"`
				Args jsontext.Value `json:"args"`
			} `json:"functionCall"`
		}
		switch {
		case part.Kind() == '"':
			texts = append(texts, Text(part))
		case part.Kind() != '{' || schema.Unmarshal(part, &p) != nil:
		case p.Call != nil:
			m.ToolCalls = append(m.ToolCalls, schema.ToolCall{ID: p.Call.ID, Name: p.Call.Name, Input: present(p.Call.Args)})
		case p.Text != "" && !p.Thought:
			texts = append(texts, p.Text)
		}
	}
	m.Content = strings.Join(texts, "")
	return m
}

// synthetic returns a message as a response of the model, of which Gemini CLI reads only texts.
func synthetic(message jsontext.Value) any {
	content, _ := schema.Marshal(map[string]any{"role": "model", "parts": []string{cmp.Or(messageText(message), "(no text)")}})
	return geminiMessage{Candidates: []geminiCandidate{{Content: content, Finish: "STOP"}}}
}
