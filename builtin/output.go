package builtin

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// maxNesting is how many levels of documents inside documents are decoded: a tool's
// output is often JSON in a string in a list of content blocks.
const maxNesting = 4

// A search walks through a tool's output, in the form of any runtime.
type search struct {
	// document is called for each whole JSON value: the output itself, JSON in strings,
	// and the copy that MCP tools add.
	document func(doc any)
	// text is called for each string that is not a document.
	text func(s string)
	// holds reports whether the object in the named member is a document.
	holds func(name string) bool
	// enters reports whether the named members are searched; nil: all are.
	enters func(name string) bool
}

// output searches a tool's output.
func (s *search) output(v jsontext.Value) {
	var doc any
	if err := schema.Unmarshal(v, &doc); err == nil {
		s.whole(doc, 0)
	}
}

// whole searches one document.
func (s *search) whole(doc any, nesting int) {
	s.document(doc)
	s.inside(doc, nesting)
}

// inside walks through everything in v, members in the order of their names.
func (s *search) inside(v any, nesting int) {
	switch v := v.(type) {
	case string:
		if doc, ok := embedded(v); ok && nesting < maxNesting {
			s.whole(doc, nesting+1)
		} else {
			s.text(v)
		}
	case []any:
		for _, item := range v {
			s.inside(item, nesting)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if _, object := v[name].(map[string]any); object && s.holds(name) {
				s.whole(v[name], nesting)
			} else if s.enters == nil || s.enters(name) {
				s.inside(v[name], nesting)
			}
		}
	}
}

// structured reports whether the named member is where MCP tools repeat their content as
// a JSON value.
func structured(name string) bool { return name == "structuredContent" || name == "structured_content" }

// wrapping reports whether the named member is where tools and runtimes put a tool's
// result.
func wrapping(name string) bool {
	switch name {
	case "result", "output", "response", "tool_response", "tool_result", "toolResult":
		return true
	}
	return structured(name)
}

// carrying reports whether the named member is where runtimes put a tool's text. JSON in
// other members is not output of the tool.
func carrying(name string) bool {
	switch name {
	case "content", "text", "llmContent", "returnDisplay", "textResultForLlm", "text_result_for_llm", "stdout":
		return true
	}
	return wrapping(name)
}

// anyDocument reports whether an object that a tool returned satisfies is. Results that
// are marked as errors do not count.
func anyDocument(output jsontext.Value, is func(doc map[string]any) bool) bool {
	found, failed := false, false
	s := search{text: func(string) {}, holds: wrapping, enters: carrying, document: func(doc any) {
		object, _ := doc.(map[string]any)
		failed = failed || object["isError"] == true || object["is_error"] == true
		found = found || object != nil && !failed && is(object)
	}}
	s.output(output)
	return found
}

// embedded decodes a JSON object or list in a string.
func embedded(s string) (doc any, ok bool) {
	s = strings.TrimSpace(s)
	// Gemini CLI wraps the output of servers in this tag.
	if inner, ok := strings.CutPrefix(s, "<untrusted_context>"); ok {
		s = strings.TrimSpace(strings.TrimSuffix(inner, "</untrusted_context>"))
	}
	if s == "" || s[0] != '{' && s[0] != '[' {
		return nil, false
	}
	err := schema.Unmarshal([]byte(s), &doc)
	return doc, err == nil
}
