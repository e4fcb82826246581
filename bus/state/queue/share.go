package queue

import (
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// What waits takes room of three bounds: of its scope, of all items together, and of the
// bucket. Agents that put items into the queue themselves may use those up to a reserve,
// and each of them only its allowance. Of the reserve operators leave a fifth to the
// warnings of rounds, which no bound but the bucket's own refuses.

// operatorsLeave is which part of the reserve is left to rounds.
const operatorsLeave = 5

// share is how many percent of a bound an item may fill.
func (o *Options) share(it *schema.Item) int {
	switch {
	case it.TimeLimit != nil:
		return 100
	case it.Author != "":
		return 100 - o.Reserve
	}
	return 100 - o.Reserve/operatorsLeave
}

// A load is what waits of one author: how many items, and their bytes.
type load struct {
	items int
	bytes int64
}

// weight is what the item counts against its author's allowance.
func (e *entry) weight() int64 { return weightOf(&e.item, e.size) }

// weightOf is that of an item whose texts have so many bytes.
func weightOf(it *schema.Item, texts int) int64 {
	n := int64(len(it.Key) + texts + overhead)
	if it.Object != nil {
		n += it.Object.Size
	}
	return n
}

// charge counts items of an author, or takes them back. The caller holds the lock.
func (x *index) charge(author string, items int, bytes int64) {
	if author == "" {
		return
	}
	l := x.authors[author]
	l.items, l.bytes = l.items+items, l.bytes+bytes
	if l.items == 0 {
		delete(x.authors, author)
		return
	}
	x.authors[author] = l
}

// reserve makes room for an item that is about to be written, if there is any;
// whoever has written it, or could not, calls release.
func (x *index) reserve(scope string, it *schema.Item, o *Options) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.allows(it, o); err != nil {
		return err
	}
	share := o.share(it)
	if most := kv.PercentOf(int64(o.MaxItems), share); int64(len(x.bySeq)+x.coming) >= most && it.TimeLimit == nil {
		return full("%d wait in all%s", most, left(it, o))
	}
	l := x.line(scope)
	if most := kv.PercentOf(int64(o.MaxPerScope), share); int64(len(l.items)+l.coming) >= most && it.TimeLimit == nil {
		x.sweepLine(scope, l)
		return full("%d wait for %s%s", most, scope, left(it, o))
	}
	l.coming++
	x.coming++
	x.charge(it.Author, 1, weightOf(it, textSize(it)))
	return nil
}

// left says why an author's item finds less room than there is; empty: it does not.
func left(it *schema.Item, o *Options) string {
	if it.Author == "" || o.Reserve == 0 {
		return ""
	}
	return sentenceOfReserve(o.Reserve)
}

// allows says why the author of an item may not put it into the queue; nil: it may. The
// caller holds the lock.
func (x *index) allows(it *schema.Item, o *Options) error {
	if it.Author == "" {
		return nil
	}
	l, n := x.authors[it.Author], weightOf(it, textSize(it))
	switch {
	case o.MaxPerAuthor > 0 && l.items >= o.MaxPerAuthor:
		return allowance("%d answers of %.80q wait for other agents, which is the limit (--agent-answers); try again when some have expired, after %v at the latest, "+
			"or ask an operator to withdraw some or to raise the limit", l.items, it.Author, DefaultExpiry)
	case o.MaxAuthorBytes > 0 && l.bytes+n > o.MaxAuthorBytes:
		return allowance("answers of %.80q have %d bytes, this one has %d, and %d are the limit (--agent-answer-bytes); send less, try again when some have expired, after %v at the latest, "+
			"or ask an operator to withdraw some or to raise the limit", it.Author, l.bytes, n, o.MaxAuthorBytes, DefaultExpiry)
	}
	return nil
}

func (x *index) release(scope string, it *schema.Item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.line(scope)
	l.coming--
	x.coming--
	x.charge(it.Author, -1, -weightOf(it, textSize(it)))
	x.sweepLine(scope, l)
}

// Allows says why the author of an item may not put it into the queue, as far as that is known
// before its text is stored; nil: it may. A repeat of what waits takes no room.
func (q *Queue) Allows(it *schema.Item) error {
	key, err := keyOf(it)
	if err != nil {
		return invalid("%w", err)
	}
	q.index.mu.RLock()
	defer q.index.mu.RUnlock()
	if q.index.byKey[key] != nil {
		return nil
	}
	return q.index.allows(it, &q.o)
}
