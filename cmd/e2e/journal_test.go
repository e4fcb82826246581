package e2e_test

import (
	"regexp"
	"sync"
)

// A journal is the output of a process so far. Waiters for a line are woken when it comes.
type journal struct {
	mu      sync.Mutex // guards what follows
	text    []byte
	changed chan struct{} // closed by the next line
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// Write takes what the process says.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text = append(j.text, p...)
	close(j.changed)
	j.changed = make(chan struct{})
	return len(p), nil
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.text)
}

// mark returns the current end of the output.
func (j *journal) mark() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.text)
}

// find looks for a match after mark. Without one it returns what is closed
// when there is more to look at.
func (j *journal) find(mark int, re *regexp.Regexp) ([]string, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var match []string
	for _, m := range re.FindSubmatch(j.text[mark:]) {
		match = append(match, string(m))
	}
	return match, j.changed
}
