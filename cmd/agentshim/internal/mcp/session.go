package mcp

import (
	"container/list"
	"context"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"
)

const (
	// maxSessions bounds the sessions of a [Relay], and maxReplays the repeatable answers of each.
	maxSessions = 4096
	maxReplays  = 64
)

// A session is one connection of a client to a server, over stdio or HTTP.
type session struct {
	id        string // the Mcp-Session-Id; empty over stdio, and for HTTP clients without a session
	guard     *Guard
	endpoints *endpoints
	calls     *callTable
	limit     *semaphore.Weighted

	mu          sync.Mutex // guards the fields below
	replays     map[string]replay
	replayOrder []string // oldest first
	ended       bool
}

// A replay is an answer that the client got, and the memory that it counts for.
type replay struct {
	answer []byte
	size   int64
}

func newSession(id string, g *Guard, l *semaphore.Weighted) *session {
	s := &session{id: id, guard: g, endpoints: newEndpoints(), calls: newCallTable(l), limit: l, replays: map[string]replay{}}
	if id != "" {
		s.endpoints.session = id
	}
	return s
}

// readClient learns from a client's frame and starts its calls. rest are the messages for the server.
func (s *session) readClient(f *frame, e *elicitation) (rest []message, calls []*call) {
	for _, m := range f.messages {
		s.endpoints.readClient(&m)
		switch {
		case m.method == "" && e.takeAnswer(&m):
			continue
		case m.method == methodTaskResult:
			s.calls.resumeTask(&m)
		case m.method == methodCall:
			calls = append(calls, s.guard.newCall(m, s.endpoints))
		}
		rest = append(rest, m)
	}
	return rest, calls
}

// cancel cancels calls. It returns the messages without cancellations of calls that the server did not get.
func (s *session) cancel(all []message) []message {
	kept := all[:0:0]
	for _, m := range all {
		if m.method == methodCancelled {
			params := m.child("params")
			if !s.calls.cancel(params.get("requestId")) {
				continue
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// addCalls adds the calls of a frame, which takes frameSize bytes while they are pending.
func (s *session) addCalls(ctx context.Context, calls []*call, frameSize int) []*pendingCall {
	pending := make([]*pendingCall, len(calls))
	for i, c := range calls {
		size := len(c.raw)
		if i == 0 {
			size = max(size, frameSize)
		}
		pending[i] = s.calls.add(ctx, c, size)
	}
	return pending
}

// rule returns the rulings on calls that came together.
func (s *session) rule(calls []*call, pending []*pendingCall, e *elicitation, send func([]byte) error) []ruling {
	rulings := make([]ruling, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { rulings[i] = s.guard.rule(c, pending[i], e, send) })
	}
	all.Wait()
	return rulings
}

// apply applies rulings to the calls among messages. forward is for the server, with the calls sent, and
// answers are for the client.
func (s *session) apply(all []message, pending []*pendingCall, rulings []ruling) (forward, answers []jsontext.Value, sent []*pendingCall) {
	n := 0
	for _, m := range all {
		if m.method != methodCall {
			forward = append(forward, m.raw)
			continue
		}
		p, r := pending[n], rulings[n]
		n++
		switch {
		case p == nil:
		case r.forward != nil && s.calls.send(p):
			forward, sent = append(forward, r.forward), append(sent, p)
			continue
		case s.calls.isCancelled(p): // the client waits for no answer
			r.answer = nil
		}
		if p != nil {
			s.calls.remove(p)
		}
		if r.answer != nil {
			answers = append(answers, r.answer)
		}
	}
	return forward, answers, sent
}

// readServer learns from a server's frame. It returns the call that each message answers, if any, and
// whether there is one. take removes the call of a response.
func (s *session) readServer(f *frame, take func(id jsontext.Value) *pendingCall) (pending []*pendingCall, some bool) {
	pending = make([]*pendingCall, len(f.messages))
	for i := range f.messages {
		m := &f.messages[i]
		if !m.isResponse() {
			continue
		}
		s.endpoints.readServer(m)
		pending[i] = take(m.id)
		some = some || pending[i] != nil
	}
	return pending, some
}

// judge asks about the responses of a frame. Message i answers pending[i], unless nil. onDelivered must be
// called once, with whether the client got the parts.
func (s *session) judge(ctx context.Context, f *frame, pending []*pendingCall) (parts []jsontext.Value, onDelivered func(ok bool)) {
	parts = rawMessages(f.messages)
	var all []func(bool)
	for i, p := range pending {
		if p == nil {
			continue
		}
		m := &f.messages[i]
		s.calls.addTask(p.call, m)
		out, done := s.guard.after(ctx, p.call, m, s.calls.isCancelled(p))
		parts[i], all = out, append(all, done)
	}
	return parts, func(ok bool) {
		for _, done := range all {
			done(ok)
		}
	}
}

// addReplay keeps the answer for a client that asks again after a broken stream. Over the memory limit it
// keeps an error: a hook may have changed the server's answer.
func (s *session) addReplay(id jsontext.Value, answer []byte) {
	if s.id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	key := looseKey(id)
	if old, ok := s.replays[key]; ok {
		s.limit.Release(old.size)
	} else {
		s.replayOrder = append(s.replayOrder, key)
	}
	if s.limit.TryAcquire(int64(len(answer))) {
		s.replays[key] = replay{answer, int64(len(answer))}
	} else {
		s.replays[key] = replay{answer: droppedAnswer(id, nil, "agentshim no longer has this answer; make the call again")}
	}
	if len(s.replayOrder) > maxReplays {
		s.limit.Release(s.replays[s.replayOrder[0]].size)
		delete(s.replays, s.replayOrder[0])
		s.replayOrder = s.replayOrder[1:]
	}
}

// replay returns the answer that the client got to a call; nil if it got no answer.
func (s *session) replay(id jsontext.Value) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replays[looseKey(id)].answer
}

// end releases the memory, except that of calls whose requests are under way.
func (s *session) end() {
	s.calls.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, one := range s.replays {
		s.limit.Release(one.size)
	}
	clear(s.replays)
	s.replayOrder = nil
}

// The sessions are those of a [Relay] that clients used last.
type sessions struct {
	guard *Guard
	limit *semaphore.Weighted

	mu   sync.Mutex // guards the fields below
	byID map[string]*list.Element
	used list.List // last used first
}

// get returns the session with an id, and starts it if it is new. Clients without a session share one.
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
	s := newSession(id, all.guard, all.limit)
	all.byID[id] = all.used.PushFront(s)
	if all.used.Len() > maxSessions {
		all.drop(all.used.Back())
	}
	return s
}

// end ends a session that the client has deleted.
func (all *sessions) end(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if e := all.byID[id]; e != nil {
		all.drop(e)
	}
}

// drop ends a session. The caller holds the lock.
func (all *sessions) drop(e *list.Element) {
	s := all.used.Remove(e).(*session)
	delete(all.byID, s.id)
	s.end()
}
