package fabric_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long what must happen, but not on a clock of ours, may take.
const patience = time.Minute

// logbook remembers what was logged, one line for each record.
type logbook struct {
	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and replaced at each line
}

func newLogbook() *logbook { return &logbook{changed: make(chan struct{})} }

func (l *logbook) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *logbook) WithGroup(string) slog.Handler                    { return l }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// want waits for a line with all of the words: an agent has its answer before
// the log tells of it.
func (l *logbook) want(t *testing.T, words ...string) {
	t.Helper()
	for end := time.After(patience); ; {
		l.mu.Lock()
		changed, there := l.changed, slices.ContainsFunc(l.lines, func(line string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
		})
		l.mu.Unlock()
		if there {
			return
		}
		select {
		case <-changed:
		case <-end:
			t.Errorf("no line of the log has all of %q:\n%s", words, l)
			return
		}
	}
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
