package builtin

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// maxNesting is how many documents inside of documents are opened: a tool's
// output is often JSON in a string in a list of content blocks.
const maxNesting = 4

// maxMatches is how often the pattern is looked for in one text.
const maxMatches = 1024

// finding is a search through one output for reminders.
type finding struct {
	*extractor
	reminders []string
	size      int
	left      int // reminders over the bounds, at least
}

// output searches a tool's output, in whichever form a runtime reports it.
func (f *finding) output(v jsontext.Value) {
	var doc any
	if err := schema.Unmarshal(v, &doc); err == nil {
		f.document(doc, 0)
	}
}

// document searches one whole JSON value: its members by path, then all text.
func (f *finding) document(doc any, nesting int) {
	for _, path := range f.fields {
		f.at(doc, path)
	}
	f.inside(doc, nesting)
}

// at takes what stands at path in doc.
func (f *finding) at(doc any, path []string) {
	for _, name := range path {
		object, _ := doc.(map[string]any)
		doc = object[name]
	}
	switch v := doc.(type) {
	case string:
		f.take(v)
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				f.take(s)
			}
		}
	}
}

// inside goes through everything in v, members in the order of their names.
func (f *finding) inside(v any, nesting int) {
	switch v := v.(type) {
	case string:
		f.text(v, nesting)
	case []any:
		for _, item := range v {
			f.inside(item, nesting)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if structured(name, v[name]) {
				f.document(v[name], nesting)
			} else {
				f.inside(v[name], nesting)
			}
		}
	}
}

// structured reports whether a member is where MCP tools put the same document
// as JSON that their content holds as text.
func structured(name string, v any) bool {
	_, object := v.(map[string]any)
	return object && (name == "structuredContent" || name == "structured_content")
}

// text searches a string: as a document of its own, if it holds one, else for
// the pattern.
func (f *finding) text(s string, nesting int) {
	if doc, ok := embedded(s); ok && nesting < maxNesting {
		f.document(doc, nesting+1)
		return
	}
	if f.pattern == nil {
		return
	}
	matches := f.pattern.FindAllStringSubmatch(s, maxMatches)
	for _, m := range matches {
		f.take(m[1])
	}
	if len(matches) == maxMatches {
		f.left++
	}
}

// embedded reads a JSON object or list out of a string.
func embedded(s string) (doc any, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" || s[0] != '{' && s[0] != '[' {
		return nil, false
	}
	err := schema.Unmarshal([]byte(s), &doc)
	return doc, err == nil
}

// take notes a reminder, once, within bounds.
func (f *finding) take(s string) {
	s = strings.TrimSpace(s)
	switch {
	case s == "" || slices.Contains(f.reminders, s):
	case len(f.reminders) == maxReminders || f.size+len(s) > maxText:
		f.left++
	default:
		f.reminders = append(f.reminders, s)
		f.size += len(s)
	}
}
