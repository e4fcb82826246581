package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// watch watches until stop is called, which returns the error of Watch.
func watch(t *testing.T, c *state.Configs) (seen <-chan state.Update, stop func() error) {
	ch, ended := make(chan state.Update, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- c.Watch(ctx, func(u state.Update) { ch <- u }) }()
	return ch, func() error { cancel(); return <-ended }
}

// shown returns an update as short text.
func shown(u state.Update) string {
	s := "nothing"
	if u.Active != nil {
		s = fmt.Sprint(u.Active.Version, " ", u.Active.Hooks[0].Name)
	}
	if u.Candidate != nil {
		s += fmt.Sprint(", then ", u.Candidate.Version, " ", u.Candidate.Hooks[0].Name)
	}
	if u.Bad != nil {
		s += fmt.Sprint(", then the bad ", u.Bad.Version)
	}
	return fmt.Sprint(s, ", keep ", u.Keep)
}

// sees checks the updates since the last check.
func sees(t *testing.T, seen <-chan state.Update, want ...string) (last state.Update) {
	t.Helper()
	got, last := received(seen)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	return last
}

// seesActive is sees without updates that have a candidate, which a watcher may miss.
func seesActive(t *testing.T, seen <-chan state.Update, want ...string) (last state.Update) {
	t.Helper()
	got, last := received(seen)
	got = slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, ", then ") })
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	return last
}

// received returns the updates since the last call.
func received(seen <-chan state.Update) (all []string, last state.Update) {
	synctest.Wait()
	for len(seen) > 0 {
		last = <-seen
		all = append(all, shown(last))
	}
	return all, last
}

func TestWatchersSeeTheActiveAndTheProposedVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		seen, stop := watch(t, c)
		sees(t, seen, "nothing, keep []")
		propose(t, c, "a", state.Proposal{})
		first := sees(t, seen, "nothing, then 1 a, keep [1]")
		activate(t, c, 1)
		second := sees(t, seen, "1 a, keep [1]")
		if first.Candidate != second.Active || second.Active.Fabric != c.FabricID() || second.Fabric != c.FabricID() {
			t.Errorf("the candidate was read again, or is of the fabric %q", second.Active.Fabric)
		}
		propose(t, c, "b", state.Proposal{})
		sees(t, seen, "1 a, then 2 b, keep [2 1]")
		if err := c.Withdraw(t.Context(), 2); err != nil {
			t.Error(err)
		}
		if last := sees(t, seen, "1 a, keep [1]"); last.Active != second.Active {
			t.Error("the active version was read again")
		}
		for i, name := range []string{"c", "d", "e"} {
			publish(t, c, config(name), uint64(3+i), true)
			synctest.Wait()
		}
		late, stopLate := watch(t, open(t, js))
		sees(t, late, "5 e, keep [5 4 3]")
		<-time.After(time.Minute)
		sees(t, late)
		if err := errors.Join(stop(), stopLate()); err != nil {
			t.Error(err)
		}
	})
}

func TestOnlyOneWatchMayRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		_, stop := watch(t, c)
		synctest.Wait()
		if err := c.Watch(t.Context(), func(state.Update) {}); err == nil || !strings.Contains(err.Error(), "open the bucket again") {
			t.Errorf("a second one: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		seen, stop := watch(t, c)
		sees(t, seen, "nothing, keep []")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The test deletes the watcher's consumers, as a leader that stops does.
func TestAWatchWorksWithoutNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		publish(t, c, config("c1"), 1, true)
		seen, stop := watch(t, c)
		sees(t, seen, "1 c1, keep [1]")
		deleteConsumers(t, js)
		publish(t, c, config("c2"), 2, true)
		<-time.After(6 * time.Second)
		seesActive(t, seen, "2 c2, keep [2 1]")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func deleteConsumers(t *testing.T, js jetstream.JetStream) {
	s, err := js.Stream(t.Context(), "KV_"+state.ConfigBucket)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name := range s.ConsumerNames(t.Context()).Name() {
		if err := s.DeleteConsumer(t.Context(), name); err != nil {
			t.Error(err)
		}
		n++
	}
	if n == 0 {
		t.Error("there is no consumer")
	}
}

func TestAWatcherSurvivesJunkAndLogsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		js := bustest.JetStream(t, bustest.Start(t))
		c, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		publish(t, c, config("c1"), 1, true)
		seen, stop := watch(t, c)
		sees(t, seen, "1 c1, keep [1]")
		for _, junk := range []string{"{", `{"version":0}`, `{"version":9,"last":9,"kept":[{"version":9}]}`} {
			put(t, js, "current", junk)
			<-time.After(10 * time.Second)
			if err := c.Confirm(t.Context()); err == nil {
				t.Errorf("%s is confirmed", junk)
			}
		}
		sees(t, seen)
		put(t, js, "v.10", `{"hooks":[{"name":"x"}]}`)
		put(t, js, "current", `{"version":10,"last":10,"kept":[{"version":10}]}`)
		sees(t, seen, "10 x, keep [10]")
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"names no config version", "no such config version"} {
			if n := strings.Count(log.String(), want); n != 2 && n != 1 {
				t.Errorf("the log has %q %d times:\n%s", want, n, log.String())
			}
		}
	})
}

// put writes any value to a key.
func put(t *testing.T, js jetstream.JetStream, key, value string) {
	t.Helper()
	kv, err := js.KeyValue(t.Context(), state.ConfigBucket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnreadableCandidateIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		seen, stop := watch(t, c)
		sees(t, seen, "nothing, keep []")
		put(t, js, "current", `{"version":0,"last":1,"proposed":{"version":1}}`)
		<-time.After(time.Second)
		if bad := sees(t, seen, "nothing, then the bad 1, keep [1]").Bad; bad == nil || !errors.Is(bad.Err, state.ErrNoVersion) {
			t.Errorf("a missing version: %+v", bad)
		}
		put(t, js, "v.1", "junk")
		<-time.After(6 * time.Second)
		if bad := sees(t, seen, "nothing, then the bad 1, keep [1]").Bad; bad == nil || !strings.Contains(bad.Err.Error(), "config version 1 cannot be read") {
			t.Errorf("a version that is junk: %+v", bad)
		}
		<-time.After(time.Minute)
		sees(t, seen)
		put(t, js, "v.1", `{"hooks":[{"name":"x"}]}`)
		<-time.After(6 * time.Second)
		sees(t, seen, "nothing, then 1 x, keep [1]")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWatchEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		js := bustest.JetStream(t, s)
		seen, stop := watch(t, open(t, js))
		sees(t, seen, "nothing, keep []")
		js.Conn().Close()
		<-time.After(10 * time.Second)
		sees(t, seen)
		if err := stop(); !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("Watch ends with %v", err)
		}
	})
}
