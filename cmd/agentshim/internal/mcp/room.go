package mcp

import (
	"errors"
	"io"
	"sync/atomic"
)

// A room is what may be kept in memory for calls under way, in bytes.
type room struct {
	most int64
	used atomic.Int64
}

// take takes a part of it; false: there is not so much left.
func (r *room) take(n int) bool {
	if r.used.Add(int64(n)) <= r.most {
		return true
	}
	r.give(n)
	return false
}

// give gives a part back.
func (r *room) give(n int) { r.used.Add(-int64(n)) }

var errNoRoom = errors.New("too many large messages are under way; wait for answers before you send more")

// A metered reader takes room for what it reads.
type metered struct {
	io.Reader
	room  *room
	taken int
}

// Read ends with errNoRoom where there is none.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if !m.room.take(n) {
		return 0, errNoRoom
	}
	m.taken += n
	return n, err
}

// done gives back what it took.
func (m *metered) done() {
	m.room.give(m.taken)
	m.taken = 0
}
