package deliver

import (
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// maxBroken bounds the items that are remembered because they cannot be rendered.
	maxBroken = 4096
	// mendTime is how long such an item waits before a stage tries it again.
	mendTime = 5 * time.Minute
)

// broken holds the items that some stage could not render. Like a lease, such an item delays the
// later items of its source, and no others.
type broken struct {
	mu    sync.Mutex
	until map[uint64]time.Time // by sequence; guarded by mu
}

func (b *broken) add(items []*schema.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil || len(b.until) >= maxBroken {
		b.until = make(map[uint64]time.Time)
	}
	for _, it := range items {
		b.until[it.Sequence] = time.Now().Add(mendTime)
	}
}

// without returns the items that may be delivered.
func (b *broken) without(items []*schema.Item) []*schema.Item {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.until) == 0 {
		return items
	}
	var some []*schema.Item
	held := make(map[string]bool)
	for _, it := range items {
		until, ok := b.until[it.Sequence]
		if ok && time.Now().After(until) {
			delete(b.until, it.Sequence)
			ok = false
		}
		if held[it.Source] = held[it.Source] || ok; !held[it.Source] {
			some = append(some, it)
		}
	}
	return some
}
