package mcp

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// readAnswers reads what a server says, on one line or in one body. Without an
// error and without messages it is nothing that any client takes for one. After
// an error nobody can tell what clients would read there, and all are those
// that could be told apart.
func readAnswers(data []byte) (all []message, batch bool, err error) {
	text := bytes.TrimSpace(data)
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return nil, false, nil
	}
	all, batch, err = readMessages(compactedIfLines(text))
	if err != nil {
		return all, batch, fmt.Errorf("it is unreadable: %w", err)
	}
	for i := range all {
		if err := all[i].answerIsClear(); err != nil {
			return all, batch, fmt.Errorf("it is ambiguous: %w", err)
		}
	}
	return all, batch, nil
}

// oneLine is a line of a server as all readers take it for one: some end lines at
// a carriage return, too.
func oneLine(line []byte) ([]byte, error) {
	text := bytes.TrimSpace(line)
	if bytes.IndexByte(text, '\r') < 0 {
		return line, nil
	}
	if text[0] == '{' || text[0] == '[' {
		return append(compactedIfLines(text), '\n'), nil
	}
	for part := range bytes.SplitSeq(text, []byte("\r")) {
		if part = bytes.TrimSpace(part); len(part) > 0 && (part[0] == '{' || part[0] == '[') {
			return line, errors.New("it has a carriage return, after which some readers see another message")
		}
	}
	return line, nil
}

// idsOf are the ids under which somebody may wait for what a server said.
func idsOf(data []byte, all []message) (ids []jsontext.Value) {
	for i := range all {
		for _, m := range all[i].members {
			if alike(m.name, "id") {
				ids = append(ids, all[i].raw[m.at:m.end:m.end])
			}
		}
	}
	if len(ids) > 0 {
		return ids
	}
	text := bytes.TrimSpace(data)
	cut := &tooLong{head: text[:min(glimpse, len(text))], tail: text[max(0, len(text)-glimpse):]}
	if id := cut.id(); id != nil {
		return []jsontext.Value{id}
	}
	return nil
}

// instead is what clients get in the place of what was not passed on: whoever waits
// for a call is told, and without one, whoever may wait.
func instead(ids []jsontext.Value, call func(id jsontext.Value) *entry, why string) (answers []jsontext.Value) {
	var others []jsontext.Value
	for _, id := range ids {
		if e := call(id); e != nil {
			answers = append(answers, withheld(id, e, why))
		} else if a := withheld(id, nil, why); a != nil {
			others = append(others, a)
		}
	}
	if len(answers) > 0 {
		return answers
	}
	return others
}

// withheld is what a client gets in the place of an answer; nil: nobody waits for
// one. e is the call that it is about; nil: it is about something else.
func withheld(id jsontext.Value, e *entry, why string) []byte {
	switch {
	case e != nil:
		return response(e.id, "result", errorResult(e.modern, items(why)))
	case id != nil && (id.Kind() == '"' || id.Kind() == '0'):
		return response(id, "error", fault(-32603, why))
	}
	return nil
}
