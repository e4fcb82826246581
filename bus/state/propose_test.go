package state_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

func TestAProposalBecomesActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		v := propose(t, c, "a", state.Proposal{By: "b1", Note: "a.yaml"})
		if cur, err := c.Current(t.Context()); err != nil || cur.Version != 0 {
			t.Errorf("before the activation, active is %+v, %v", cur, err)
		}
		if cfg, err := c.Get(t.Context(), v); err != nil || cfg.Hooks[0].Name != "a" {
			t.Errorf("the proposed version: %+v, %v", cfg, err)
		}
		activate(t, c, v)
		activate(t, open(t, js), v) // it is active already
		publish(t, c, config("b"), 2, true)
		activate(t, c, v) // it was active
		got, err := c.Versions(t.Context())
		want := []schema.VersionInfo{{Version: 2, Hooks: 1}, {Version: 1, By: "b1", Note: "a.yaml", Hooks: 1}}
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(schema.VersionInfo{}, "At", "Digest")); d != "" || err != nil {
			t.Error(err, d)
		}
		if got[1].At.IsZero() || got[0].At.Before(got[1].At) {
			t.Errorf("the times of activation are %v and %v", got[1].At, got[0].At)
		}
	})
}

func TestTheActiveContentIsNotProposedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		publish(t, c, config("a"), 1, true)
		propose(t, c, "b", state.Proposal{})
		v, same, err := c.Propose(t.Context(), config("a"), state.Proposal{})
		if v != 1 || !same || err != nil {
			t.Errorf("the active content, while another version is proposed: %d, %v, %v", v, same, err)
		}
	})
}

func TestOnlyOneVersionIsProposedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c, other := open(t, js), open(t, js)
		first := propose(t, c, "a", state.Proposal{By: "b1"})
		_, _, err := other.Propose(t.Context(), config("b"), state.Proposal{By: "b2"})
		busy, ok := errors.AsType[*state.Busy](err)
		if !ok || *busy != (state.Busy{Version: first, By: "b1"}) || !strings.Contains(err.Error(), "proposed by b1") {
			t.Fatalf("while another one is proposed: %v", err)
		}
		_, _, err = other.Propose(t.Context(), config("b"), state.Proposal{Over: first + 7})
		if _, ok := errors.AsType[*state.Busy](err); !ok {
			t.Errorf("over a version that is not proposed: %v", err)
		}
		second := propose(t, other, "b", state.Proposal{By: "b2", Over: busy.Version})
		if err := c.Activate(t.Context(), first); !errors.Is(err, state.ErrMoved) {
			t.Errorf("activating the replaced version: %v", err)
		}
		if _, err := c.Get(t.Context(), first); !errors.Is(err, state.ErrNoVersion) {
			t.Errorf("the replaced version: %v", err)
		}
		activate(t, other, second)
		// A proposal over a version that has become active must not delete it.
		propose(t, c, "c", state.Proposal{Over: second})
		if cur, err := c.Current(t.Context()); err != nil || cur.Version != second {
			t.Errorf("the active version: %+v, %v", cur, err)
		}
	})
}

func TestAWithdrawnProposalIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		for _, version := range []uint64{1, 3} { // no proposal, and a version that never existed
			if err := c.Withdraw(t.Context(), version); err != nil {
				t.Errorf("withdrawing a missing version: %v", err)
			}
		}
		v := propose(t, c, "a", state.Proposal{})
		for range 2 {
			if err := c.Withdraw(t.Context(), v); err != nil {
				t.Error(err)
			}
		}
		if err := c.Activate(t.Context(), v); !errors.Is(err, state.ErrMoved) {
			t.Errorf("activating it: %v", err)
		}
		if _, err := c.Get(t.Context(), v); !errors.Is(err, state.ErrNoVersion) {
			t.Errorf("reading it: %v", err)
		}
		s, err := js.Stream(t.Context(), "KV_"+state.ConfigBucket)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.hook_config.v.*")); err != nil { // as if its marker had lapsed
			t.Fatal(err)
		}
		next := propose(t, c, "a", state.Proposal{})
		if next <= v {
			t.Errorf("version %d after %d was withdrawn", next, v)
		}
		activate(t, c, next)
		if err := c.Withdraw(t.Context(), next); err != nil {
			t.Error(err)
		}
		if cur, err := c.Current(t.Context()); err != nil || cur.Version != next {
			t.Errorf("withdrawing the active version: %+v, %v", cur, err)
		}
	})
}

func TestAProposalCanNameTheVersionThatItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		publish(t, c, config("a"), 1, true)
		publish(t, c, config("b"), 2, true)
		_, _, err := c.Propose(t.Context(), config("c"), state.Proposal{Base: 1})
		if !errors.Is(err, state.ErrMoved) || !strings.Contains(err.Error(), "version 2 is active, no longer 1") {
			t.Errorf("based on an old version: %v", err)
		}
		if v := propose(t, c, "c", state.Proposal{Base: 2}); v != 3 {
			t.Errorf("based on the active version: %d", v)
		}
	})
}

func TestTextsAboutAVersionAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		activate(t, c, propose(t, c, "a", state.Proposal{By: "b1", Note: strings.Repeat("ä", 1000)}))
		kept, err := c.Versions(t.Context())
		if err != nil || kept[0].Note != strings.Repeat("ä", 128) {
			t.Errorf("%+v, %v", kept, err)
		}
	})
}

// Several proposers propose, replace and activate until each was successful.
func TestNoProposalIsLostSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		seen, stop := watch(t, open(t, js))
		handles := []*state.Configs{open(t, js), open(t, js)}
		var all sync.WaitGroup
		for i := range state.HistoryConfigs {
			all.Go(func() { turn(t, handles[i%2], fmt.Sprint("c", i)) })
		}
		all.Wait()
		c := handles[0]
		kept, err := c.Versions(t.Context())
		if err != nil || len(kept) != state.HistoryConfigs {
			t.Fatalf("%+v, %v", kept, err)
		}
		names := map[string]bool{}
		for i, v := range kept {
			cfg, err := c.Get(t.Context(), v.Version)
			if err != nil || cfg.Hooks[0].Name != v.By || i > 0 && v.Version >= kept[i-1].Version {
				t.Errorf("%+v after %v: %+v, %v", v, kept[:i], cfg, err)
			}
			names[v.By] = true
		}
		if len(names) != state.HistoryConfigs {
			t.Errorf("only %v were active", names)
		}
		<-time.After(10 * time.Second)
		last := uint64(0)
		for len(seen) > 0 {
			if u := <-seen; u.Active != nil {
				if u.Active.Version < last || u.Bad != nil {
					t.Errorf("after %d a watcher sees %s", last, shown(u))
				}
				last = u.Active.Version
			}
		}
		if last != kept[0].Version {
			t.Errorf("the watcher ends with %d", last)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// turn makes a configuration of that name the active version, while others do the same.
func turn(t *testing.T, c *state.Configs, name string) {
	ctx, p := t.Context(), state.Proposal{By: name}
	for {
		v, same, err := c.Propose(ctx, config(name), p)
		if busy, ok := errors.AsType[*state.Busy](err); ok {
			if p.Over = 0; rand.N(4) == 0 {
				p.Over = busy.Version
			}
			<-time.After(rand.N(5 * time.Millisecond))
			continue
		}
		if err != nil || same {
			t.Errorf("%s: %d, %v, %v", name, v, same, err)
			return
		}
		if rand.N(4) == 0 {
			err = errors.Join(c.Withdraw(ctx, v), state.ErrMoved)
		} else {
			err = c.Activate(ctx, v)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, state.ErrMoved) {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}

// The test fills the bucket with all that it may hold, and a version that a dead proposer left.
func TestTheBucketHoldsTheLargestVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		body := strings.Repeat("x", state.MaxConfig)
		for i := range state.HistoryConfigs + 2 {
			put(t, js, fmt.Sprint("v.", i+10), body)
		}
		activate(t, c, propose(t, c, "small", state.Proposal{}))
	})
}

func TestAnEndedContextEndsAProposal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		where, js := moved(t, t.TempDir())
		c := open(t, js)
		if err := where.Load().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, _, err := c.Propose(ctx, config("a"), state.Proposal{})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "proposing the configuration") {
			t.Errorf("without a server: %v", err)
		}
		where.Store(bustest.Start(t)) // so that the connection can close
	})
}

func TestAFirstVersionReplacesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		first := state.Proposal{First: true}
		activate(t, c, propose(t, c, "a", first))
		if v, _, err := c.Propose(t.Context(), config("b"), first); !errors.Is(err, state.ErrMoved) {
			t.Errorf("a second first version is %d, %v", v, err)
		}
		if v, same, err := c.Propose(t.Context(), config("a"), first); v != 1 || !same || err != nil {
			t.Errorf("the same content: %d, %v, %v", v, same, err)
		}
	})
}
