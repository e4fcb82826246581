package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxMessage is the longest message that is passed on, in bytes.
	MaxMessage = 64 << 20
	// glimpse is how much of each end of a longer one is looked at.
	glimpse = 64 << 10
)

// A tooLong is a message of which nobody keeps more than its ends.
type tooLong struct{ head, tail []byte }

func (*tooLong) Error() string { return "the message is longer than the limit of 64 MiB" }

// readLine reads one line, with its end. Of one that is too long only the ends
// are kept. The last line may have no end.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > MaxMessage {
			return nil, skipLine(r, append(line, part...), err)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// skipLine reads the rest of a line that is too long.
func skipLine(r *bufio.Reader, line []byte, err error) error {
	t := &tooLong{head: bytes.Clone(line[:min(glimpse, len(line))]), tail: bytes.Clone(line[max(0, len(line)-glimpse):])}
	for errors.Is(err, bufio.ErrBufferFull) {
		var part []byte
		part, err = r.ReadSlice('\n')
		t.tail = append(t.tail, part...)
		t.tail = bytes.Clone(t.tail[max(0, len(t.tail)-glimpse):])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return t
}

// idLast finds the id of a message that ends with it.
const idLast = `"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?}\s*$`

// id is that of a message that is too long, if it stands at one of its ends.
func (t *tooLong) id() jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewReader(t.head), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if open, err := dec.ReadToken(); err == nil && open.Kind() == '{' {
		for {
			name, err := dec.ReadToken()
			if err != nil || name.Kind() != '"' {
				break
			}
			isID := name.String() == "id"
			value, err := dec.ReadValue()
			if err != nil {
				break
			}
			if isID {
				return bytes.Clone(value)
			}
		}
	}
	if found := regexp.MustCompile(idLast).FindSubmatch(t.tail); found != nil {
		return found[1]
	}
	return nil
}

// A lineWriter writes whole lines, from many goroutines.
type lineWriter struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

// line writes one line, which ends with a newline after that if it did not before.
func (l *lineWriter) line(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(data)
}

// write is line for who holds the lock.
func (l *lineWriter) write(data []byte) error {
	if len(data) == 0 || data[len(data)-1] != '\n' {
		data = append(slices.Clip(data), '\n')
	}
	_, err := l.w.Write(data)
	return err
}
