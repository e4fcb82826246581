package model

import (
	"net/http"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// gemini routes by the part of an address after a model's name.
func (s *Server) gemini(w http.ResponseWriter, r *http.Request) {
	_, verb, _ := strings.Cut(r.PathValue("call"), ":")
	switch verb {
	case "streamGenerateContent":
		s.answer(contents{streamed: true})(w, r)
	case "generateContent":
		s.answer(contents{})(w, r)
	case "countTokens":
		static(`{"totalTokens":100}`)(w, r)
	default:
		s.unknown(w, r)
	}
}

// contents is Gemini's protocol.
type contents struct{ streamed bool }

func (contents) read(body []byte) (Request, error) {
	var in struct {
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Contents []struct {
			Role string `json:"role"`
		} `json:"contents"`
	}
	if err := schema.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Turn: -1}
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			r.Tools = append(r.Tools, f.Name)
		}
	}
	if len(r.Tools) == 0 {
		return r, nil
	}
	r.Turn = 0
	for _, c := range in.Contents {
		if c.Role == "model" {
			r.Turn++
		}
	}
	return r, nil
}

func (c contents) write(w http.ResponseWriter, t Turn, _ []byte) error {
	var parts []object
	if t.Text != "" {
		parts = append(parts, object{"text": t.Text})
	}
	for _, call := range t.Calls {
		parts = append(parts, object{"functionCall": object{"id": call.ID, "name": call.Tool, "args": call.Input}})
	}
	why := "STOP"
	if t.Cut {
		why = "MAX_TOKENS"
	}
	answer := object{
		"candidates":    []object{{"content": object{"role": "model", "parts": parts}, "finishReason": why, "index": 0}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
		"modelVersion":  "scripted",
	}
	if c.streamed {
		return stream(w, []event{{data: answer}})
	}
	return send(w, answer)
}
