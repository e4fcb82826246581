package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"
)

// MaxMessage is the length limit of a message, in bytes.
const MaxMessage = 64 << 20

// excerpt is how many bytes of each end of a too long message the proxy keeps, and the size of buffers.
const excerpt = 64 << 10

// A tooLongError is a message over the limit. It has the first and the last bytes of it.
type tooLongError struct{ head, tail []byte }

func (*tooLongError) Error() string { return "the message is longer than the limit of 64 MiB" }

// readLine reads one line with its end, which the last line may lack.
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

// skipLine reads the rest of a line over the limit, and returns a tooLongError.
func skipLine(r *bufio.Reader, line []byte, err error) error {
	t := &tooLongError{head: bytes.Clone(line[:min(excerpt, len(line))]), tail: bytes.Clone(line[max(0, len(line)-excerpt):])}
	for errors.Is(err, bufio.ErrBufferFull) {
		var part []byte
		part, err = r.ReadSlice('\n')
		t.tail = append(t.tail, part...)
		t.tail = bytes.Clone(t.tail[max(0, len(t.tail)-excerpt):])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return t
}

// idLast matches an id at the end of a message.
const idLast = `"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?}\s*$`

// id returns the id of the message if it is near one of its ends, else nil.
func (t *tooLongError) id() jsontext.Value {
	dec := newDecoder(t.head)
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

// A lineWriter writes whole lines. It is safe for concurrent use.
type lineWriter struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

// write writes one line, and adds the newline if the line has none.
func (l *lineWriter) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeLocked(line)
}

// writeLocked is write for a caller that holds the lock.
func (l *lineWriter) writeLocked(line []byte) error {
	if len(line) == 0 || line[len(line)-1] != '\n' {
		line = append(slices.Clip(line), '\n')
	}
	_, err := l.w.Write(line)
	return err
}

// An sseEvent is one event of a stream of server-sent events.
type sseEvent struct {
	raw   []byte // with the empty line at its end
	data  []byte // the data lines, joined by newlines
	id    string
	retry time.Duration // 0 if the event has no retry field
	// breaks: some readers see several lines in one. dataBreaks: in a data line, which may hold a message.
	breaks, dataBreaks bool
}

var errAmbiguousEvent = errors.New("an event of its stream has ambiguous line ends")

// isAmbiguous reports whether some readers see other events in the event.
func (e *sseEvent) isAmbiguous() bool {
	if e.breaks || !e.dataBreaks {
		return e.breaks
	}
	f, err := readServerFrame(e.data)
	return err != nil || len(f.messages) == 0
}

// readEvent reads one event. The last one may lack the empty line.
func readEvent(r *bufio.Reader) (e sseEvent, err error) {
	hasData := false
	for {
		line, err := readLine(r)
		if err == nil && len(e.raw)+len(line) > MaxMessage+excerpt {
			err = &tooLongError{}
		}
		if err != nil {
			if errors.Is(err, io.EOF) && len(e.raw) > 0 {
				return e, nil
			}
			return e, err
		}
		e.raw = append(e.raw, line...)
		field := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(field) == 0 {
			return e, nil
		}
		name, value, _ := bytes.Cut(field, []byte(":"))
		isData := string(name) == "data"
		// A carriage return ends a line by the standard. Some languages end lines at the others.
		breaks := bytes.ContainsAny(field, "\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		e.breaks = e.breaks || bytes.IndexByte(field, '\r') >= 0 || breaks && !isData
		e.dataBreaks = e.dataBreaks || breaks && isData
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if hasData {
				e.data = append(e.data, '\n')
			}
			e.data, hasData = append(e.data, value...), true
		case "id":
			e.id = string(value)
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// with returns the event with other data.
func (e *sseEvent) with(data []byte) []byte {
	var out []byte
	for line := range bytes.Lines(e.raw) {
		field := bytes.TrimRight(line, "\r\n")
		if name, _, _ := bytes.Cut(field, []byte(":")); len(field) > 0 && string(name) != "data" {
			out = append(append(out, field...), '\n')
		}
	}
	return append(out, dataLines(data)...)
}

// newEvent returns a message as an event.
func newEvent(message []byte) []byte {
	return append([]byte("event: message\n"), dataLines(message)...)
}

func dataLines(data []byte) (out []byte) {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		out = append(out, "data: "...)
		out = append(append(out, bytes.TrimSuffix(line, []byte("\r"))...), '\n')
	}
	return append(out, '\n')
}

var errMemory = errors.New("too many large messages are under way; wait for answers before you send more")

// A limitedReader reserves memory for what it reads, until release.
type limitedReader struct {
	io.Reader
	limit    *semaphore.Weighted
	reserved int64
}

// Read returns errMemory over the limit.
func (r *limitedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if !r.limit.TryAcquire(int64(n)) {
		return 0, errMemory
	}
	r.reserved += int64(n)
	return n, err
}

func (r *limitedReader) release() {
	r.limit.Release(r.reserved)
	r.reserved = 0
}
