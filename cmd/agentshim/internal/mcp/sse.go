package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// An sseEvent is one event of a stream, as it came.
type sseEvent struct {
	raw   []byte // with the empty line at its end
	data  []byte // the lines of data, joined
	id    string
	retry time.Duration // 0: it says nothing of that
	// parted: a line of it is several to some readers. datum: so is a line of its
	// data, where that means nothing if the data is a message: none of it could be one.
	parted, datum bool
}

var errOtherLines = errors.New("an event of its stream has ambiguous line ends")

// ambiguous reports whether some readers read another event there.
func (e *sseEvent) ambiguous() bool {
	if e.parted || !e.datum {
		return e.parted
	}
	all, _, err := readAnswers(e.data)
	return err != nil || len(all) == 0
}

// parts reports whether some readers take something within a line for its end: a
// carriage return by the standard, the others by what their language takes for one.
func parts(text []byte) (some, standard bool) {
	return bytes.ContainsAny(text, "\v\f\x1c\x1d\x1e\u0085\u2028\u2029"), bytes.IndexByte(text, '\r') >= 0
}

// readEvent reads one event of a stream. The end of the stream may stand for the
// empty line.
func readEvent(r *bufio.Reader) (e sseEvent, err error) {
	some := false
	for {
		line, err := readLine(r)
		if err == nil && len(e.raw)+len(line) > MaxMessage+glimpse {
			err = &tooLong{}
		}
		if err != nil {
			if errors.Is(err, io.EOF) && len(e.raw) > 0 {
				return e, nil
			}
			return e, err
		}
		e.raw = append(e.raw, line...)
		text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(text) == 0 {
			return e, nil
		}
		name, value, _ := bytes.Cut(text, []byte(":"))
		odd, standard := parts(text)
		isData := string(name) == "data"
		e.parted, e.datum = e.parted || standard || odd && !isData, e.datum || odd && isData
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if some {
				e.data = append(e.data, '\n')
			}
			e.data, some = append(e.data, value...), true
		case "id":
			e.id = string(value)
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// with is the event with other data.
func (e *sseEvent) with(data []byte) []byte {
	var out []byte
	for line := range bytes.Lines(e.raw) {
		text := bytes.TrimRight(line, "\r\n")
		if name, _, _ := bytes.Cut(text, []byte(":")); len(text) > 0 && string(name) != "data" {
			out = append(append(out, text...), '\n')
		}
	}
	return append(out, dataLines(data)...)
}

// event is a message as an event.
func event(message []byte) []byte { return append([]byte("event: message\n"), dataLines(message)...) }

func dataLines(data []byte) (out []byte) {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		out = append(out, "data: "...)
		out = append(append(out, bytes.TrimSuffix(line, []byte("\r"))...), '\n')
	}
	return append(out, '\n')
}
