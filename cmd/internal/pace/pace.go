package daemon

import (
	"sync"
	"time"
)

const (
	// crowd is how many calls under way at once are one.
	crowd = 4
	// crowdFor is how long it counts as there after it was seen.
	crowdFor = time.Second
)

// A pace has the daemon run on one processor while few calls are under way, and on
// all while many are. A call passes through half a dozen goroutines, one after the other:
// on one processor none of them has to wake a thread for the next one, which takes
// longer than what it does itself.
type pace struct {
	// run is [Options.Processors].
	run func(processors int) (before int)
	all int

	mu    sync.Mutex // guards what follows, and the order of changes
	many  bool
	until time.Time // when the crowd counts as gone
}

// newPace begins on one processor.
func newPace(run func(int) int) *pace {
	p := &pace{run: run}
	if run != nil {
		p.all = run(1)
	}
	return p
}

// begun hears of a call that begins, and how many are under way with it.
func (p *pace) begun(active int64) {
	if active >= crowd {
		p.change(func(now time.Time) bool {
			p.until = now.Add(crowdFor)
			return true
		})
	}
}

// ended hears of a call that ended, and how many are left.
func (p *pace) ended(active int64) {
	if active == 0 {
		p.change(func(now time.Time) bool { return p.many && now.Before(p.until) })
	}
}

// change has the processors follow what many says.
func (p *pace) change(many func(now time.Time) bool) {
	if p.run == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.many
	p.many = many(time.Now())
	switch {
	case p.many && !was:
		p.run(p.all)
	case was && !p.many:
		p.run(1)
	}
}
