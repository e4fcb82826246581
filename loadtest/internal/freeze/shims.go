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
	// tool is the tool of the calls, and patience limits the time of one.
	tool     = "Bash"
	patience = 10 * time.Second
	// dials is how many shims connect at a time.
	dials = 32
)

// A call is one answered call.
type call struct {
	shim            int
	asked, answered time.Time
	refused         bool
	err             error
}

// shims are connections that ask, each at its own pace.
type shims struct {
	clients []*client.Client
	every   time.Duration
	stop    context.CancelFunc
	asking  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	calls []call     // since take
}

// connect connects n shims, which do not ask yet.
func connect(ctx context.Context, url string, n int, every time.Duration) (*shims, error) {
	s := &shims{clients: make([]*client.Client, n), every: every, stop: func() {}}
	g, dialling := errgroup.WithContext(ctx)
	g.SetLimit(dials)
	for i := range n {
		g.Go(func() (err error) {
			s.clients[i], err = client.Connect(dialling, client.Options{URL: url, Name: fmt.Sprintf("loadtest freeze %d", i)})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		s.close()
		return nil, fmt.Errorf("connecting the shims: %w", err)
	}
	return s, nil
}

// begin makes all of them ask until close. Their first calls are spread over the interval,
// so that they never come all at once.
func (s *shims) begin(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	for i, c := range s.clients {
		s.asking.Go(func() {
			for wait := rand.N(s.every); load.Pause(ctx, wait); {
				began := time.Now()
				s.ask(ctx, c, i)
				wait = max(time.Until(began.Add(s.every)), 0)
			}
		})
	}
}

// ask makes one call.
func (s *shims) ask(ctx context.Context, c *client.Client, i int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	one := call{shim: i, asked: time.Now()}
	v, err := c.Ask(ctx, &schema.Event{
		HookType: schema.PreToolUse, AgentID: fmt.Sprintf("shim-%d", i), SessionID: "freeze", Runtime: "generic",
		ToolName: tool, ToolInput: []byte(`{"command":"ls"}`),
	})
	one.answered, one.err = time.Now(), err
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // the run is over
	}
	one.refused = err == nil && v.Frozen && v.Decision == schema.Deny
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, one)
}

// take returns the calls that were answered since its last call.
func (s *shims) take() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.calls
	s.calls = nil
	return all
}

// all waits until every shim has had a call that was refused, or passed, and was asked
// after that time. It returns all calls that were answered until then.
func (s *shims) all(ctx context.Context, refused bool, since time.Time) (calls []call, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*patience+s.every, errors.New("not every shim had one in time"))
	defer cancel()
	missing := make(map[int]bool, len(s.clients))
	for i := range s.clients {
		missing[i] = true
	}
	for {
		more := s.take()
		for _, c := range more {
			if c.err == nil && c.refused == refused && c.asked.After(since) {
				delete(missing, c.shim)
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

func (s *shims) close() {
	s.stop()
	s.asking.Wait()
	for _, c := range slices.Backward(s.clients) {
		if c != nil {
			c.Close()
		}
	}
}
