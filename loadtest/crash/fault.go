package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
)

const (
	// startTries is how often a process is started that does not come up, after
	// a pause each time: a hookworker needs a broker, which may be dead.
	startTries = 40
	startAgain = 250 * time.Millisecond
	// downMost is how long a killed process stays away at most.
	downMost = time.Second
)

// A victim is one process, and all that follow it in its place.
type victim struct {
	// kind is what it is, name who of them.
	kind, name string
	// role and config start it; by names the process that is started.
	role   string
	config func(by string) any
	// every is about how long it lives; 0: it is not killed.
	every time.Duration
	// facts takes what the role tells of itself; nil: nobody asks.
	facts any

	lives int
	child *proc.Child
	crew  *proc.Crew
}

// by is the name of the process that is up.
func (v *victim) by() string { return fmt.Sprintf("%s.%d", v.name, v.lives) }

// deaths counts who was killed.
type deaths struct {
	mu     sync.Mutex // guards what follows
	killed map[string]bool
	counts map[string]int
}

func (d *deaths) note(v *victim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.killed[v.by()] = true
	d.counts[v.kind]++
}

// so far is a copy of who was killed, and how many of each kind.
func (d *deaths) soFar() (killed map[string]bool, counts map[string]int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.killed), maps.Clone(d.counts)
}

// start brings the next process up in v's place. It has a crew of its own, as
// several victims are killed and started at the same time.
func (v *victim) start(ctx context.Context, like *proc.Crew) error {
	var all error
	tries := startTries
	if v.lives == 0 {
		tries = 1 // nobody is dead yet
	}
	for range tries {
		v.lives++
		v.crew = &proc.Crew{Args: like.Args, Log: like.Log}
		child, err := v.crew.Start(ctx, v.role, v.config(v.by()), v.facts)
		if err == nil {
			v.child = child
			return nil
		}
		// It has never been up, so that its end says nothing.
		_ = v.crew.Stop()
		all = errors.Join(all, err)
		if !measure.Pause(ctx, startAgain) {
			break
		}
	}
	return fmt.Errorf("the %s %s does not come up: %w", v.kind, v.name, all)
}

// kill kills the process, and notes that.
func (v *victim) kill(d *deaths) error {
	d.note(v)
	if err := v.child.Kill(); err != nil {
		return fmt.Errorf("killing the %s %s: %w", v.kind, v.name, err)
	}
	return nil
}

// suffer kills the process again and again, and starts it again, until the
// faults end: then it is up. A process that ends by itself is a failure.
func (v *victim) suffer(ctx context.Context, end <-chan struct{}, like *proc.Crew, d *deaths) error {
	for v.every > 0 {
		life := time.NewTimer(v.every/2 + rand.N(v.every))
		select {
		case <-life.C:
		case <-end:
			life.Stop()
			return nil
		case <-v.child.Ended():
			life.Stop()
			return fmt.Errorf("the %s %s ended by itself: %w", v.kind, v.by(), v.child.Stop())
		case <-ctx.Done():
			life.Stop()
			return context.Cause(ctx)
		}
		if err := v.kill(d); err != nil {
			return err
		}
		if !measure.Pause(ctx, rand.N(downMost)) {
			return context.Cause(ctx)
		}
		if err := v.start(ctx, like); err != nil {
			return err
		}
	}
	return nil
}

// stop ends what is up.
func (v *victim) stop() error {
	if v.crew == nil {
		return nil
	}
	if err := v.crew.Stop(); err != nil {
		return fmt.Errorf("ending the %s %s: %w", v.kind, v.by(), err)
	}
	return nil
}
