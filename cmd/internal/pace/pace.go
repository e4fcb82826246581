// Package pace sets how many processors a process uses, by its load.
package pace

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// crowdFor is how long all processors stay in use after a crowd.
const crowdFor = time.Second

// A Pace runs the process on one processor while few calls are in progress, and on all while many
// are. A call passes through several goroutines, one after the other. On one processor none of them
// has to wake a thread for the next one, which would take longer than its own work.
type Pace struct {
	// run switches to one processor, or to all.
	run func(all bool)
	// crowd is how many concurrent calls are many.
	crowd int64

	mu    sync.Mutex // guards the following fields, and the order of changes
	many  bool
	until time.Time // the end of the crowd
}

// Start switches the process to one processor, and to all while crowd calls are in progress. If
// GOMAXPROCS is set, p is nil, which does nothing. The function end switches to all processors.
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

// processors sets GOMAXPROCS to one, or to the current limit of the process.
func processors(all bool) {
	if all {
		runtime.SetDefaultGOMAXPROCS()
	} else {
		runtime.GOMAXPROCS(1)
	}
}

// Begun is called when a call begins; active includes it.
func (p *Pace) Begun(active int64) {
	if p != nil && active >= p.crowd {
		p.change(func(now time.Time) bool {
			p.until = now.Add(crowdFor)
			return true
		})
	}
}

// Ended is called when a call ends; left is the number of other calls.
func (p *Pace) Ended(left int64) {
	if left == 0 {
		p.change(func(now time.Time) bool { return p.many && now.Before(p.until) })
	}
}

// change switches the processors if the result of many has changed.
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
