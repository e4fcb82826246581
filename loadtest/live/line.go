package live

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// tellEvery is how often a line is told where each stays to be read.
const tellEvery = 5 * time.Second

// line is where progress is told. On a terminal it takes the place of the line
// before it; elsewhere it is written below, now and then.
type line struct {
	to io.Writer
	// columns is how wide the terminal behind it is; 0: it is none.
	columns func(io.Writer) int

	mu   sync.Mutex // guards what follows
	told time.Time  // when [line.tell] last wrote
	open bool       // a line stands on the terminal
}

func newLine(to io.Writer) *line {
	if to == nil {
		to = io.Discard
	}
	return &line{to: to, columns: columns}
}

// write tells whole lines. Nobody is helped by an error of where progress goes.
func (l *line) write(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	width := l.columns(l.to)
	if width == 0 {
		_, _ = l.to.Write(text)
		return
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	l.replace(lines[len(lines)-1], width)
}

// tell tells one line of many that come in short intervals.
func (l *line) tell(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, width := time.Now(), l.columns(l.to)
	if width > 0 {
		l.replace(text, width)
		return
	}
	if now.Sub(l.told) >= tellEvery {
		l.told = now
		fmt.Fprintln(l.to, text)
	}
}

// replace writes text over the line that stands on the terminal. What does not
// fit is cut: a line that wraps cannot be written over.
func (l *line) replace(text string, width int) {
	if utf8.RuneCountInString(text) >= width {
		text = string([]rune(text)[:max(width-2, 0)]) + "…"
	}
	fmt.Fprintf(l.to, "\r%s\x1b[K", text)
	l.open = true
}

// end takes the line off the terminal.
func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		fmt.Fprint(l.to, "\r\x1b[K")
		l.open = false
	}
}

// bar draws how much is over.
func bar(share float64) string {
	const long = 20
	share = min(max(share, 0), 1)
	full := int(share * long)
	return fmt.Sprintf("[%s%s] %3.0f %%", strings.Repeat("=", full), strings.Repeat(" ", long-full), 100*share)
}
