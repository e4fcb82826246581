package decide_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// hung is a server that accepts connections and sends nothing.
type hung struct{ dials atomic.Int64 }

func (h *hung) InProcessConn() (net.Conn, error) {
	h.dials.Add(1)
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return near, nil
}

// All goroutines that wait for one attempt to connect share its result. None of them starts
// another one.
func TestManyAgentsWaitForOneAttempt(t *testing.T) {
	within(t, func(w *world) {
		h := &hung{}
		var to said
		link := w.link(&to)
		link.InProcess = h
		j := decide.NewResident(link)
		defer j.Close()
		began := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
				defer cancel()
				if got := j.Ask(ctx, calls("Read")); !errors.Is(got.Unjudged, client.ErrUnreachable) {
					t.Errorf("%+v", got)
				}
			})
		}
		all.Wait()
		if took, n := time.Since(began), h.dials.Load(); n != 1 || took > 5*time.Second {
			t.Errorf("%d attempts in %s", n, took)
		}
	})
}

// A question with a short time limit does not end the attempt for questions with more time.
func TestWhoHasLittleTimeSpoilsNothingForOthers(t *testing.T) {
	within(t, func(w *world) {
		h := &hung{}
		var to said
		link := w.link(&to)
		link.InProcess = h
		j := decide.NewResident(link)
		defer j.Close()
		var all sync.WaitGroup
		for _, within := range []time.Duration{50 * time.Millisecond, time.Second, time.Minute} {
			all.Go(func() {
				began := time.Now()
				ctx, cancel := context.WithTimeout(w.t.Context(), within)
				defer cancel()
				got := j.Ask(ctx, calls("Read"))
				if took := time.Since(began); got.Unjudged == nil || took >= within {
					t.Errorf("within %s: %v, after %s", within, got.Unjudged, took)
				}
			})
		}
		all.Wait()
		if n := h.dials.Load(); n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
}

// stuck is a connection to a server that stops reading at some moment.
type stuck struct {
	net.Conn

	frozen *atomic.Bool
	melt   chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	if s.frozen.Load() {
		<-s.melt
		return 0, net.ErrClosed
	}
	return s.Conn.Write(b)
}

type freezing struct {
	nats.InProcessConnProvider
	frozen atomic.Bool
	melt   chan struct{}
}

func (f *freezing) InProcessConn() (net.Conn, error) {
	c, err := f.InProcessConnProvider.InProcessConn()
	return stuck{Conn: c, frozen: &f.frozen, melt: f.melt}, err
}

// A server that has stopped reads nothing, so that each write to it blocks. The judge answers all
// the same, and refuses guarded calls. The test uses no bubble, because time stops in a bubble while
// a goroutine waits for a lock.
func TestAServerThatReadsNoMoreKeepsNoAnswerBack(t *testing.T) {
	w := &world{t: t, server: bustest.Start(t), state: t.TempDir()}
	w.begin("f-1", 1)
	f := &freezing{InProcessConnProvider: w.server, melt: make(chan struct{})}
	var to said
	link := w.link(&to)
	link.InProcess = f
	j := decide.NewResident(link)
	defer j.Close()
	ask := func(tool string, within time.Duration) decide.Judgement {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		q := calls(tool)
		q.Event.ToolInput = []byte(`{"x":"` + strings.Repeat("x", 200<<10) + `"}`)
		return j.Ask(ctx, q)
	}
	ask("Read", 20*time.Second)
	w.wants("Read", schema.None, "") // so that the policy is known
	f.frozen.Store(true)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := ask("Bash", time.Second); got.Verdict.Decision != schema.Deny {
				t.Errorf("%q: %v", got.Verdict.Decision, got.Unjudged)
			}
		})
	}
	all.Wait() // while the server reads nothing
	close(f.melt)
}
