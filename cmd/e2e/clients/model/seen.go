package model

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// readMessages reads the conversation from a request's body, in any of the protocols.
func (r *Request) readMessages() {
	var in struct {
		System      jsontext.Value `json:"system"`
		Instruction jsontext.Value `json:"systemInstruction"`
		Messages    jsontext.Value `json:"messages"`
		Contents    jsontext.Value `json:"contents"`
		Input       jsontext.Value `json:"input"`
	}
	if schema.Unmarshal(r.Body, &in) != nil {
		return
	}
	r.System = words(in.System) + words(in.Instruction)
	for _, list := range []jsontext.Value{in.Messages, in.Contents, in.Input} {
		var all []jsontext.Value
		if list.Kind() != '[' || schema.Unmarshal(list, &all) != nil {
			continue
		}
		for _, one := range all {
			var m struct {
				Role string `json:"role"`
			}
			_ = schema.Unmarshal(one, &m)
			r.Messages = append(r.Messages, Message{Role: m.Role, Text: words(one), Raw: one})
		}
	}
}

// turns counts the turns of the model.
func (r *Request) turns() int {
	n := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" || m.Role == "model" {
			n++
		}
	}
	return n
}

// words returns the strings of a message that a model reads, one per line.
func words(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	var all []string
	names := []string{""} // of the enclosing objects, innermost last
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return strings.Join(all, "\n")
		}
		in, n := d.StackIndex(d.StackDepth())
		names = append(names, "")[:d.StackDepth()+1]
		switch {
		case t.Kind() != '"':
		case in == '{' && n%2 == 1:
			names[len(names)-1] = t.String()
		case in == '{' && protocols(names[len(names)-1]):
		default:
			all = append(all, t.String())
		}
	}
}

// protocols reports whether the values of a name belong to the protocol.
func protocols(name string) bool {
	return slices.Contains([]string{"role", "type", "id", "name", "tool_use_id", "tool_call_id", "call_id", "signature", "thoughtSignature"}, name)
}
