package runnertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

const (
	// deadline is the first deadline of a handler that hangs.
	deadline = 200 * time.Millisecond
	// Patience is the time limit for something that should come at once.
	Patience = time.Minute
	// side is the number of concurrent calls.
	side = 32
)

func (s Suite) start(t *testing.T) workers.Runner {
	t.Helper()
	r := s.New(t)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func (s Suite) load(t *testing.T, r workers.Runner, h schema.Hook) workers.Handler {
	t.Helper()
	handler, err := r.Load(h, workers.Site{Dirs: s.Dirs})
	if err != nil {
		t.Fatalf("load %q: %v", h.Handler, err)
	}
	return handler
}

func ask(t *testing.T, h workers.Handler, want schema.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	got, err := h.Handle(ctx, Event("Bash"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer differs (-want +got):\n%s", diff)
	}
}

func (s Suite) answers(t *testing.T) {
	r := s.start(t)
	for _, c := range []struct {
		hook schema.Hook
		want schema.Result
	}{
		{s.Answers, schema.Allowed()},
		{s.Refuses, schema.Denied(Reason)},
		{s.Rewrites, schema.Rewritten(jsontext.Value(NewInput))},
		{s.Echoes, schema.Injected("Bash", schema.UserMessage)},
	} {
		if c.hook.Handler != "" {
			ask(t, s.load(t, r, c.hook), c.want)
		}
	}
}

func (s Suite) missing(t *testing.T) {
	h, err := s.start(t).Load(s.Missing, workers.Site{Dirs: s.Dirs})
	if err == nil || h != nil {
		t.Fatalf("it loaded: %v, %v", h, err)
	}
	if !strings.Contains(err.Error(), s.Missing.Handler) {
		t.Errorf("the error does not name %q: %v", s.Missing.Handler, err)
	}
}

func (s Suite) late(t *testing.T) {
	if s.Hangs == nil {
		return
	}
	r, l := s.start(t), NewLifeline(t)
	h := s.load(t, r, s.Hangs(t, l))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Handle(ctx, Event("Bash")); err == nil {
		t.Error("it answered")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-l.Held():
		t.Error("the handler was started")
	default:
	}
}

func (s Suite) parallel(t *testing.T) {
	if s.Echoes.Handler == "" {
		return
	}
	h := s.load(t, s.start(t), s.Echoes)
	var wg sync.WaitGroup
	for i := range side {
		wg.Go(func() {
			tool := fmt.Sprintf("tool-%d", i)
			got, err := h.Handle(t.Context(), Event(tool))
			if err != nil {
				t.Errorf("%s: %v", tool, err)
			} else if diff := cmp.Diff(schema.Injected(tool, schema.UserMessage), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tool, diff)
			}
		})
	}
	wg.Wait()
}

func (s Suite) failing(t *testing.T) {
	r := s.start(t)
	good := s.load(t, r, s.Answers)
	for _, hook := range []schema.Hook{s.Crashes, s.Floods, s.Junk, s.Unknown} {
		if hook.Handler == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), Patience)
		got, err := s.load(t, r, hook).Handle(ctx, Event("Bash"))
		switch {
		case err == nil:
			t.Errorf("%s answered: %+v", hook.Handler, got)
		case ctx.Err() != nil:
			t.Errorf("%s: only its deadline ended it: %v", hook.Handler, err)
		}
		cancel()
		ask(t, good, schema.Allowed())
	}
}

func (s Suite) deadline(t *testing.T) {
	r := s.start(t)
	for limit := deadline; limit < Patience; limit *= 2 {
		l := NewLifeline(t)
		expire(t, s.load(t, r, s.Hangs(t, l)), limit)
		select {
		case <-l.Held():
			l.awaitGone(t)
			return
		default: // it was not started in time, which proves nothing on a busy machine
		}
	}
	t.Fatalf("the handler was not started within %v", Patience/2)
}

// expire calls a handler that hangs, until its deadline.
func expire(t *testing.T, h workers.Handler, limit time.Duration) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	got, err := h.Handle(ctx, Event("Bash"))
	if err == nil {
		t.Errorf("it answered: %+v", got)
	}
	if took := time.Since(begin); took < limit || took > Patience {
		t.Errorf("it took %v", took)
	}
}

func (s Suite) cancelled(t *testing.T) {
	r, l := s.start(t), NewLifeline(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := hang(ctx, t, s.load(t, r, s.Hangs(t, l)))
	l.awaitHeld(t)
	ask(t, s.load(t, r, s.Answers), schema.Allowed())
	cancel()
	Await(t, failed, "the cancelled call to return")
	l.awaitGone(t)
}

func (s Suite) closing(t *testing.T) {
	r, l := s.start(t), NewLifeline(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := hang(ctx, t, s.load(t, r, s.Hangs(t, l)))
	l.awaitHeld(t)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	Await(t, failed, "the call to return")
	l.awaitGone(t)
}

// hang calls a handler that hangs; the channel is closed when it has returned.
func hang(ctx context.Context, t *testing.T, h workers.Handler) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if got, err := h.Handle(ctx, Event("Bash")); err == nil {
			t.Errorf("it answered: %+v", got)
		}
	}()
	return done
}

func (s Suite) closedTwice(t *testing.T) {
	r := s.start(t)
	ask(t, s.load(t, r, s.Answers), schema.Allowed())
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (s Suite) leaves(t *testing.T) {
	before := holdings()
	for range 3 {
		r := s.New(t)
		ask(t, s.load(t, r, s.Answers), schema.Allowed())
		if s.Crashes.Handler != "" {
			if _, err := s.load(t, r, s.Crashes).Handle(t.Context(), Event("Bash")); err == nil {
				t.Error("it did not crash")
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	before.awaitReturn(t)
}
