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

// What of the texts is kept in memory: short ones, up to so much in all. The
// others are read from the leader when they go out.
const (
	heldContent = 4 << 10
	heldBytes   = 128 << 20
	// mostPatterns bounds the matchers that are kept compiled.
	mostPatterns = 1000
)

// A scopeKind is for how many an item is.
type scopeKind uint8

const (
	forAgent scopeKind = iota
	forSession
	forAll
)

// An entry is an item in the mirror. It never changes.
type entry struct {
	// item is the item, without its texts where they are not held.
	item schema.Item
	// match picks tools; nil: there is nothing to pick by.
	match *match.Matcher
	// size is the length of its texts, and held says that they are here.
	size int
	held bool
	kind scopeKind
}

func (e *entry) seq() uint64 { return e.item.Sequence }

// scope is the first token of the item's key.
func (e *entry) scope() string { return e.item.Key[:strings.IndexByte(e.item.Key, '.')] }

// fits reports whether the item may go out after a call of the tool, which is
// empty at moments without one; any: at any moment.
func (e *entry) fits(tool string, any bool) bool { return any || fits(e.match, tool) }

// fits reports whether what is picked by m, nil by nothing, may go out after a call of
// the tool.
func fits(m *match.Matcher, tool string) bool { return m == nil || tool != "" && m.Match(tool) }

// over reports whether it waited for too long at that time of the server's.
func (e *entry) over(now time.Time) bool {
	return e.item.Expiry > 0 && now.Sub(e.item.Accepted) >= time.Duration(e.item.Expiry)
}

// deadline is when it has waited for too long; only items with an expiry have one.
func (e *entry) deadline() time.Time { return e.item.Accepted.Add(time.Duration(e.item.Expiry)) }

// A line is what waits for one agent, one session, or all, in order.
type line struct {
	items []*entry
	// matches counts the items by what picks their tools. There are few of those, however
	// many items wait: who calls another tool need not look at each.
	matches map[*match.Matcher]int
	// coming counts items that are being written.
	coming int
}

// add puts an item in its place.
func (l *line) add(e *entry) {
	i, _ := l.find(e.seq())
	l.items = slices.Insert(l.items, i, e)
	l.matches[e.match]++
}

// remove takes an item out, if it is there.
func (l *line) remove(e *entry) {
	i, found := l.find(e.seq())
	if !found {
		return
	}
	l.items = slices.Delete(l.items, i, i+1)
	if l.matches[e.match]--; l.matches[e.match] == 0 {
		delete(l.matches, e.match)
	}
}

// fits reports whether an item of the line may go out after a call of the tool.
func (l *line) fits(tool string) bool {
	for m := range l.matches {
		if fits(m, tool) {
			return true
		}
	}
	return false
}

// find is where the item with the sequence is, or would be.
func (l *line) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(l.items, seq, func(e *entry, seq uint64) int { return cmp.Compare(e.seq(), seq) })
}

// An index is the mirror of the items.
type index struct {
	mu sync.RWMutex // guards what follows; held for short moments only
	// position is up to which revision everything is in the index, and newest the
	// newest item's sequence.
	position, newest uint64
	lines            map[string]*line
	bySeq            map[uint64]*entry
	byKey            map[string]*entry
	// ended are the revisions of ends that are known here before the mirror tells
	// of them, by their keys, and leaving are these items' sequences.
	ended   map[string]uint64
	leaving map[uint64]string
	// doubts are the sequences of items that may have ended without a word.
	doubts  map[uint64]bool
	sources map[string]int
	authors map[string]load
	held    int
	coming  int
	soon    deadlines
	// patterns are the matchers that are in use.
	patterns map[string]*match.Matcher
}

func newIndex() *index {
	return &index{
		lines: make(map[string]*line), bySeq: make(map[uint64]*entry), byKey: make(map[string]*entry),
		ended: make(map[string]uint64), leaving: make(map[uint64]string), doubts: make(map[uint64]bool),
		sources: make(map[string]int), authors: make(map[string]load), patterns: make(map[string]*match.Matcher),
	}
}

// put adds an item, unless it is there, or known to have ended.
func (x *index) put(it *schema.Item) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	// What the mirror told of before may have ended since.
	if it.Sequence <= x.position || x.ended[it.Key] > it.Sequence || x.bySeq[it.Sequence] != nil {
		return nil
	}
	if old := x.byKey[it.Key]; old != nil {
		if old.seq() > it.Sequence {
			return nil
		}
		x.remove(old) // somebody wrote over it
	}
	e := x.entry(it)
	x.line(e.scope()).add(e)
	x.bySeq[e.seq()], x.byKey[it.Key] = e, e
	x.sources[it.Source]++
	x.charge(it.Author, 1, e.weight())
	x.newest = max(x.newest, e.seq())
	if it.Expiry > 0 {
		x.soon.push(e.deadline(), e.seq())
	}
	return e
}

// entry makes one. The caller holds the lock.
func (x *index) entry(it *schema.Item) *entry {
	e := &entry{item: *it, size: textSize(it), match: x.matcher(it.Matcher)}
	switch {
	case it.Scope.Session != "":
		e.kind = forSession
	case it.Scope.Agent == "":
		e.kind = forAll
	}
	if e.held = e.size <= heldContent && x.held+e.size <= heldBytes; e.held {
		x.held += e.size
	} else {
		e.item = withoutTexts(it)
	}
	return e
}

// matcher compiles a pattern, or returns nil where everything fits. One that can
// not be compiled fits nothing.
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

// textSize is the length of an item's texts.
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

// withoutTexts is the item without what textSize counts.
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

func (x *index) line(scope string) *line {
	l := x.lines[scope]
	if l == nil {
		l = &line{matches: make(map[*match.Matcher]int)}
		x.lines[scope] = l
	}
	return l
}

// end removes an item whose key ended at the revision. ahead: the mirror has not
// told of it yet.
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

// remove takes an item out. The caller holds the lock.
func (x *index) remove(e *entry) {
	scope := e.scope()
	l := x.lines[scope]
	l.remove(e)
	x.sweepLine(scope, l)
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

// sweepLine forgets a line that nobody waits in.
func (x *index) sweepLine(scope string, l *line) {
	if len(l.items) == 0 && l.coming == 0 {
		delete(x.lines, scope)
	}
}

// advance notes that the mirror told of everything up to the revision.
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

// size is how many items are known.
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

// last is the sequence of the newest that is known.
func (x *index) last() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return max(x.position, x.newest)
}
