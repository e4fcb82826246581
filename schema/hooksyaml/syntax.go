package hooksyaml

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A wording replaces a message of the parser.
type wording struct {
	// says and while are parts of the parser's message and of its context.
	says, while string
	message     string
	hint        string
	// opening means that the fault is where the construct began, not where it was
	// detected.
	opening bool
}

var wordings = []wording{
	{says: "too deep", message: fmt.Sprintf("values nest deeper than %d levels", maxDepth), hint: "write them flat"},
	{says: "did not find expected alphabetic or numeric", while: "alias", message: "YAML reads a * here as an alias", hint: `put the whole value in quotes, such as "mcp__*"`},
	{says: "did not find expected alphabetic or numeric", while: "anchor", message: "YAML reads an & here as an anchor", hint: "put the whole value in quotes"},
	{says: "tab character", message: "a tab is where YAML requires spaces", hint: "indent with spaces"},
	{says: "mapping values are not allowed", message: `a ": " is where no key can be`, hint: "put the value in quotes if the colon belongs to it; else correct the indentation, or end the line above with a colon"},
	{says: "mapping keys are not allowed", message: "a ? is where no key can be", hint: "put the value in quotes"},
	{says: "block sequence entries are not allowed", message: "a list cannot begin here", hint: "put its first - on a line of its own, below the key"},
	{says: "did not find expected ',' or ']'", message: "this [ is not closed, or a comma is missing after it", hint: "close it with ], or put the value in quotes", opening: true},
	{says: "did not find expected ',' or '}'", message: "this { is not closed, or a comma is missing after it", hint: "close it with }, or put the value in quotes", opening: true},
	{says: "did not find expected node content", message: "a value is missing here", hint: "write it, or close the bracket"},
	{says: "did not find expected '-' indicator", message: "this line is in a list but does not begin an item", hint: "begin it with -, or correct its indentation"},
	{says: "did not find expected key", message: "this does not continue the lines above", hint: "correct the indentation, or put the whole value in quotes"},
	{says: "could not find expected ':'", message: "a key without a colon", hint: "write key: value", opening: true},
	{says: "unexpected end of stream", while: "quoted", message: "this quote is never closed", hint: "close it", opening: true},
	{says: "unexpected document indicator", while: "quoted", message: "this quote is never closed", hint: "close it", opening: true},
	{says: "escape", while: "quoted", message: `a \ in double quotes begins an escape, and this is not one`, hint: "put the value in single quotes, where \\ is an ordinary character"},
	{says: "incompatible YAML document", message: "a %YAML line is not supported", hint: "remove it"},
	{says: "", while: "directive", message: "lines that begin with % are not supported", hint: "remove it, or put the value in quotes"},
	{says: "", while: "tag", message: "YAML reads a ! here as a tag", hint: "put the value in quotes"},
}

// syntax turns the parser's error into a fault. There is at most one, because the text
// after it cannot be parsed.
func (r *reader) syntax(err error) {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		r.faultAt(1, 1, "this is not YAML: "+err.Error(), "")
		return
	}
	line, column := e.Mark.Line, e.Mark.Column
	if name, ok := strings.CutPrefix(e.Message, "unknown anchor '"); ok {
		name = strings.TrimSuffix(name, "' referenced")
		r.faultAt(line, column, fmt.Sprintf("YAML reads *%s as an alias, and there is no anchor &%s", name, name), fmt.Sprintf(`put globs in quotes: "*%s"`, name))
		return
	}
	if strings.Contains(e.Message, "cannot start any token") {
		r.badStart(line, column)
		return
	}
	for _, w := range wordings {
		if strings.Contains(e.Message, w.says) && strings.Contains(e.ContextMsg, w.while) {
			if w.opening && e.ContextMark.Line > 0 {
				line, column = e.ContextMark.Line, e.ContextMark.Column
			}
			r.faultAt(max(line, 1), max(column, 1), w.message, w.hint)
			return
		}
	}
	r.faultAt(max(line, 1), max(column, 1), "this is not YAML: "+strings.TrimSpace(e.ContextMsg+" "+e.Message), "correct the indentation and the quotes around here")
}

// badStart words the fault of a value that begins with a reserved character.
func (r *reader) badStart(line, column int) {
	runes := []rune(r.source.line(line))
	if column < 1 || column > len(runes) || runes[column-1] == '\t' {
		r.faultAt(line, column, "a tab is where YAML requires spaces", "indent with spaces")
		return
	}
	r.faultAt(line, column, fmt.Sprintf("a value cannot begin with %c", runes[column-1]), "put the value in quotes")
}
