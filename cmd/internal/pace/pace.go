// Package pace sets how many processors a process uses, by the work that it does.
package pace

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// crowdFor is how long a crowd counts as there after it was seen.
const crowdFor = time.Second

// A Pace has the process run on one processor while few calls are under way, and on
// all while many are. A call passes through half a dozen goroutines, one after the other:
// on one processor none of them has to wake a thread for the next one, which takes
// longer than what it does itself.
type Pace struct {
	// run has the process run on one processor, or on all that it may by now.
	run func(all bool)
	// crowd is how many calls under way at once are many.
	crowd int64

	mu    sync.Mutex // guards what follows, and the order of changes
	many  bool
	until time.Time // when the crowd counts as gone
}

// Start has this process begin on one processor, and run on all of them where so many calls
// are under way at once. Where GOMAXPROCS says on how many it is to run the Pace is nil, and
// does nothing. The end has it run on all again.
func Start(crowd int64) (p *Pace, end func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return nil, func() {}
	}
	return begin(crowd, processors), runtime.SetDefaultGOMAXPROCS
}

func begin(crowd int64, run func(all bool)) *Pace {
	run(false)
	return &Pace{run: run, crowd: crowd}
}

// processors is how many the process runs on. Its limit may have changed meanwhile.
func processors(all bool) {
	if all {
		runtime.SetDefaultGOMAXPROCS()
	} else {
		runtime.GOMAXPROCS(1)
	}
}

// Begun hears of a call that begins, and how many are under way with it.
func (p *Pace) Begun(active int64) {
	if p != nil && active >= p.crowd {
		p.change(func(now time.Time) bool {
			p.until = now.Add(crowdFor)
			return true
		})
	}
}

// Ended hears of a call that ended, and how many are left.
func (p *Pace) Ended(left int64) {
	if left == 0 {
		p.change(func(now time.Time) bool { return p.many && now.Before(p.until) })
	}
}

// change has the processors follow what many says.
func (p *Pace) change(many func(now time.Time) bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.many
	p.many = many(time.Now())
	switch {
	case p.many && !was:
		p.run(true)
	case was && !p.many:
		p.run(false)
	}
}
