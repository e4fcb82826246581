package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// The buckets. The first one holds the items, the second one the cursors of agents and the high-water marks of producers.
const (
	ItemBucket   = "hook_injections"
	CursorBucket = "hook_sequences"
)

// The defaults and bounds of items.
const (
	// DefaultDedup is how long an item's end is remembered, so that a repeat is recognised.
	DefaultDedup = 24 * time.Hour
	// LeaseFor is how long a shim may take to acknowledge items.
	LeaseFor = 30 * time.Second
	// DefaultExpiry is the default for items for several agents, MaxExpiry the longest expiry.
	DefaultExpiry = 24 * time.Hour
	MaxExpiry     = 7 * 24 * time.Hour
)

// Why an item was not accepted, or not found. Errors wrap one of them, and may be shown to the client.
var (
	// ErrTooOld: the number is at or below the producer's mark.
	ErrTooOld = errors.New("the number was used too long ago")
	// ErrFull: too many items wait, for the agent or altogether.
	ErrFull = errors.New("too many items are waiting")
	// ErrAllowance: too many items of one author wait.
	ErrAllowance = errors.New("the agent has used up its allowance")
	// ErrNotFound: there is no such item, or it is no longer known.
	ErrNotFound = errors.New("there is no such message")
	// ErrInvalid: the item is invalid.
	ErrInvalid = errors.New("the item cannot be accepted")
	// ErrKey: no item can have the key.
	ErrKey = errors.New("no message can have this key")
	// ErrUnavailable: the state could be neither read nor written in time.
	ErrUnavailable = errors.New("the queue cannot be reached now")
)

// Options configure a Queue.
type Options struct {
	// Replicas of the buckets; existing buckets can get more, never fewer; 0: 1.
	Replicas int
	// Room is how many bytes the server may store in all, of which new buckets get a share; 0: unlimited.
	Room int64
	// Dedup is how long ends are remembered; 0: [DefaultDedup].
	Dedup time.Duration
	// MaxPerScope limits the waiting items of one agent, of one session, and for all agents; 0: 10,000.
	MaxPerScope int
	// MaxItems limits all waiting items; 0: 1,000,000.
	MaxItems int
	// MaxPerAuthor and MaxAuthorBytes limit the waiting items of one author and their size, including
	// objects; 0: no limit.
	MaxPerAuthor   int
	MaxAuthorBytes int64
	// Reserve is the percentage of MaxPerScope, of MaxItems and of the bucket that items with an author
	// leave free for others; 0: none.
	Reserve int
	// MaxEnds limits the ends that are remembered; 0: 1,000,000. From half of them on, ends of numbered
	// items are remembered for less than Dedup, and the producers' marks replace them.
	MaxEnds int
	// Finish is called when an agent's own item was acknowledged, before its end is written. Until it
	// returns nil the item is kept and Finish is called again, also after a crash. nil: no call.
	Finish func(ctx context.Context, agent string, it *schema.Item) error
	// Watch gets what happens; nil fields are skipped.
	Watch Watch
	// Step is called at each named step of an item. An error ends the work there, as if the process had
	// died. Only tests set it.
	Step func(Step) error
	// Logger logs what needs no action at once; nil: no log.
	Logger *slog.Logger
}

// Watch has functions that are called for what happens in the queue of this process. They must not block.
type Watch struct {
	// Duplicate: a repeat was recognised.
	Duplicate func(source string)
	// Delivered: an item was acknowledged.
	Delivered func(agent string, it *schema.Item)
	// Redelivered: an item was delivered again after its lease ended.
	Redelivered func(agent string, it *schema.Item)
	// LeaseExpired: a lease ended without an acknowledgement, and its items were leased to another event.
	LeaseExpired func(agent, event string)
	// Expired: an item expired and was removed. It is called once for an item for several agents.
	Expired func(it *schema.Item)
	// Conflict: a compare-and-set was lost.
	Conflict func()
}

// A Claim requests the due items of an agent at one event.
type Claim struct {
	schema.Routing
	// Acks are events whose injections were delivered. Their items no longer block this claim.
	Acks []string
	// Asked: the event was sent before, perhaps to another node whose claim is not known here yet.
	Asked bool
	// Any: matchers of tools are ignored.
	Any bool
	// Channel: the agent reads each item after a call of its tool, so an item that waits for its tool does not
	// block later ones.
	Channel bool
	// Choose returns the items to take, in order. It may change the knowledge about peers, but not the items,
	// whose long texts are missing. It may be called several times, each time with the original state. nil:
	// all.
	Choose func(p *schema.Peers, due []*schema.Item) []*schema.Item
	// MaxBytes limits the content; 0: no limit. The first item is always taken.
	MaxBytes int
}

// Claimed is the result of a claim.
type Claimed struct {
	// Items are in the order of their sequences, with their content.
	Items []*schema.Item
	// Peers is what was known about peers before this event.
	Peers schema.Peers
	// Again: the same event took them before.
	Again bool
	// More counts chosen items that did not fit.
	More int
}

// Stats are figures of the mirror.
type Stats struct {
	// Pending counts the waiting items by source.
	Pending map[string]int
	// Oldest is the age of the oldest waiting item of a single agent; 0: there is no such item.
	Oldest time.Duration
	// Lag is how long the mirror has been behind; 0: it is current.
	Lag time.Duration
	// Remembered is how long the end of a numbered item is remembered now.
	Remembered time.Duration
}
