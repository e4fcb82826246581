package freeze

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// tool is the tool of the calls, which no hook matches, and patience limits the time of one.
	tool     = "unmatched"
	patience = 10 * time.Second
	// dials is how many shims connect at a time.
	dials = 32
)

// A Call is one call with its answer or error.
type Call struct {
	Shim            int
	Asked, Answered time.Time
	Refused         bool
	Err             error
}

// Shims are connections of one agent each that ask, each at its own pace.
type Shims struct {
	clients []*client.Client
	agent   string // the start of their names
	every   time.Duration
	stop    context.CancelFunc
	asking  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	calls []Call     // since Take
}

// Connect connects one shim to each server, which does not ask yet.
func Connect(ctx context.Context, urls []string, agent string, every time.Duration) (*Shims, error) {
	s := &Shims{clients: make([]*client.Client, len(urls)), agent: agent, every: every, stop: func() {}}
	g, dialling := errgroup.WithContext(ctx)
	g.SetLimit(dials)
	for i, url := range urls {
		g.Go(func() (err error) {
			s.clients[i], err = client.Connect(dialling, client.Options{URL: url, Name: fmt.Sprintf("loadtest %s %d", agent, i)})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		s.Close()
		return nil, fmt.Errorf("connecting the shims: %w", err)
	}
	return s, nil
}

// Begin makes all of them ask until Close, also if earlier calls have no answer yet. Their
// first calls are spread over the interval, so that they never come all at once.
func (s *Shims) Begin(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	for i, c := range s.clients {
		s.asking.Go(func() {
			for wait := rand.N(s.every); load.Pause(ctx, wait); wait = s.every {
				s.asking.Go(func() { s.ask(ctx, c, i) })
			}
		})
	}
}

// ask makes one call.
func (s *Shims) ask(ctx context.Context, c *client.Client, i int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	one := Call{Shim: i, Asked: time.Now()}
	v, err := c.Ask(ctx, &schema.Event{
		HookType: schema.PreToolUse, AgentID: fmt.Sprintf("%s-%d", s.agent, i), SessionID: "freeze", Runtime: "generic",
		ToolName: tool, ToolInput: []byte(`{"command":"ls"}`),
	})
	one.Answered, one.Err = time.Now(), err
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // the run is over
	}
	one.Refused = err == nil && v.Frozen && v.Decision == schema.Deny
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, one)
}

// Take returns the calls that were answered since its last call.
func (s *Shims) Take() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.calls
	s.calls = nil
	return all
}

// all waits until every shim has had a call that was refused, or passed, and was asked
// after that time. It returns all calls that were answered until then.
func (s *Shims) all(ctx context.Context, refused bool, since time.Time) (calls []Call, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*patience+s.every, errors.New("not every shim had one in time"))
	defer cancel()
	missing := make(map[int]bool, len(s.clients))
	for i := range s.clients {
		missing[i] = true
	}
	for {
		more := s.Take()
		for _, c := range more {
			if c.Err == nil && c.Refused == refused && c.Asked.After(since) {
				delete(missing, c.Shim)
			}
		}
		if calls = append(calls, more...); len(missing) == 0 {
			return calls, nil
		}
		if !load.Pause(ctx, 10*time.Millisecond) {
			return calls, fmt.Errorf("waiting for a call of every shim: %d shims have none: %w", len(missing), context.Cause(ctx))
		}
	}
}

// Close ends all calls and connections.
func (s *Shims) Close() {
	s.stop()
	s.asking.Wait()
	for _, c := range slices.Backward(s.clients) {
		if c != nil {
			c.Close()
		}
	}
}
