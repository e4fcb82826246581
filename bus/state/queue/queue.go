package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// The buckets. The first holds the items, the second the cursors, one per
// agent, and the producers' high-water marks.
const (
	ItemBucket   = "hook_injections"
	CursorBucket = "hook_sequences"
)

// The defaults and bounds of items.
const (
	// DefaultDedup is how long an item's end is remembered, so that a repeat of it
	// is noticed.
	DefaultDedup = 24 * time.Hour
	// LeaseFor is how long a shim may take to say that it handed items over.
	LeaseFor = 30 * time.Second
	// DefaultExpiry is that of items for more than one agent, MaxExpiry the longest.
	DefaultExpiry = 24 * time.Hour
	MaxExpiry     = 7 * 24 * time.Hour
)

// Why an item was not accepted, or not found. Errors wrap one of them, and are
// sentences that may be shown to whoever asked.
var (
	// ErrTooOld: the number is at or below the producer's mark.
	ErrTooOld = errors.New("the number was used too long ago")
	// ErrFull: too many items wait, for the agent or altogether.
	ErrFull = errors.New("too many items are waiting")
	// ErrAllowance: too many items of one author wait.
	ErrAllowance = errors.New("the agent has used up its allowance")
	// ErrNotFound: there is no such item, or it is no longer known.
	ErrNotFound = errors.New("there is no such message")
	// ErrInvalid: the item is not one that can be accepted.
	ErrInvalid = errors.New("the item cannot be accepted")
	// ErrKey: no item can have the key.
	ErrKey = errors.New("no message can have this key")
	// ErrUnavailable: the state could be neither read nor written in time.
	ErrUnavailable = errors.New("the queue cannot be reached now")
)

// Options say how the queue is kept.
type Options struct {
	// Replicas of the buckets; those that are there get more, but never less; 0 is 1.
	Replicas int
	// Room is how much the server may store of everything together, of which buckets
	// that are made take their share; 0: plenty.
	Room int64
	// Dedup is how long ends are remembered; 0: [DefaultDedup].
	Dedup time.Duration
	// MaxPerScope bounds what waits for one agent, one session, or all; 0: 10,000.
	MaxPerScope int
	// MaxItems bounds what waits altogether; 0: 1,000,000.
	MaxItems int
	// MaxPerAuthor and MaxAuthorBytes bound what waits of one author, with the objects that it
	// names; 0: no bound.
	MaxPerAuthor   int
	MaxAuthorBytes int64
	// Reserve is how many percent of MaxPerScope, of MaxItems and of the bucket items of
	// authors leave free for those without; 0: none.
	Reserve int
	// MaxEnds bounds how many ends are remembered: when there are half as many, those of
	// numbered items are for a shorter time than Dedup, and then their producers' marks
	// say that they were; 0: 1,000,000.
	MaxEnds int
	// Finish is called when an agent's own item was acknowledged, before its end is
	// written: until it returns nil the item is kept, and Finish is called again,
	// after a crash too. nil: there is nothing more to do.
	Finish func(ctx context.Context, agent string, it *schema.Item) error
	// Watch hears what happens; nil fields are skipped.
	Watch Watch
	// Step is called at each named step on the way of an item; an error ends the
	// work there, as if the process had died. Only tests set it.
	Step func(Step) error
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// Watch is told what happens in the queue, in this process. Its functions must
// not block.
type Watch struct {
	// Duplicate: a repeat was noticed.
	Duplicate func(source string)
	// Delivered: an item was acknowledged.
	Delivered func(agent string, it *schema.Item)
	// Redelivered: an item went out again, because its lease had ended.
	Redelivered func(agent string, it *schema.Item)
	// LeaseExpired: a lease ended without an acknowledgement, and its items went
	// out under another event.
	LeaseExpired func(agent, event string)
	// Expired: an item waited for too long, and is gone. For an item of many
	// agents it is called once.
	Expired func(it *schema.Item)
	// Conflict: a compare-and-set was lost.
	Conflict func()
}

// A Claim asks for what is due for an agent at one event.
type Claim struct {
	schema.Routing
	// Acks are events whose injections were handed over; what they held up is
	// free for this claim.
	Acks []string
	// Asked: the event was asked before, perhaps of another node, of which this one
	// may not have heard yet.
	Asked bool
	// Any: tool matchers do not count.
	Any bool
	// Channel: the agent reads what is claimed item by item, each after a call of its tool, so
	// that an item that waits for its tool holds up no later one.
	Channel bool
	// Choose returns, of what is due, in order, what is to be taken. It may
	// change what is remembered of peers, but not the items, whose long texts are
	// not there yet. It may be called more than once, each time anew. nil: all.
	Choose func(p *schema.Peers, due []*schema.Item) []*schema.Item
	// MaxBytes bounds the content that is taken; 0: no bound. The first item is
	// taken whatever its size.
	MaxBytes int
}

// Claimed is what a claim took.
type Claimed struct {
	// Items are in the order of their sequences, with their content.
	Items []*schema.Item
	// Peers is what was remembered of peers before this event.
	Peers schema.Peers
	// Again: they were taken under the same event before.
	Again bool
	// More counts what was chosen but did not fit.
	More int
}

// Stats are sums over what the mirror holds.
type Stats struct {
	// Pending counts what waits, by source.
	Pending map[string]int
	// Oldest is the age of the agent's own item that has waited longest; 0: none.
	Oldest time.Duration
	// Lag is how long the mirror has been behind; 0: it is not.
	Lag time.Duration
	// Remembered is for how long the end of a numbered item is remembered now.
	Remembered time.Duration
}
