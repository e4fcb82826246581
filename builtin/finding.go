package builtin

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

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
	s := search{document: f.document, text: f.text, holds: structured}
	s.output(v)
}

// document takes what one whole JSON value holds in the members looked for.
func (f *finding) document(doc any) {
	for _, path := range f.fields {
		f.at(doc, path)
	}
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

// text searches a string that holds no document for the pattern.
func (f *finding) text(s string) {
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
