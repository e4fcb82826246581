package child

import (
	"io"
	"os"
	"strings"
)

const (
	// KeptTail is the size of a [Tail].
	KeptTail = 64 << 10
	// lastWords is how much of a failed process's output is in its error.
	lastWords = 1 << 10
)

// A Tail keeps the last KeptTail bytes written to it.
type Tail struct{ data []byte }

func (t *Tail) Write(b []byte) (int, error) {
	t.data = append(t.data, b...)
	if len(t.data) > 2*KeptTail {
		t.data = append(t.data[:0], t.Bytes()...)
	}
	return len(b), nil
}

// Bytes returns the last bytes.
func (t *Tail) Bytes() []byte {
	return t.data[max(0, len(t.data)-KeptTail):]
}

// LastWords returns the end of a failed process's output, from the start of a line, as an
// addition to a sentence.
func LastWords(output []byte) string {
	s := Readable(output)
	if len(s) > lastWords {
		s = s[len(s)-lastWords:]
		if _, line, more := strings.Cut(s, "\n"); more {
			s = line
		}
		s = "… " + strings.ToValidUTF8(s, "")
	}
	if s == "" {
		return ""
	}
	return ": " + s
}

// Readable returns output as text to show.
func Readable(b []byte) string {
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
}

// OnlyReader hides a file's other methods, so that io.Copy does the copying.
type OnlyReader struct{ io.Reader }

// CloseAll closes files and ignores errors.
func CloseAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
