package mcp

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A textItem is one item of a result's content.
type textItem struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// items are texts as items of a result's content.
func items(texts ...string) []jsontext.Value {
	all := make([]jsontext.Value, 0, len(texts))
	for _, t := range texts {
		if data, err := schema.Marshal(textItem{"text", t}); err == nil {
			all = append(all, data)
		}
	}
	return all
}

// listOf is a JSON list of values.
func listOf(values []jsontext.Value) []byte {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// errorResult is the result of a call that was not made, or of which there is
// nothing better to show. Models read it; clients may take a JSON-RPC error for a
// server that is broken.
func errorResult(modern bool, content []jsontext.Value) []byte {
	out := append([]byte(`{"content":`), listOf(content)...)
	if modern {
		out = append(out, `,"resultType":"complete"`...)
	}
	return append(out, `,"isError":true}`...)
}

// finished reports whether a result is what came of a call: not a request for
// more input, and not the receipt of a task that goes on. What has content is
// that, whatever it says of itself: there are clients that show it.
func finished(result *object) bool {
	if result.get("content") != nil || result.get("structuredContent") != nil {
		return true
	}
	if t := result.get("resultType"); t != nil && text(t) != "complete" {
		return false
	}
	return result.get("task").Kind() != '{'
}

// failed reports whether a result says that the call went wrong.
func failed(result *object) bool { return result.get("isError").Kind() == 't' }

// output is the tool's output as hooks see it: what the server made, without
// what is between the client and the server.
func output(result *object) jsontext.Value {
	out := object{raw: []byte(`{}`)}
	for _, name := range []string{"content", "structuredContent"} {
		if v := result.get(name); v != nil && v.IsValid(jsontext.AllowInvalidUTF8(true)) {
			with := out.with(name, v)
			out, _ = readObject(with)
		}
	}
	return out.raw
}

// spoken are the texts of a result's content.
func spoken(result *object) string {
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

// added is a result with more items at the end of its content.
func added(result object, more []jsontext.Value) []byte {
	if len(more) == 0 {
		return result.raw
	}
	values, err := readList(result.get("content"))
	if err != nil {
		values = nil // it has none that anybody could read
	}
	return result.with("content", listOf(append(values, more...)))
}

// replaced is a result whose output a hook replaced by another one:
//
//   - a list of content items is the content;
//   - an object with content, structuredContent or isError says these;
//   - any other object is the structured content, if there was one, and its JSON
//     the content;
//   - a string, or anything else, is one text.
//
// Of what the server made, nothing stays. Where it had structured content and the
// hook gives none, the result is an error: clients drop results that do
// not have what the tool's schema promises, and the model would see neither.
func replaced(result object, by jsontext.Value) object {
	structured := result.get("structuredContent") != nil
	var content, data, isError []byte
	o, err := readObject(by)
	_, contentErr := readList(o.get("content"))
	switch {
	case err == nil && (contentErr == nil || o.get("structuredContent") != nil):
		content, data, isError = o.get("content"), o.get("structuredContent"), o.get("isError")
		if contentErr != nil {
			content = listOf(items(string(data)))
		}
	case err == nil:
		content = listOf(items(string(by)))
		if structured {
			data = by
		}
	case contentItems(by):
		content = by
	default:
		content = listOf(items(plain(by)))
	}
	rest, err := readObject(result.without("content", "structuredContent"))
	if err != nil {
		rest = object{raw: []byte(`{}`)}
	}
	set := func(name string, value []byte) {
		if value != nil {
			rest, _ = readObject(rest.with(name, value))
		}
	}
	set("content", content)
	set("structuredContent", data)
	if isError == nil && structured && data == nil {
		isError = []byte("true")
	}
	set("isError", isError)
	return rest
}

// contentItems reports whether v is a list of content items.
func contentItems(v jsontext.Value) bool {
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

// plain is a JSON value as a model reads it.
func plain(v jsontext.Value) string {
	if v.Kind() == '"' {
		return text(v)
	}
	return string(v)
}
