package queue

import (
	"fmt"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// Waiting items count against three limits: of their scope, of all items, and of the bucket. Items with an author, which
// agents send themselves, leave a reserve free, and each author has an allowance. Operators leave a fifth of the reserve to
// the warnings of rounds, which only the limit of the bucket rejects.

// operatorsLeave is the divisor of the reserve that is left to rounds.
const operatorsLeave = 5

// share returns the percentage of a limit that an item may use.
func (o *Options) share(it *schema.Item) int {
	switch {
	case it.TimeLimit != nil:
		return 100
	case it.Author != "":
		return 100 - o.Reserve
	}
	return 100 - o.Reserve/operatorsLeave
}

// A load is the number of an author's waiting items, and their bytes.
type load struct {
	items int
	bytes int64
}

// weight returns the bytes of the item in its author's allowance.
func (e *entry) weight() int64 { return weightOf(&e.item, e.size) }

// weightOf returns the bytes of an item with texts of so many bytes.
func weightOf(it *schema.Item, texts int) int64 {
	n := int64(len(it.Key) + texts + overhead)
	if it.Object != nil {
		n += it.Object.Size
	}
	return n
}

// charge adds items to an author's load, or removes them. The caller holds the lock.
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

// reserve reserves space for an item that is about to be written. The caller must call release after the write, also if it
// failed.
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
	l := x.list(scope)
	if most := kv.PercentOf(int64(o.MaxPerScope), share); int64(len(l.items)+l.coming) >= most && it.TimeLimit == nil {
		x.dropEmpty(scope, l)
		return full("%d wait for %s%s", most, scope, left(it, o))
	}
	l.coming++
	x.coming++
	x.charge(it.Author, 1, weightOf(it, textSize(it)))
	return nil
}

// left returns the part of an error that explains the reserve; empty: the reserve does not matter.
func left(it *schema.Item, o *Options) string {
	if it.Author == "" || o.Reserve == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d %% of the room are reserved for operators and rounds (--reserve); try again when some were delivered or expired", o.Reserve)
}

// allows returns why the author's allowance does not permit an item; nil: it does. The caller holds the lock.
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
	l := x.list(scope)
	l.coming--
	x.coming--
	x.charge(it.Author, -1, -weightOf(it, textSize(it)))
	x.dropEmpty(scope, l)
}

// Allows returns why the author's allowance does not permit an item, before its text is stored; nil: it does. A repeat needs no
// space.
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
