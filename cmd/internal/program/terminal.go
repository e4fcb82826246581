package program

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/schema"
)

// terminal escapes control characters in what it writes: see [schema.VisibleText].
type terminal struct {
	io.Writer
	part []byte // the beginning of an incomplete character
}

// Terminal returns a writer that escapes control sequences, for text that people read and that may
// contain text of agents, hooks and workers. It is not for data that programs read.
func Terminal(w io.Writer) io.Writer {
	if _, ok := w.(*terminal); ok {
		return w
	}
	return &terminal{Writer: w}
}

// Raw returns the underlying writer of a [Terminal].
func Raw(w io.Writer) io.Writer {
	if t, ok := w.(*terminal); ok {
		return t.Writer
	}
	return w
}

// Write writes data. It holds back an incomplete last character until its rest is written.
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

// Messages returns a writer to which each Write is one message that ends in a line feed. It escapes
// other line feeds, so that no part of a message looks like another message.
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
