package mcp

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// A textItem is one item of a result's content.
type textItem struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// textItems returns texts as items of a result's content.
func textItems(texts ...string) []jsontext.Value {
	all := make([]jsontext.Value, 0, len(texts))
	for _, t := range texts {
		if data, err := schema.Marshal(textItem{"text", t}); err == nil {
			all = append(all, data)
		}
	}
	return all
}

// errorResult returns a result that says that a call failed. A JSON-RPC error would blame the server.
func errorResult(modern bool, content []jsontext.Value) []byte {
	out := append([]byte(`{"content":`), listOf(content)...)
	if modern {
		out = append(out, `,"resultType":"complete"`...)
	}
	return append(out, `,"isError":true}`...)
}

// isFinal reports whether a result is the outcome of a call, and no request for input or receipt of a task.
// One with content is final in any case, since some clients show the content.
func isFinal(result *object) bool {
	if result.get("content") != nil || result.get("structuredContent") != nil {
		return true
	}
	if t := result.get("resultType"); t != nil && text(t) != "complete" {
		return false
	}
	return result.get("task").Kind() != '{'
}

// hasFailed reports whether a result says that the call failed.
func hasFailed(result *object) bool { return result.get("isError").Kind() == 't' }

// toolOutput returns the parts of a result that the tool made, without those of the protocol.
func toolOutput(result *object) jsontext.Value {
	out := object{raw: []byte(`{}`)}
	for _, name := range []string{"content", "structuredContent"} {
		if v := result.get(name); v != nil && v.IsValid(jsontext.AllowInvalidUTF8(true)) {
			out, _ = readObject(out.with(name, v))
		}
	}
	return out.raw
}

// contentText returns the texts of a result's content, one a line.
func contentText(result *object) string {
	values, err := readList(result.get("content"))
	if err != nil {
		return ""
	}
	var texts []string
	for _, v := range values {
		if item, err := readObject(v); err == nil && item.text("type") == "text" {
			texts = append(texts, item.text("text"))
		}
	}
	return strings.Join(texts, "\n")
}

// withContent returns a result with more items at the end of its content.
func withContent(result object, more []jsontext.Value) []byte {
	if len(more) == 0 {
		return result.raw
	}
	values, err := readList(result.get("content"))
	if err != nil {
		values = nil // no reader could read the old content
	}
	return result.with("content", listOf(append(values, more...)))
}

// withOutput returns a result with the output that a hook puts in place of the tool's:
//
//   - a list of content items is the content;
//   - an object with content, structuredContent or isError has these parts of a result;
//   - any other object is the structured content, if there was one, and its JSON the content;
//   - a string, or any other value, is one text.
//
// No part of the tool's output stays. If it had structured content and the hook's has none,
// the result is an error: clients drop results without the members that the
// tool's schema promises, so the model would see neither output.
func withOutput(result object, output jsontext.Value) object {
	hadStructured := result.get("structuredContent") != nil
	var content, structured, isError []byte
	o, err := readObject(output)
	_, contentErr := readList(o.get("content"))
	switch {
	case err == nil && (contentErr == nil || o.get("structuredContent") != nil):
		content, structured, isError = o.get("content"), o.get("structuredContent"), o.get("isError")
		if contentErr != nil {
			content = listOf(textItems(string(structured)))
		}
	case err == nil:
		content = listOf(textItems(string(output)))
		if hadStructured {
			structured = output
		}
	case isContent(output):
		content = output
	default:
		content = listOf(textItems(dialect.Text(output)))
	}
	if isError == nil && hadStructured && structured == nil {
		isError = []byte("true")
	}
	out, err := readObject(result.without("content", "structuredContent"))
	if err != nil {
		out = object{raw: []byte(`{}`)}
	}
	for _, part := range []struct {
		name  string
		value []byte
	}{{"content", content}, {"structuredContent", structured}, {"isError", isError}} {
		if part.value != nil {
			out, _ = readObject(out.with(part.name, part.value))
		}
	}
	return out
}

// isContent reports whether v is a list of content items.
func isContent(v jsontext.Value) bool {
	values, err := readList(v)
	if err != nil {
		return false
	}
	for _, item := range values {
		if o, err := readObject(item); err != nil || o.text("type") == "" {
			return false
		}
	}
	return true
}
