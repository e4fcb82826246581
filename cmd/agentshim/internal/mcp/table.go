package mcp

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxCalls bounds the calls under way of one connection.
	maxCalls = 10_000
	// maxBytes bounds what is kept of them, of all connections of a proxy.
	maxBytes = 256 << 20
	// maxTasks bounds the tasks whose results are still to come.
	maxTasks = 1000
)

// An entry is one call in the table of a connection.
type entry struct {
	*call
	// key is its id's, and place that under which the table has it.
	key, place string
	// asking ends with the asking about it, and cancel ends that.
	asking context.Context
	cancel context.CancelFunc
	// sent: the server has it. over: the client has cancelled it. left: the request
	// that it came with has ended.
	sent, over, left bool
	// size is the room that it takes.
	size int
}

// A table is the calls under way of one connection. Where an id is used again
// while a call has it, the older call is meant first.
type table struct {
	mu    sync.Mutex // guards what follows
	calls map[string][]*entry
	tasks map[string]*call
	order []string // of tasks, oldest first
	count int
	// closed: its session is forgotten, and nothing is kept any more.
	closed bool

	room *room
}

func newTable(r *room) *table {
	return &table{calls: map[string][]*entry{}, tasks: map[string]*call{}, room: r}
}

// add takes in a call of a connection that lives as long as life, and that size
// bytes are kept for; nil: there are too many.
func (t *table) add(life context.Context, c *call, size int) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count >= maxCalls || !t.room.take(size) {
		t.clean()
		if t.count >= maxCalls || !t.room.take(size) {
			return nil
		}
	}
	e := &entry{call: c, key: c.key(), place: place(c.id), size: size}
	e.asking, e.cancel = context.WithCancel(life)
	t.calls[e.place] = append(t.calls[e.place], e)
	t.count++
	return e
}

// clean forgets calls that were cancelled, and that no server has to answer.
func (t *table) clean() {
	for _, all := range t.calls {
		for _, e := range slices.Clone(all) {
			if e.over {
				t.drop(e)
			}
		}
	}
}

// remove forgets a call.
func (t *table) remove(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(e)
}

func (t *table) drop(e *entry) {
	all := t.calls[e.place]
	i := slices.Index(all, e)
	if i < 0 {
		return
	}
	t.count--
	t.room.give(e.size)
	if len(all) == 1 {
		delete(t.calls, e.place)
		return
	}
	t.calls[e.place] = slices.Delete(slices.Clone(all), i, i+1)
}

// leave keeps a call whose request has ended, for as long as the table is kept.
func (t *table) leave(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.left = true; t.closed {
		t.drop(e)
	}
}

// close forgets all calls that no request is waiting for any more.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, all := range t.calls {
		for _, e := range slices.Clone(all) {
			if e.left {
				t.drop(e)
			}
		}
	}
}

// send notes that the server gets a call now; false: it was cancelled before.
// The server gets no second answer to a notification, so it is forgotten.
func (t *table) send(e *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.over {
		t.drop(e)
		return false
	}
	e.sent = true
	if e.id == nil {
		t.drop(e)
	}
	return true
}

// cancelled notes that the client does not want a call any more. It reports
// whether the server has to hear of that.
func (t *table) cancelled(id jsontext.Value) (tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := idKey(id)
	for _, e := range t.calls[place(id)] {
		if e.over || e.key != key {
			continue
		}
		e.over = true
		if e.sent {
			return true
		}
		e.cancel()
		return false
	}
	return true
}

// answered takes out the call that a server's response is about, or that some
// client takes it to be about; nil: it is about something else.
func (t *table) answered(id jsontext.Value) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := idKey(id)
	var found *entry
	for _, e := range t.calls[place(id)] {
		if e.sent && (found == nil || found.key != key && e.key == key) {
			found = e
		}
	}
	if found != nil {
		t.drop(found)
	}
	return found
}

// has reports whether a call is still under way.
func (t *table) has(e *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.calls[e.place], e)
}

// isOver reports whether the client has cancelled a call.
func (t *table) isOver(e *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.over
}

// stop ends all asking.
func (t *table) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.calls {
		for _, e := range all {
			if !e.sent {
				e.cancel()
			}
		}
	}
}

// task notes that a call goes on as a task, whose result is asked for later.
func (t *table) task(c *call, m *message) {
	result := m.inner("result")
	task := result.inner("task")
	id := task.text("taskId")
	if id == "" || finished(&result) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks[id] == nil {
		t.order = append(t.order, id)
	}
	t.tasks[id] = c
	if len(t.order) > maxTasks {
		delete(t.tasks, t.order[0])
		t.order = t.order[1:]
	}
}

// resumed notes that m asks for the result of a task that a call became.
func (t *table) resumed(m *message) {
	params := m.inner("params")
	t.mu.Lock()
	c := t.tasks[params.text("taskId")]
	t.mu.Unlock()
	if c == nil {
		return
	}
	again := *c
	again.message = *m
	again.raw = m.raw
	if e := t.add(context.Background(), &again, len(again.raw)); e != nil {
		e.cancel() // nobody is asked about it
		t.send(e)
	}
}
