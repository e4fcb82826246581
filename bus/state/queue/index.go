package queue

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// Short texts are kept in memory, up to heldBytes in all. Others are read from the leader at their delivery.
const (
	heldContent = 4 << 10
	heldBytes   = 128 << 20
	// mostPatterns bounds the compiled matchers.
	mostPatterns = 1000
)

// A scopeKind tells for which agents an item is.
type scopeKind uint8

const (
	forAgent scopeKind = iota
	forSession
	forAll
)

func kindOf(it *schema.Item) scopeKind {
	switch {
	case it.Scope.Session != "":
		return forSession
	case it.Scope.Agent == "":
		return forAll
	}
	return forAgent
}

// An entry is an item in the mirror. It never changes.
type entry struct {
	// item is the item, without its texts if they are not held.
	item schema.Item
	// match matches tools; nil: no matcher.
	match *match.Matcher
	// size is the length of its texts, and held whether they are in memory.
	size int
	held bool
	kind scopeKind
}

func (e *entry) seq() uint64 { return e.item.Sequence }

// scope returns the first token of the item's key.
func (e *entry) scope() string { return e.item.Key[:strings.IndexByte(e.item.Key, '.')] }

// fits reports whether the item may be delivered after a call of the tool, which is empty at events without a tool;
// any: at each event.
func (e *entry) fits(tool string, any bool) bool { return any || fits(e.match, tool) }

// fits reports whether a matcher, nil for none, allows a delivery after a call of the tool.
func fits(m *match.Matcher, tool string) bool { return m == nil || tool != "" && m.Match(tool) }

// over reports whether the item has expired at that server time.
func (e *entry) over(now time.Time) bool {
	return e.item.Expiry > 0 && now.Sub(e.item.Accepted) >= time.Duration(e.item.Expiry)
}

// deadline returns when the item expires. Only items with an expiry have one.
func (e *entry) deadline() time.Time { return e.item.Accepted.Add(time.Duration(e.item.Expiry)) }

// An itemList is the list of waiting items of one agent, one session, or all agents, in order.
type itemList struct {
	items []*entry
	// matches counts the items by matcher. There are few matchers, so a tool that none of them matches
	// is noticed without a look at each item.
	matches map[*match.Matcher]int
	// coming counts items that are being written.
	coming int
}

// add inserts an item.
func (l *itemList) add(e *entry) {
	i, _ := l.find(e.seq())
	l.items = slices.Insert(l.items, i, e)
	l.matches[e.match]++
}

// remove removes an item, if it is there.
func (l *itemList) remove(e *entry) {
	i, found := l.find(e.seq())
	if !found {
		return
	}
	l.items = slices.Delete(l.items, i, i+1)
	if l.matches[e.match]--; l.matches[e.match] == 0 {
		delete(l.matches, e.match)
	}
}

// fits reports whether an item of the list may be delivered after a call of the tool.
func (l *itemList) fits(tool string) bool {
	for m := range l.matches {
		if fits(m, tool) {
			return true
		}
	}
	return false
}

// find returns the index of the item with the sequence, or where to insert it.
func (l *itemList) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(l.items, seq, func(e *entry, seq uint64) int { return cmp.Compare(e.seq(), seq) })
}

// An index is the mirror of the items.
type index struct {
	mu sync.RWMutex // guards the following fields
	// position is the revision up to which the index is complete, newest the newest item's sequence.
	position, newest uint64
	lists            map[string]*itemList
	bySeq            map[uint64]*entry
	byKey            map[string]*entry
	// ended are the revisions of ends that the mirror has not applied yet, by key, and leaving the
	// sequences of their items.
	ended   map[string]uint64
	leaving map[uint64]string
	// doubts are the sequences of items that may have ended unnoticed.
	doubts  map[uint64]bool
	sources map[string]int
	authors map[string]load
	held    int
	coming  int
	soon    deadlines
	// patterns are the compiled matchers.
	patterns map[string]*match.Matcher
}

func newIndex() *index {
	return &index{
		lists: make(map[string]*itemList), bySeq: make(map[uint64]*entry), byKey: make(map[string]*entry),
		ended: make(map[string]uint64), leaving: make(map[uint64]string), doubts: make(map[uint64]bool),
		sources: make(map[string]int), authors: make(map[string]load), patterns: make(map[string]*match.Matcher),
	}
}

// put adds an item, unless it is there or has ended.
func (x *index) put(it *schema.Item) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	// An item that the mirror has applied before may have ended since.
	if it.Sequence <= x.position || x.ended[it.Key] > it.Sequence || x.bySeq[it.Sequence] != nil {
		return nil
	}
	if old := x.byKey[it.Key]; old != nil {
		if old.seq() > it.Sequence {
			return nil
		}
		x.remove(old) // the key was overwritten
	}
	e := x.entry(it)
	x.list(e.scope()).add(e)
	x.bySeq[e.seq()], x.byKey[it.Key] = e, e
	x.sources[it.Source]++
	x.charge(it.Author, 1, e.weight())
	x.newest = max(x.newest, e.seq())
	if it.Expiry > 0 {
		x.soon.push(e.deadline(), e.seq())
	}
	return e
}

// entry makes an entry. The caller holds the lock.
func (x *index) entry(it *schema.Item) *entry {
	e := &entry{item: *it, size: textSize(it), match: x.matcher(it.Matcher), kind: kindOf(it)}
	if e.held = e.size <= heldContent && x.held+e.size <= heldBytes; e.held {
		x.held += e.size
	} else {
		e.item = withoutTexts(it)
	}
	return e
}

// matcher compiles a pattern, nil for an empty one. An invalid pattern matches nothing.
func (x *index) matcher(pattern string) *match.Matcher {
	if pattern == "" {
		return nil
	}
	if m, ok := x.patterns[pattern]; ok {
		return m
	}
	m, err := match.Compile(pattern)
	if err != nil {
		m = new(match.Matcher)
	}
	if len(x.patterns) >= mostPatterns {
		clear(x.patterns)
	}
	x.patterns[pattern] = m
	return m
}

// textSize returns the length of an item's texts.
func textSize(it *schema.Item) int {
	n := len(it.Content)
	if s := it.Subagent; s != nil {
		n += len(s.Answer) + len(s.Error)
	}
	if b := it.Background; b != nil {
		n += len(b.Result) + len(b.Error)
	}
	return n
}

// withoutTexts returns the item without the texts that textSize counts.
func withoutTexts(it *schema.Item) schema.Item {
	n := *it
	n.Content = ""
	if it.Subagent != nil {
		s := *it.Subagent
		s.Answer, s.Error = "", ""
		n.Subagent = &s
	}
	if it.Background != nil {
		b := *it.Background
		b.Result, b.Error = "", ""
		n.Background = &b
	}
	return n
}

func (x *index) list(scope string) *itemList {
	l := x.lists[scope]
	if l == nil {
		l = &itemList{matches: make(map[*match.Matcher]int)}
		x.lists[scope] = l
	}
	return l
}

// end removes an item whose key ended at the revision. ahead: the mirror has not applied that yet.
func (x *index) end(key string, revision uint64, ahead bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.byKey[key]
	if e != nil && e.seq() < revision {
		x.remove(e)
	}
	if ahead && revision > x.position {
		x.ended[key] = revision
		if e != nil {
			x.leaving[e.seq()] = key
		}
	}
}

// remove removes an item. The caller holds the lock.
func (x *index) remove(e *entry) {
	scope := e.scope()
	l := x.lists[scope]
	l.remove(e)
	x.dropEmpty(scope, l)
	delete(x.bySeq, e.seq())
	delete(x.doubts, e.seq())
	delete(x.byKey, e.item.Key)
	if x.sources[e.item.Source]--; x.sources[e.item.Source] == 0 {
		delete(x.sources, e.item.Source)
	}
	x.charge(e.item.Author, -1, -e.weight())
	if e.held {
		x.held -= e.size
	}
}

// dropEmpty deletes an empty list.
func (x *index) dropEmpty(scope string, l *itemList) {
	if len(l.items) == 0 && l.coming == 0 {
		delete(x.lists, scope)
	}
}

// advance records that the mirror has applied everything up to the revision.
func (x *index) advance(revision uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.position = revision
	if len(x.ended) == 0 {
		return
	}
	for key, at := range x.ended {
		if at <= revision {
			delete(x.ended, key)
		}
	}
	for seq, key := range x.leaving {
		if _, ahead := x.ended[key]; !ahead {
			delete(x.leaving, seq)
		}
	}
}

// size returns the number of known items.
func (x *index) size() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.bySeq)
}

// get returns the item with the key, or nil.
func (x *index) get(key string) *entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byKey[key]
}

// last returns the sequence of the newest known item.
func (x *index) last() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return max(x.position, x.newest)
}
