package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
)

const (
	// startTries is how often a process is started that does not come up, after
	// a pause each time: a worker needs a broker, which may be dead.
	startTries = 40
	startAgain = 250 * time.Millisecond
)

// ErrKilled is why a request to a victim got no answer that was killed meanwhile.
var ErrKilled = errors.New("it was killed")

// A Spec says what a victim is.
type Spec struct {
	// Name is who it is, in all its lives.
	Name string
	// Role and Config start it; by names the process that is started.
	Role   string
	Config func(by string) any
	// Facts takes what the role tells of itself at each start; nil: nobody asks.
	Facts any
	// Spared means that no fault happens to it.
	Spared bool
	// Link is the network in front of it; nil: it has none that can be touched.
	Link *Link
	// Host is where it runs, so that it can be cut off from the other hosts; nil: on this one.
	Host *Host
	// Like is a crew that its processes are started like.
	Like *proc.Crew
	// Lost is told when a process ended by itself; nil: nobody is.
	Lost func(error)
	// Ending is told of each process before it is killed or restarted; nil: nobody is.
	Ending func(pid int)
}

// A Victim is one process, and all that follow it in its place. It is safe for
// many goroutines, of which one starts, kills or stops it at a time.
type Victim struct {
	Spec

	mu      sync.Mutex // guards what follows
	lives   int
	killed  []string
	child   *proc.Child
	crew    *proc.Crew
	ending  bool // whatever ends the process now, it was meant to
	stopped bool
}

// NewVictim is a victim that is not up yet.
func NewVictim(s Spec) *Victim { return &Victim{Spec: s} }

// By is the name of the process that is up, or was last.
func (v *Victim) By() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.by()
}

func (v *Victim) by() string { return fmt.Sprintf("%s.%d", v.Name, v.lives) }

// Killed are the names of the processes that were killed.
func (v *Victim) Killed() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.killed...)
}

// Pid is the process that is up, or was last; 0: there was none.
func (v *Victim) Pid() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.child == nil {
		return 0
	}
	return v.child.Pid()
}

// Start brings the next process up. It has a crew of its own, as several victims
// are killed and started at the same time. The first one has one try: nobody
// that it needs is dead yet.
func (v *Victim) Start(ctx context.Context) error {
	tries := startTries
	if v.begin() == 1 {
		tries = 1
	}
	var all error
	for try := range tries {
		if try > 0 {
			v.begin()
		}
		crew := v.Like.Like()
		child, err := crew.Start(ctx, v.Role, v.Config(v.By()), v.Facts)
		if err == nil {
			v.up(crew, child)
			return nil
		}
		// It has never been up, so that its end says nothing.
		_ = crew.Stop()
		all = errors.Join(all, err)
		if !measure.Pause(ctx, startAgain) {
			break
		}
	}
	return fmt.Errorf("%s does not start: %w", v.Name, all)
}

// begin counts a life.
func (v *Victim) begin() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lives++
	return v.lives
}

func (v *Victim) up(crew *proc.Crew, child *proc.Child) {
	v.mu.Lock()
	v.crew, v.child, v.ending, v.stopped = crew, child, false, false
	v.mu.Unlock()
	go v.watch(child)
}

// watch tells of a process that ends and was not to.
func (v *Victim) watch(child *proc.Child) {
	<-child.Ended()
	v.mu.Lock()
	meant, by := v.ending || v.child != child, v.by()
	v.mu.Unlock()
	if !meant && v.Lost != nil {
		v.Lost(fmt.Errorf("%s ended unexpectedly: %w", by, child.Stop()))
	}
}

// Kill kills the process.
func (v *Victim) Kill() error {
	v.mu.Lock()
	child := v.child
	v.ending = true
	v.killed = append(v.killed, v.by())
	v.mu.Unlock()
	if v.Ending != nil {
		v.Ending(child.Pid())
	}
	if err := child.Kill(); err != nil {
		return fmt.Errorf("killing %s: %w", v.Name, err)
	}
	return nil
}

// Ask asks the process that is up. The error is [ErrKilled] where it was killed
// before it answered. Requests must come one after the other.
func (v *Victim) Ask(ctx context.Context, request, value any) error {
	v.mu.Lock()
	child := v.child
	dead := v.ending || child == nil
	v.mu.Unlock()
	if dead {
		return fmt.Errorf("asking %s: %w", v.Name, ErrKilled)
	}
	err := child.Ask(ctx, request, value)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil && (v.ending || v.child != child) {
		return fmt.Errorf("asking %s: %w", v.Name, ErrKilled)
	}
	return err
}

// End ends the process in order, as somebody does who has no use for it any more.
func (v *Victim) End() error {
	v.mu.Lock()
	crew := v.crew
	v.ending = true
	v.mu.Unlock()
	if crew == nil {
		return nil
	}
	if err := errors.Join(v.signal(false), crew.Stop()); err != nil {
		return fmt.Errorf("ending %s: %w", v.By(), err)
	}
	return nil
}

// signal stops the process, or has it go on.
func (v *Victim) signal(stop bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stopped == stop {
		return nil
	}
	v.stopped = stop
	if stop {
		return v.child.Freeze()
	}
	return v.child.Thaw()
}

// Suffer does one fault to the victim and returns when nothing is left of it. A
// context that ends undoes it at once, and starts nobody again.
func (v *Victim) Suffer(ctx context.Context, f Fault) error {
	if f.Kind.OnLink() {
		return v.sufferLink(ctx, f)
	}
	if f.Kind.OnWire() {
		return v.sufferWire(ctx, f)
	}
	switch f.Kind {
	case Kill:
		if err := v.Kill(); err != nil {
			return err
		}
		if !measure.Pause(ctx, f.away()) {
			return context.Cause(ctx)
		}
		return v.Start(ctx)
	case Restart:
		if v.Ending != nil {
			v.Ending(v.Pid())
		}
		if err := v.End(); err != nil {
			return err
		}
		if !measure.Pause(ctx, f.For.Std()) {
			return context.Cause(ctx)
		}
		return v.Start(ctx)
	case Stop:
		if err := v.signal(true); err != nil {
			return fmt.Errorf("stopping %s: %w", v.Name, err)
		}
		measure.Pause(ctx, f.For.Std())
		return v.signal(false)
	default:
		return fmt.Errorf("unknown kind of fault %q", f.Kind)
	}
}

func (v *Victim) sufferLink(ctx context.Context, f Fault) error {
	switch {
	case v.Link == nil:
		return fmt.Errorf("the network of %s cannot fail: no link is in front of it", v.Name)
	case f.Kind == Reset:
		v.Link.Reset()
		return nil
	}
	v.Link.Set(f.Conditions())
	defer v.Link.Set(Conditions{})
	measure.Pause(ctx, f.For.Std())
	return nil
}

func (v *Victim) sufferWire(ctx context.Context, f Fault) error {
	if v.Host == nil {
		return fmt.Errorf("%s cannot be cut off from its peers: it has no network namespace", v.Name)
	}
	err := v.Host.Part(f.Kind != Deafen, f.Kind != Mute)
	if err == nil {
		measure.Pause(ctx, f.For.Std())
	}
	return errors.Join(err, v.Host.Join())
}
