package dispatch

import (
	"slices"
	"sync"

	"github.com/hookfabric/hookfabric/schema"
)

// room is where the outcomes of a batch lie, and what they came to, until they are
// folded: kilobytes that are needed for microseconds, and therefore used again.
type room struct {
	outcomes []schema.Outcome
	parts    []part
	trail    []schema.ExecutedHook
}

// maxRoom bounds, in hooks, the rooms that are used again.
const maxRoom = 64

// rooms are those that nobody is in. The zero rooms are empty and good.
type rooms struct{ spare sync.Pool }

// take is a room for so many hooks.
func (p *rooms) take(hooks int) *room {
	r, ok := p.spare.Get().(*room)
	if !ok {
		r = new(room)
	}
	r.outcomes = slices.Grow(r.outcomes[:0], hooks)[:hooks]
	r.parts = slices.Grow(r.parts[:0], hooks)[:hooks]
	r.trail = slices.Grow(r.trail[:0], hooks)[:hooks]
	return r
}

// put takes one back, when nobody has anything any more that lies in it.
func (p *rooms) put(r *room) {
	if len(r.parts) > maxRoom {
		return
	}
	clear(r.outcomes)
	clear(r.parts)
	clear(r.trail)
	p.spare.Put(r)
}
