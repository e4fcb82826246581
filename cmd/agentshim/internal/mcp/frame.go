package mcp

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// A frame is one line or one HTTP body: a message, or in MCP 2025-03-26 a list of messages.
type frame struct {
	raw      []byte
	messages []message
	list     bool
}

// readFrame reads one line. After an error, the frame has the messages before it.
func readFrame(raw []byte) (frame, error) {
	f := frame{raw: raw}
	raw = bytes.TrimRight(raw, "\r\n")
	if bytes.IndexByte(raw, '\r') >= 0 {
		return f, errors.New("it has a carriage return in the middle, which some readers take for the end of a line")
	}
	parts := []jsontext.Value{raw}
	if f.list = parts[0].Kind() == '['; f.list {
		var err error
		if parts, err = readList(raw); err != nil {
			return f, err
		}
	}
	for _, part := range parts {
		m, err := readMessage(part)
		f.messages = append(f.messages, m)
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// readServerFrame reads a line or a body of a server. A frame without messages is text that no client takes
// for one. After an error, clients could find different messages in it.
func readServerFrame(raw []byte) (frame, error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return frame{raw: raw}, nil
	}
	f, err := readFrame(onOneLine(trimmed))
	f.raw = raw
	if err != nil {
		return f, fmt.Errorf("it is unreadable: %w", err)
	}
	for i := range f.messages {
		if err := f.messages[i].checkAnswer(); err != nil {
			return f, fmt.Errorf("it is ambiguous: %w", err)
		}
	}
	return f, nil
}

// onOneLine returns JSON without the space between its values if a line could end there.
func onOneLine(data []byte) []byte {
	if !bytes.ContainsAny(bytes.TrimSpace(data), "\r\n") {
		return data
	}
	v := jsontext.Value(bytes.Clone(data))
	if v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true)) != nil {
		return data
	}
	return v
}

// splitSafe returns a line as one for all readers: some end a line at a carriage return, too.
func splitSafe(line []byte) ([]byte, error) {
	trimmed := bytes.TrimSpace(line)
	if bytes.IndexByte(trimmed, '\r') < 0 {
		return line, nil
	}
	if trimmed[0] == '{' || trimmed[0] == '[' {
		return append(onOneLine(trimmed), '\n'), nil
	}
	for part := range bytes.SplitSeq(trimmed, []byte("\r")) {
		if part = bytes.TrimSpace(part); len(part) > 0 && (part[0] == '{' || part[0] == '[') {
			return line, errors.New("it has a carriage return, after which some readers see another message")
		}
	}
	return line, nil
}

// encode returns a frame of messages: the original bytes, if they are the frame's own.
func (f *frame) encode(messages []jsontext.Value) []byte {
	same := len(messages) == len(f.messages)
	for i := 0; same && i < len(messages); i++ {
		same = bytes.Equal(messages[i], f.messages[i].raw)
	}
	switch {
	case same:
		return f.raw
	case f.list:
		return listOf(messages)
	}
	return messages[0]
}

func rawMessages(all []message) []jsontext.Value {
	values := make([]jsontext.Value, len(all))
	for i := range all {
		values[i] = all[i].raw
	}
	return values
}

// ids returns the ids of the requests that a server's frame could answer.
func (f *frame) ids() (ids []jsontext.Value) {
	for i := range f.messages {
		for _, m := range f.messages[i].members {
			if similar(m.name, "id") {
				ids = append(ids, f.messages[i].value(m))
			}
		}
	}
	if len(ids) > 0 {
		return ids
	}
	trimmed := bytes.TrimSpace(f.raw)
	ends := &tooLongError{head: trimmed[:min(excerpt, len(trimmed))], tail: trimmed[max(0, len(trimmed)-excerpt):]}
	if id := ends.id(); id != nil {
		return []jsontext.Value{id}
	}
	return nil
}

// dropped returns answers in place of a dropped frame: to the calls with these ids, or else to other requests.
func dropped(ids []jsontext.Value, take func(id jsontext.Value) *pendingCall, reason string) (answers []jsontext.Value) {
	var others []jsontext.Value
	for _, id := range ids {
		if p := take(id); p != nil {
			answers = append(answers, droppedAnswer(id, p, reason))
		} else if a := droppedAnswer(id, nil, reason); a != nil {
			others = append(others, a)
		}
	}
	if len(answers) > 0 {
		return answers
	}
	return others
}

// droppedAnswer returns an answer to p, or to another request with the id; nil: there is none.
func droppedAnswer(id jsontext.Value, p *pendingCall, reason string) []byte {
	switch {
	case p != nil:
		return resultResponse(p.id, errorResult(p.modern, textItems(reason)))
	case id != nil && (id.Kind() == '"' || id.Kind() == '0'):
		return errorResponse(id, codeInternal, reason)
	}
	return nil
}
