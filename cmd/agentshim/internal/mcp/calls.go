package mcp

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"
)

const (
	maxCalls = 10_000    // bounds the calls under way of one connection
	maxBytes = 256 << 20 // bounds the memory for the calls of a [Pipe]
	maxTasks = 1000      // bounds the tasks of one connection whose results can be judged
)

type pendingCall struct {
	*call
	exact, loose string // the keys of its id
	// ctx ends when the verdict before the call is no longer needed. cancel ends it.
	ctx    context.Context
	cancel context.CancelFunc
	// sent: the server has it. cancelled: by the client. detached: its HTTP request has ended.
	sent, cancelled, detached bool
	size                      int // the memory that it counts for
}

// A callTable has the calls under way of one connection. A message about an id is for its oldest call.
type callTable struct {
	limit *semaphore.Weighted

	mu        sync.Mutex                // guards the fields below
	calls     map[string][]*pendingCall // by loose key
	count     int                       // of calls
	tasks     map[string]*call          // by id
	taskOrder []string                  // oldest first
	closed    bool                      // its session has ended
}

func newCallTable(l *semaphore.Weighted) *callTable {
	return &callTable{limit: l, calls: map[string][]*pendingCall{}, tasks: map[string]*call{}}
}

// add adds a call that counts for size bytes, with a context below parent. It returns nil over the limits.
func (t *callTable) add(parent context.Context, c *call, size int) *pendingCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count >= maxCalls || !t.limit.TryAcquire(int64(size)) {
		t.dropAll(func(p *pendingCall) bool { return p.cancelled }) // a server need not answer these
		if t.count >= maxCalls || !t.limit.TryAcquire(int64(size)) {
			return nil
		}
	}
	p := &pendingCall{call: c, exact: exactKey(c.id), loose: looseKey(c.id), size: size}
	p.ctx, p.cancel = context.WithCancel(parent)
	t.calls[p.loose] = append(t.calls[p.loose], p)
	t.count++
	return p
}

func (t *callTable) dropAll(which func(*pendingCall) bool) {
	for _, all := range t.calls {
		for _, p := range slices.Clone(all) {
			if which(p) {
				t.drop(p)
			}
		}
	}
}

// remove removes a call, and reports whether it was there.
func (t *callTable) remove(p *pendingCall) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drop(p)
}

// drop is remove for a caller that holds the lock.
func (t *callTable) drop(p *pendingCall) bool {
	all := t.calls[p.loose]
	i := slices.Index(all, p)
	if i < 0 {
		return false
	}
	t.count--
	t.limit.Release(int64(p.size))
	if len(all) == 1 {
		delete(t.calls, p.loose)
		return true
	}
	t.calls[p.loose] = slices.Delete(slices.Clone(all), i, i+1)
	return true
}

// detach keeps a call whose HTTP request has ended for as long as the session.
func (t *callTable) detach(p *pendingCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.detached = true; t.closed {
		t.drop(p)
	}
}

// close ends the session: it drops the detached calls, now and later.
func (t *callTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.dropAll(func(p *pendingCall) bool { return p.detached })
}

// send reports whether the server may get a call now: it was not cancelled. A notification gets no answer.
func (t *callTable) send(p *pendingCall) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.cancelled {
		t.drop(p)
		return false
	}
	p.sent = true
	if p.id == nil {
		t.drop(p)
	}
	return true
}

// cancel cancels the call with an id, and reports whether the server must know of it.
func (t *callTable) cancel(id jsontext.Value) (forward bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := exactKey(id)
	for _, p := range t.calls[looseKey(id)] {
		if p.cancelled || p.exact != key {
			continue
		}
		p.cancelled = true
		if !p.sent {
			p.cancel()
		}
		return p.sent
	}
	return true
}

// take removes and returns the call that a response with an id could answer for some client.
func (t *callTable) take(id jsontext.Value) *pendingCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := exactKey(id)
	var found *pendingCall
	for _, p := range t.calls[looseKey(id)] {
		if p.sent && (found == nil || found.exact != key && p.exact == key) {
			found = p
		}
	}
	if found != nil {
		t.drop(found)
	}
	return found
}

func (t *callTable) isCancelled(p *pendingCall) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return p.cancelled
}

// stop ends all waiting for verdicts before calls.
func (t *callTable) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.calls {
		for _, p := range all {
			if !p.sent {
				p.cancel()
			}
		}
	}
}

// addTask remembers a call that became a task, whose result the client requests later.
func (t *callTable) addTask(c *call, m *message) {
	result := m.child("result")
	task := result.child("task")
	id := task.text("taskId")
	if id == "" || isFinal(&result) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks[id] == nil {
		t.taskOrder = append(t.taskOrder, id)
	}
	t.tasks[id] = c
	if len(t.taskOrder) > maxTasks {
		delete(t.tasks, t.taskOrder[0])
		t.taskOrder = t.taskOrder[1:]
	}
}

// resumeTask adds the request for a task's result as a call that was judged before it.
func (t *callTable) resumeTask(m *message) {
	params := m.child("params")
	t.mu.Lock()
	c := t.tasks[params.text("taskId")]
	t.mu.Unlock()
	if c == nil {
		return
	}
	again := *c
	again.message = *m
	if p := t.add(context.Background(), &again, len(again.raw)); p != nil {
		p.cancel()
		t.send(p)
	}
}
