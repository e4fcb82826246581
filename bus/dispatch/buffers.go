package dispatch

import (
	"slices"
	"sync"

	"github.com/hookfabric/hookfabric/schema"
)

// outcomeBuffer is memory for the outcomes and parts of a batch until they are folded. It
// is kilobytes needed for microseconds, so it is reused.
type outcomeBuffer struct {
	outcomes []schema.Outcome
	parts    []part
	trail    []schema.ExecutedHook
}

// maxBuffer is the largest reused buffer, in hooks.
const maxBuffer = 64

// buffers is a pool of outcomeBuffers. Its zero value is ready to use.
type buffers struct{ spare sync.Pool }

// get returns a buffer for that many hooks.
func (p *buffers) get(hooks int) *outcomeBuffer {
	r, ok := p.spare.Get().(*outcomeBuffer)
	if !ok {
		r = new(outcomeBuffer)
	}
	r.outcomes = slices.Grow(r.outcomes[:0], hooks)[:hooks]
	r.parts = slices.Grow(r.parts[:0], hooks)[:hooks]
	r.trail = slices.Grow(r.trail[:0], hooks)[:hooks]
	return r
}

// put returns a buffer. The caller must not use it after that.
func (p *buffers) put(r *outcomeBuffer) {
	if len(r.parts) > maxBuffer {
		return
	}
	clear(r.outcomes)
	clear(r.parts)
	clear(r.trail)
	p.spare.Put(r)
}
