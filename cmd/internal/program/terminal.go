package program

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/schema"
)

// terminal makes visible what would not show, in all that is written: see [schema.VisibleText].
type terminal struct {
	io.Writer
	// part is the begin of a character whose end was not written yet.
	part []byte
}

// Terminal returns a writer for text that people read, of which agents, hooks and workers
// may have written some: none of it reaches a terminal as a control sequence. It is not
// for data that programs read.
func Terminal(w io.Writer) io.Writer {
	if _, ok := w.(*terminal); ok {
		return w
	}
	return &terminal{Writer: w}
}

// Raw returns what a writer of [Terminal] writes to.
func Raw(w io.Writer) io.Writer {
	if t, ok := w.(*terminal); ok {
		return t.Writer
	}
	return w
}

// Write writes data, whose last character it may keep until the rest of it comes.
func (t *terminal) Write(data []byte) (int, error) {
	all := append(t.part, data...)
	t.part = nil
	for n := 1; n < utf8.UTFMax && n <= len(all); n++ {
		if tail := all[len(all)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				all, t.part = all[:len(all)-n], append([]byte(nil), tail...)
			}
			break
		}
	}
	if _, err := io.WriteString(t.Writer, schema.VisibleText(string(all))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// messages writes each message on a line of its own.
type messages struct{ io.Writer }

// Messages returns a writer to which each Write is one message, which ends in a line feed.
// Whatever stands in a message, it takes one line, so that no part of it can pass for
// another message.
func Messages(w io.Writer) io.Writer {
	if _, ok := w.(messages); ok {
		return w
	}
	return messages{Terminal(w)}
}

// Write writes one message.
func (m messages) Write(data []byte) (int, error) {
	text, ended := strings.CutSuffix(string(data), "\n")
	text = schema.Visible(text)
	if ended {
		text += "\n"
	}
	if _, err := io.WriteString(m.Writer, text); err != nil {
		return 0, err
	}
	return len(data), nil
}
