package runnertest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Lifeline is a named pipe with which a handler shows that it runs, and a test detects
// that all its processes have ended, because none has it open for writing.
type Lifeline struct {
	// Path is the pipe. A handler opens it for writing, writes a byte, and keeps it open.
	Path string

	held, gone chan struct{}
}

// NewLifeline makes a Lifeline for one handler.
func NewLifeline(t *testing.T) *Lifeline {
	t.Helper()
	l := &Lifeline{Path: filepath.Join(t.TempDir(), "lifeline"), held: make(chan struct{}), gone: make(chan struct{})}
	if err := syscall.Mkfifo(l.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	go l.watch()
	t.Cleanup(l.release)
	return l
}

// Held is closed when a handler has written to the lifeline.
func (l *Lifeline) Held() <-chan struct{} { return l.held }

// Gone is closed when no process holds the lifeline any more.
func (l *Lifeline) Gone() <-chan struct{} { return l.gone }

// watch opens the pipe, which waits for a writer, and reads until the last writer has
// ended.
func (l *Lifeline) watch() {
	defer close(l.gone)
	f, err := os.Open(l.Path)
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 1)); err == nil {
		close(l.held)
	}
	_, _ = io.Copy(io.Discard, f)
}

// release ends watch if no handler came. A handler that came and stays has already failed
// its test.
func (l *Lifeline) release() {
	for {
		select {
		case <-l.gone:
			return
		case <-l.held:
			return
		default:
		}
		f, err := os.OpenFile(l.Path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			_ = f.Close()
		} else if !errors.Is(err, syscall.ENXIO) {
			return
		}
		runtime.Gosched()
	}
}

func (l *Lifeline) awaitHeld(t *testing.T) {
	t.Helper()
	Await(t, l.held, "the handler to start")
}

func (l *Lifeline) awaitGone(t *testing.T) {
	t.Helper()
	Await(t, l.gone, "the handler and all it has started to be gone")
}

// Await waits until done is closed. what names the event in the error.
func Await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(Patience):
		t.Fatalf("waited %v for %s", Patience, what)
	}
}

// resources are what a runner must give back.
type resources struct{ goroutines, files, children int }

func holdings() resources {
	return resources{goroutines: runtime.NumGoroutine(), files: entries("/proc/self/fd"), children: children()}
}

// awaitReturn waits until there are no more resources than before. Ended processes may
// still be listed for a moment.
func (h resources) awaitReturn(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(Patience); ; runtime.Gosched() {
		now := holdings()
		if now.goroutines <= h.goroutines && now.files <= h.files && now.children <= h.children {
			return
		}
		if time.Now().After(end) {
			stacks := make([]byte, 64<<10)
			t.Fatalf("before: %+v, after: %+v\n%s", h, now, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// entries counts the entries of a folder of /proc; 0 without /proc.
func entries(dir string) int {
	list, _ := os.ReadDir(dir)
	return len(list)
}

// children counts the child processes, including zombies; 0 without /proc.
func children() (n int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range tasks {
		b, _ := os.ReadFile(file)
		n += len(strings.Fields(string(b)))
	}
	return n
}
