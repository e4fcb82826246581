package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
)

const (
	// startTries limits how often a start is tried, with a pause between tries: a worker
	// needs a broker, which may be down.
	startTries = 40
	startAgain = 250 * time.Millisecond
)

// ErrKilled is returned for a request to a victim that was killed before it answered.
var ErrKilled = errors.New("it was killed")

// A Spec describes a victim.
type Spec struct {
	// Name is its unique name, which stays the same after a restart. Its part before the last
	// dash is its kind: "driver" in "driver-1".
	Name string
	// Role and Config start it.
	Role   string
	Config func(At) any
	// Spared excludes it from faults.
	Spared bool
	// NATS is the URL of its server. Link is the network in front of it; nil: its network
	// cannot have faults.
	NATS string
	Link *Link
	// Host is where it runs, which can be cut off from other hosts; nil: on this one.
	Host *Host
	// Like is a crew with the settings for its processes.
	Like *proc.Crew
	// Lost is called when a process ends by itself; nil: no callback.
	Lost func(error)
	// Ending is called before each process is killed or restarted; nil: no callback.
	Ending func(pid int)
}

// At has the values that a process needs at its start.
type At struct {
	// By is the name of this process, a new one after each start.
	By string
	// NATS is the URL of its server, through its own link if it has one.
	NATS string
}

// A Victim is a process and its successors. It is safe for concurrent use, but only one
// goroutine may start, kill or stop it at a time.
type Victim struct {
	Spec

	mu      sync.Mutex // guards what follows
	lives   int
	killed  []string
	child   *proc.Child
	crew    *proc.Crew
	ending  bool // the end of the process is intended
	stopped bool
}

// NewVictim returns a victim that is not started yet.
func NewVictim(s Spec) *Victim { return &Victim{Spec: s} }

// By returns the name of the current or the last process.
func (v *Victim) By() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.by()
}

func (v *Victim) by() string { return fmt.Sprintf("%s.%d", v.Name, v.lives) }

// Killed returns the names of the killed processes.
func (v *Victim) Killed() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.killed...)
}

// Pid returns the id of the current or the last process; 0: no process was started.
func (v *Victim) Pid() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.child == nil {
		return 0
	}
	return v.child.Pid()
}

// Start starts the next process. Each victim has its own crew, because several are killed
// and started at the same time. The first start is not retried: the processes that it needs
// are still up.
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
		child, err := crew.Start(ctx, v.Role, v.Config(At{By: v.By(), NATS: v.NATS}), nil)
		if err == nil {
			v.up(crew, child)
			return nil
		}
		// It was never up, so its end means nothing.
		_ = crew.Stop()
		all = errors.Join(all, err)
		if !load.Pause(ctx, startAgain) {
			break
		}
	}
	return fmt.Errorf("%s does not start: %w", v.Name, all)
}

// begin counts a start.
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

// watch calls Lost if a process ends that was not meant to end.
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
	v.noteEnd()
	if err := child.Kill(); err != nil {
		return fmt.Errorf("killing %s: %w", v.Name, err)
	}
	return nil
}

// Ask sends a request to the current process. It returns [ErrKilled] if the process was
// killed before it answered. Requests must not overlap.
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

// End ends the process in order, as an operator would.
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

// signal stops the process, or lets it continue.
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

// Suffer causes one fault and returns when its effects are undone. When ctx ends, it undoes
// the fault at once and does not start a process again.
func (v *Victim) Suffer(ctx context.Context, f Fault) error {
	switch {
	case f.Kind.OnLink():
		return v.sufferLink(ctx, f)
	case f.Kind.OnWire():
		return v.sufferWire(ctx, f)
	case f.Kind == Kill:
		return v.replace(ctx, v.Kill, f.away())
	case f.Kind == Restart:
		v.noteEnd()
		return v.replace(ctx, v.End, f.For.Std())
	case f.Kind == Stop:
		if err := v.signal(true); err != nil {
			return fmt.Errorf("stopping %s: %w", v.Name, err)
		}
		load.Pause(ctx, f.For.Std())
		return v.signal(false)
	default:
		return fmt.Errorf("unknown kind of fault %q", f.Kind)
	}
}

// replace ends the process and starts the next one after a pause.
func (v *Victim) replace(ctx context.Context, end func() error, pause time.Duration) error {
	if err := end(); err != nil {
		return err
	}
	if !load.Pause(ctx, pause) {
		return context.Cause(ctx)
	}
	return v.Start(ctx)
}

// noteEnd reports that the process is about to end.
func (v *Victim) noteEnd() {
	if v.Ending != nil {
		v.Ending(v.Pid())
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
	load.Pause(ctx, f.For.Std())
	return nil
}

func (v *Victim) sufferWire(ctx context.Context, f Fault) error {
	if v.Host == nil {
		return fmt.Errorf("%s cannot be cut off from its peers: it has no network namespace", v.Name)
	}
	err := v.Host.Part(f.Kind != Deafen, f.Kind != Mute)
	if err == nil {
		load.Pause(ctx, f.For.Std())
	}
	return errors.Join(err, v.Host.Join())
}
