package builtin

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxMatches is how many matches of the pattern are used in one text.
const maxMatches = 1024

// finding is a search for reminders in one output.
type finding struct {
	*extractor
	reminders []string
	size      int
	left      int // reminders over the limits, at least
}

// output searches a tool's output, in the form of any runtime.
func (f *finding) output(v jsontext.Value) {
	s := search{document: f.document, text: f.text, holds: structured}
	s.output(v)
}

// document searches one whole JSON value for the members.
func (f *finding) document(doc any) {
	for _, path := range f.fields {
		f.at(doc, path)
	}
}

// at takes the value at path in doc.
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

// text searches a string that is not a document for the pattern.
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

// take adds a reminder unless it is a duplicate or exceeds the limits.
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
