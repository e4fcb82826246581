// Package logevery bounds how many lines of each kind a log has. What happens thousands of times
// in a second then has a few lines, and the next line tells how many were left out.
package logevery

import (
	"sync"
	"time"
)

// maxKinds bounds the kinds that a Limiter remembers.
const maxKinds = 4096

// A Rate is a number of lines in an interval. The zero Rate is no bound.
type Rate struct {
	Lines int
	// Every is the interval; 0: it ends with [Limiter.Reset].
	Every time.Duration
}

// A Limiter decides which lines are logged. Its methods are safe for concurrent use.
type Limiter struct {
	each, all Rate

	mu    sync.Mutex // guards the following fields
	total count
	kinds map[any]*count
	swept time.Time // when ended intervals were last removed
}

// count is the number of lines in the current interval.
type count struct {
	began       time.Time
	lines, left int // left: lines that were left out since the last line
}

// New returns a Limiter of the lines of each kind, and of all kinds together.
func New(each, all Rate) *Limiter {
	return &Limiter{each: each, all: all, kinds: make(map[any]*count)}
}

// Allow reports whether a line of a kind is logged now, and how many lines of this kind were
// left out before it.
func (l *Limiter) Allow(kind any, now time.Time) (more int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.kinds[kind]
	if c == nil {
		if c = l.add(kind, now); c == nil {
			return 0, false
		}
	}
	if !c.has(l.each, now) || !l.total.has(l.all, now) {
		c.left++
		return 0, false
	}
	more = c.left
	c.lines, c.left = c.lines+1, 0
	l.total.lines++
	return more, true
}

// Reset ends the interval of a kind, and reports whether it had a line.
func (l *Limiter) Reset(kind any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.kinds[kind]
	delete(l.kinds, kind)
	return c != nil && c.lines > 0
}

// add begins to count a kind. It returns nil if there are too many kinds. The caller holds the
// lock.
func (l *Limiter) add(kind any, now time.Time) *count {
	// At most one sweep per interval, so that a flood of new kinds does not sweep for each line.
	if len(l.kinds) >= maxKinds && l.each.Every > 0 && now.Sub(l.swept) >= l.each.Every {
		l.swept = now
		for k, c := range l.kinds {
			if now.Sub(c.began) >= l.each.Every {
				delete(l.kinds, k)
			}
		}
	}
	if len(l.kinds) >= maxKinds {
		return nil
	}
	c := new(count)
	l.kinds[kind] = c
	return c
}

// has reports whether another line is within a rate. It begins a new interval if one is due.
func (c *count) has(r Rate, now time.Time) bool {
	if c.began.IsZero() || r.Every > 0 && now.Sub(c.began) >= r.Every {
		c.began, c.lines = now, 0
	}
	return r.Lines == 0 || c.lines < r.Lines
}
