package aggregator

import (
	"sync"
	"time"
)

// A sparing bounds lines of the log that anybody may cause: the first few in each stretch of
// logEvery are written, and the next one after that says how many were not. Metrics count all.
type sparing struct {
	mu    sync.Mutex // guards what follows
	began time.Time
	lines int
	left  int // out, since the last line
}

// line reports whether a line is written, and how many were left out before it.
func (s *sparing) line(now time.Time) (more int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.began) >= logEvery {
		s.began, s.lines = now, 0
	}
	if s.lines++; s.lines > eachOf {
		s.left++
		return 0, false
	}
	more, s.left = s.left, 0
	return more, true
}
