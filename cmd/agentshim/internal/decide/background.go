package decide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// backgroundTime limits one request in the background, and retryPause is the pause after a failed one.
	backgroundTime = 5 * time.Second
	retryPause     = time.Second
	// checkEvery is how often a resident judge checks for calls that other processes logged.
	checkEvery = 10 * time.Second
)

// A background is the work of a judge that no answer waits for: it updates the policy, and reports
// unjudged calls.
type background struct {
	mu      sync.Mutex // guards what follows
	busy    bool
	again   bool      // the policy changed while it was busy
	checked time.Time // when it checked the log of unjudged calls
	failed  time.Time // when it failed
	work    sync.WaitGroup
	ctx     context.Context //nolint:containedctx // the life of the judge, not of one request
	stop    context.CancelFunc
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// catchUp starts the background work, unless it runs already or is not needed.
func (j *Judge) catchUp(line *client.Client, stale bool) {
	b, now := j.background, time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	check := now.Sub(b.checked) > checkEvery
	b.again = b.again || b.busy && stale
	if b.busy || !stale && !check || now.Sub(b.failed) < retryPause || b.ctx.Err() != nil {
		return
	}
	b.busy = true
	if check {
		b.checked = now
	}
	b.work.Go(func() {
		for {
			err := errPanicked
			j.guarded(func() { err = j.updateAndReport(line) })()
			if b.done(err) {
				return
			}
		}
	})
}

// done notes the result of a run, and reports whether no further run is due.
func (b *background) done(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	again := b.again && err == nil
	b.busy, b.again = again, false
	if err != nil {
		b.failed, b.checked = time.Now(), time.Time{}
	}
	return !again
}

var errPanicked = errors.New("it panicked")

// updateAndReport updates the policy, and reports all unjudged calls.
func (j *Judge) updateAndReport(line *client.Client) error {
	err := j.updatePolicy(j.background.ctx, line)
	for more := err == nil; more && j.background.ctx.Err() == nil; {
		more, err = j.reportUnjudged(j.background.ctx, line, "", schema.MaxUnjudged)
	}
	return err
}

// guarded returns f with a panic turned into a message: a runtime must not take a process that has
// answered for one that failed.
func (j *Judge) guarded(f func()) func() {
	return func() {
		defer func() {
			if p := recover(); p != nil {
				j.say("failed in background work: %v", p)
			}
		}()
		f()
	}
}

// updatePolicy gets the policy of the fabric, and prints what is wrong with it.
func (j *Judge) updatePolicy(ctx context.Context, line *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, backgroundTime)
	defer cancel()
	news, err := j.policy.fetch(ctx, line)
	if news != "" {
		j.say("%s", news)
	}
	if err != nil && refused(err) {
		j.say("%v", err)
	}
	return err
}

// A lockedWriter writes one message at a time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// say prints a message for people.
func (j *Judge) say(format string, args ...any) {
	fmt.Fprintf(j.link.Stderr, "agentshim: "+format+"\n", args...)
}
