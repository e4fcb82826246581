package freezes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func open(t *testing.T, js jetstream.JetStream) *freezes.Freezes {
	t.Helper()
	f, err := freezes.Open(t.Context(), js, freezes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// standing are the patterns that are frozen, as f knows it.
func standing(f *freezes.Freezes) string {
	var all []string
	for _, z := range f.Now().Freezes {
		all = append(all, z.Agents)
	}
	return strings.Join(all, " ")
}

func TestAFreezeIsKnownEverywhereAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		here, there := open(t, js), open(t, js)
		var heard []string
		var mu sync.Mutex
		there.Use(func(s *freezes.State) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprint(len(s.Freezes)))
		})
		done, err := here.Freeze(t.Context(), schema.Freeze{Agents: " scout-* ", Reason: "odd", By: "me"}, nil)
		if err != nil || !done.Changed || done.Freeze.Agents != "scout-*" || done.State.Version == 0 || done.Freeze.Since.IsZero() {
			t.Fatalf("%+v, %v", done, err)
		}
		if standing(here) != "scout-*" {
			t.Error("who asked does not know it at once")
		}
		synctest.Wait() // no time passes
		if standing(there) != "scout-*" {
			t.Errorf("there: %q", standing(there))
		}
		if again, err := there.Freeze(t.Context(), schema.Freeze{Agents: "scout-*", Reason: "another"}, nil); err != nil || again.Changed || again.Freeze != done.Freeze {
			t.Errorf("%+v, %v", again, err)
		}
		if _, err := here.Freeze(t.Context(), schema.Freeze{Agents: schema.AllAgents}, nil); err != nil {
			t.Fatal(err)
		}
		later := open(t, js)
		if standing(later) != "scout-* *" {
			t.Errorf("after a restart: %q", standing(later))
		}
		ended, err := later.Thaw(t.Context(), "scout-*", nil)
		if err != nil || !ended.Changed || ended.Freeze != done.Freeze || len(ended.State.Freezes) != 1 {
			t.Errorf("%+v, %v", ended, err)
		}
		synctest.Wait()
		if standing(here) != "*" || standing(there) != "*" {
			t.Errorf("%q, %q", standing(here), standing(there))
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(heard, " "); got != "0 1 2 1" {
			t.Errorf("heard of %s", got)
		}
	})
}

func TestThawingWithoutAFreezeIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, bustest.JetStream(t, bustest.Start(t)))
		if _, err := f.Thaw(t.Context(), "a", nil); !errors.Is(err, freezes.ErrNotFrozen) || !strings.Contains(err.Error(), "there are no other freezes") {
			t.Error(err)
		}
		if _, err := f.Freeze(t.Context(), schema.Freeze{Agents: "a*"}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Thaw(t.Context(), "a1", nil); !errors.Is(err, freezes.ErrNotFrozen) || !strings.Contains(err.Error(), `"a*"`) {
			t.Error(err)
		}
		if standing(f) != "a*" {
			t.Error(standing(f))
		}
	})
}

// A request of then undoes nothing of now, but does no harm where what it wants is so.
func TestARequestForAnotherVersionChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, bustest.JetStream(t, bustest.Start(t)))
		must := func(c freezes.Change, err error) uint64 {
			t.Helper()
			if err != nil || !c.Changed {
				t.Fatalf("%+v, %v", c, err)
			}
			return c.State.Version
		}
		never := uint64(0)
		first := must(f.Freeze(t.Context(), schema.Freeze{Agents: "a"}, &never))
		if c, err := f.Freeze(t.Context(), schema.Freeze{Agents: "a"}, &never); err != nil || c.Changed || c.State.Version != first {
			t.Errorf("frozen already: %+v, %v", c, err)
		}
		thawed := must(f.Thaw(t.Context(), "a", &first))
		if _, err := f.Thaw(t.Context(), "a", &first); !errors.Is(err, freezes.ErrNotFrozen) {
			t.Errorf("thawed already: %v", err)
		}
		if _, err := f.Freeze(t.Context(), schema.Freeze{Agents: "a"}, &never); !errors.Is(err, freezes.ErrMoved) {
			t.Errorf("a freeze of then: %v", err)
		}
		again := must(f.Freeze(t.Context(), schema.Freeze{Agents: "a"}, &thawed))
		if _, err := f.Thaw(t.Context(), "a", &first); !errors.Is(err, freezes.ErrMoved) || !strings.Contains(err.Error(), fmt.Sprintf("version %d, and the request is about version %d", again, first)) {
			t.Errorf("a thaw of then: %v", err)
		}
		if standing(f) != "a" || f.Now().Version != again {
			t.Errorf("%q, version %d", standing(f), f.Now().Version)
		}
	})
}

// A broker with an old copy refuses a change once, and then has the leader's state.
func TestARefusedChangeUpdatesAnOldCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		behind, ahead := open(t, js), open(t, js)
		c, err := ahead.Freeze(t.Context(), schema.Freeze{Agents: "a"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		known := behind.Now().Version
		if _, err := behind.Freeze(t.Context(), schema.Freeze{Agents: "b"}, &known); known != c.State.Version && !errors.Is(err, freezes.ErrMoved) {
			t.Errorf("a freeze of version %d: %v", known, err)
		}
		if got := behind.Now().Version; got < c.State.Version {
			t.Errorf("it still knows version %d, and not %d", got, c.State.Version)
		}
	})
}

// Two operators at once undo nothing of each other.
func TestManyAtOnceLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		all := []*freezes.Freezes{open(t, js), open(t, js), open(t, js)}
		var ops sync.WaitGroup
		var mu sync.Mutex
		changed := map[string]int{}
		do := func(f *freezes.Freezes, agents string, thaw bool) {
			ops.Go(func() {
				var c freezes.Change
				var err error
				if thaw {
					c, err = f.Thaw(t.Context(), agents, nil)
				} else {
					c, err = f.Freeze(t.Context(), schema.Freeze{Agents: agents, By: "me"}, nil)
				}
				if err != nil && !(thaw && errors.Is(err, freezes.ErrNotFrozen)) {
					t.Errorf("%s: %v", agents, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if c.Changed {
					changed[fmt.Sprint(agents, thaw)]++
				}
			})
		}
		for i := range 5 {
			for _, f := range all {
				do(f, fmt.Sprint("agent-", i), false)
			}
		}
		ops.Wait()
		for i := range 2 {
			for _, f := range all {
				do(f, fmt.Sprint("agent-", i), true)
			}
			do(all[0], fmt.Sprint("more-", i), false)
		}
		ops.Wait()
		synctest.Wait()
		for _, f := range all {
			if n := len(f.Now().Freezes); n != 5 || strings.Contains(standing(f), "agent-0") {
				t.Errorf("%d stand: %s", n, standing(f))
			}
		}
		for what, n := range changed {
			if n != 1 {
				t.Errorf("%s was changed %d times", what, n)
			}
		}
		if len(changed) != 9 {
			t.Errorf("%v", changed)
		}
	})
}

func TestInvalidFreezesAreRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, bustest.JetStream(t, bustest.Start(t)))
		for name, z := range map[string]schema.Freeze{
			"no agents": {}, "no pattern": {Agents: "a["}, "a regular expression": {Agents: "a.*(b)"},
			"a long reason": {Agents: "a", Reason: strings.Repeat("r", schema.MaxFreezeReason+1)}, "a long name": {Agents: "a", By: strings.Repeat("b", schema.MaxFreezeBy+1)},
		} {
			if _, err := f.Freeze(t.Context(), z, nil); !errors.Is(err, freezes.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for i := range schema.MaxFreezes {
			if _, err := f.Freeze(t.Context(), schema.Freeze{Agents: fmt.Sprint("a", i)}, nil); err != nil {
				t.Fatal(i, err)
			}
		}
		if _, err := f.Freeze(t.Context(), schema.Freeze{Agents: "one more"}, nil); !errors.Is(err, freezes.ErrFull) {
			t.Error(err)
		}
		if n := len(f.Now().Freezes); n != schema.MaxFreezes {
			t.Errorf("%d stand", n)
		}
	})
}

func TestLongOnesAreRefusedBeforeShimsCouldNotKeepThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, bustest.JetStream(t, bustest.Start(t)))
		for i := 0; ; i++ {
			_, err := f.Freeze(t.Context(), schema.Freeze{Agents: fmt.Sprint("a", i), Reason: strings.Repeat("r", schema.MaxFreezeReason)}, nil)
			if errors.Is(err, freezes.ErrFull) && i > 10 && i < schema.MaxFreezes {
				return
			}
			if err != nil {
				t.Fatal(i, err)
			}
		}
	})
}

// Where nothing can be stored nothing is frozen, and who asked is told.
func TestWithoutAServerTheKnownFreezesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc := bustest.Connect(t, bustest.Start(t), "broker")
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, js)
		if _, err := f.Freeze(t.Context(), schema.Freeze{Agents: "a"}, nil); err != nil {
			t.Fatal(err)
		}
		nc.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := f.Freeze(ctx, schema.Freeze{Agents: "b"}, nil); !errors.Is(err, freezes.ErrUnavailable) {
			t.Error(err)
		}
		for _, lapsed := range []bool{false, true} {
			if err := f.Confirm(ctx, lapsed); err == nil {
				t.Errorf("it was confirmed without a leader (lapsed: %t)", lapsed)
			}
		}
		<-time.After(5 * time.Second)
		if standing(f) != "a" || f.Ready() == nil {
			t.Errorf("%q, %v", standing(f), f.Ready())
		}
	})
}

// Who missed a change is told by the leader.
func TestConfirmReadsMissedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		here, deaf := open(t, js), open(t, js)
		deaf.Close() // it hears of nothing any more
		if _, err := here.Freeze(t.Context(), schema.Freeze{Agents: "a"}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if standing(deaf) != "" {
			t.Fatal("it is not deaf")
		}
		if err := deaf.Confirm(t.Context(), false); err != nil || standing(deaf) != "a" {
			t.Errorf("%q, %v", standing(deaf), err)
		}
		store, err := js.KeyValue(t.Context(), freezes.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		for _, junk := range []string{"", "[]", "{}", `{"freezes":null}`} {
			if _, err := store.Put(t.Context(), "freezes", []byte(junk)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := here.Unreadable(); !errors.Is(err, freezes.ErrUnreadable) || standing(here) != "a" {
				t.Errorf("%q took something's place: %q, %v", junk, standing(here), err)
			}
			if err := here.Confirm(t.Context(), false); !errors.Is(err, freezes.ErrUnreadable) || standing(here) != "a" {
				t.Errorf("%q took something's place: %q, %v", junk, standing(here), err)
			}
		}
		if _, err := here.Freeze(t.Context(), schema.Freeze{Agents: "b"}, nil); !errors.Is(err, freezes.ErrUnavailable) || !strings.Contains(err.Error(), "delete the key, which thaws all agents") {
			t.Errorf("a freeze on top of it: %v", err)
		}
		if later := open(t, js); standing(later) != "a" || later.Unreadable() == nil {
			t.Errorf("after a restart: %q, %v", standing(later), later.Unreadable())
		}
		if err := store.Delete(t.Context(), "freezes"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if here.Unreadable() != nil || standing(here) != "" || here.Confirm(t.Context(), false) != nil {
			t.Errorf("deleted: %q, %v", standing(here), here.Unreadable())
		}
	})
}

// Without a readable state a broker must not start with an empty list of freezes.
func TestABrokerDoesNotStartWithUnreadableFreezes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		open(t, js).Close()
		store, err := js.KeyValue(t.Context(), freezes.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Put(t.Context(), "freezes", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := freezes.Open(t.Context(), js, freezes.Options{}); !errors.Is(err, freezes.ErrUnreadable) {
			t.Error(err)
		}
	})
}
