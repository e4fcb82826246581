package mcp

import (
	"container/list"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxSessions bounds the sessions that are remembered, and maxShown the results
	// of each that may be asked for again.
	maxSessions = 4096
	maxShown    = 64
	// maxRoom bounds what a relay keeps altogether, in bytes.
	maxRoom = 512 << 20
)

// A session is what is known of one session of a server that speaks over HTTP.
type session struct {
	id    string
	peer  *peer
	calls *table
	room  *room

	mu    sync.Mutex // guards what follows
	shown map[string]shown
	order []string // of shown, oldest first
	ended bool
}

// shown is an answer that a client got, and the room that it takes.
type shown struct {
	answer []byte
	size   int
}

func newSession(id string, r *room) *session {
	s := &session{id: id, peer: newPeer(), calls: newTable(r), room: r, shown: map[string]shown{}}
	if id != "" {
		s.peer.session = id
	}
	return s
}

// show remembers what the client got as the answer to a call, so that it gets the
// same when it asks for what it missed. Where there is no room for it, it gets
// that it is gone, and not what hooks took out.
func (s *session) show(id jsontext.Value, answer []byte) {
	if s.id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	at := place(id)
	if _, again := s.shown[at]; again {
		s.room.give(s.shown[at].size)
	} else {
		s.order = append(s.order, at)
	}
	if s.room.take(len(answer)) {
		s.shown[at] = shown{answer, len(answer)}
	} else {
		s.shown[at] = shown{answer: withheld(id, nil, "agentshim no longer has this answer; make the call again")}
	}
	if len(s.order) > maxShown {
		s.room.give(s.shown[s.order[0]].size)
		delete(s.shown, s.order[0])
		s.order = s.order[1:]
	}
}

// again is what was shown as the answer to a call; nil: nothing was.
func (s *session) again(id jsontext.Value) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[place(id)].answer
}

// end forgets what is kept, but for calls whose requests are under way.
func (s *session) end() {
	s.calls.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for at, one := range s.shown {
		s.room.give(one.size)
		delete(s.shown, at)
	}
	s.order = nil
}

// sessions are those that were used last.
type sessions struct {
	room *room

	mu   sync.Mutex // guards what follows
	byID map[string]*list.Element
	used list.List
}

// get is a session; one of which nothing is known is a new one. Clients without
// sessions share the one without an id.
func (all *sessions) get(id string) *session {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byID == nil {
		all.byID = map[string]*list.Element{}
	}
	if e := all.byID[id]; e != nil {
		all.used.MoveToFront(e)
		return e.Value.(*session)
	}
	s := newSession(id, all.room)
	all.byID[id] = all.used.PushFront(s)
	if all.used.Len() > maxSessions {
		all.drop(all.used.Back())
	}
	return s
}

// end forgets a session.
func (all *sessions) end(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if e := all.byID[id]; e != nil {
		all.drop(e)
	}
}

// drop takes out one. The caller holds the lock.
func (all *sessions) drop(e *list.Element) {
	s := all.used.Remove(e).(*session)
	delete(all.byID, s.id)
	s.end()
}
