package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/embedded"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// watch watches until stop is called, which returns what Watch did.
func watch(t *testing.T, c *state.Configs) (seen <-chan state.Update, stop func() error) {
	ch, ended := make(chan state.Update, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- c.Watch(ctx, func(u state.Update) { ch <- u }) }()
	return ch, func() error { cancel(); return <-ended }
}

// shown is an update in short.
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

// sees holds what a watcher was told since it was last asked.
func sees(t *testing.T, seen <-chan state.Update, want ...string) (last state.Update) {
	t.Helper()
	synctest.Wait()
	var got []string
	for len(seen) > 0 {
		last = <-seen
		got = append(got, shown(last))
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	return last
}

func TestWatchersSeeWhatIsActiveAndWhatIsProposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := stream(t, bustest.Start(t))
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

func TestOneWatchMayBeOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, stream(t, bustest.Start(t)))
		_, stop := watch(t, c)
		synctest.Wait()
		if err := c.Watch(t.Context(), func(state.Update) {}); err == nil || !strings.Contains(err.Error(), "open the bucket once more") {
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

// TestASilentWatcherIsNoHarm takes the watcher's consumers away, as a leader
// that leaves does.
func TestASilentWatcherIsNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := stream(t, bustest.Start(t))
		c := open(t, js)
		publish(t, c, config("c1"), 1, true)
		seen, stop := watch(t, c)
		sees(t, seen, "1 c1, keep [1]")
		deleteConsumers(t, js)
		publish(t, c, config("c2"), 2, true)
		<-time.After(6 * time.Second)
		sees(t, seen, "2 c2, keep [2 1]")
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
		t.Error("nobody watches")
	}
}

func TestAWatcherSurvivesJunkAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		js := stream(t, bustest.Start(t))
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
				t.Errorf("the log says %q %d times:\n%s", want, n, log.String())
			}
		}
	})
}

// put writes a key as nobody should.
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

func TestACandidateThatCanNotBeReadIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := stream(t, bustest.Start(t))
		c := open(t, js)
		seen, stop := watch(t, c)
		sees(t, seen, "nothing, keep []")
		put(t, js, "current", `{"version":0,"last":1,"proposed":{"version":1}}`)
		<-time.After(time.Second)
		if bad := sees(t, seen, "nothing, then the bad 1, keep [1]").Bad; bad == nil || !errors.Is(bad.Err, state.ErrNoVersion) {
			t.Errorf("a version that is not there: %+v", bad)
		}
		put(t, js, "v.1", "junk")
		<-time.After(6 * time.Second)
		if bad := sees(t, seen, "nothing, then the bad 1, keep [1]").Bad; bad == nil || !strings.Contains(bad.Err.Error(), "config version 1 can not be read") {
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
		js := stream(t, s)
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

func TestAWatcherOutlivesItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		where, js := moved(t, dir)
		c := open(t, js)
		publish(t, c, config("c1"), 1, true)
		seen, stop := watch(t, c)
		sees(t, seen, "1 c1, keep [1]")
		second := where.move(t, dir)
		publish(t, open(t, stream(t, second)), config("c2"), 2, true)
		<-time.After(11 * time.Second)
		sees(t, seen, "2 c2, keep [2 1]")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAWatcherNoticesAFabricMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		where, js := moved(t, t.TempDir())
		c := open(t, js)
		for i := range 3 {
			publish(t, c, config("old"+fmt.Sprint(i)), uint64(i+1), true)
		}
		old := c.FabricID()
		seen, stop := watch(t, c)
		sees(t, seen, "3 old2, keep [3 2 1]")
		anew := open(t, stream(t, where.move(t, t.TempDir())))
		<-time.After(11 * time.Second)
		sees(t, seen, "nothing, keep []")
		for i := range 3 { // the same numbers and revisions again
			publish(t, anew, config("new"+fmt.Sprint(i)), uint64(i+1), true)
			<-time.After(6 * time.Second)
		}
		last := sees(t, seen, "1 new0, keep [1]", "2 new1, keep [2 1]", "3 new2, keep [3 2 1]")
		if c.FabricID() == old || last.Active.Fabric != anew.FabricID() {
			t.Errorf("the fabric is %s, of the version %s; want %s", c.FabricID(), last.Active.Fabric, anew.FabricID())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAWatcherBelievesACopyOnlyAfterAWhile goes back to a data directory's
// earlier state, which also a leader says that is cut off.
func TestAWatcherBelievesACopyOnlyAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, backup := t.TempDir(), t.TempDir()
		where, js := moved(t, dir)
		c := open(t, js)
		publish(t, c, config("a"), 1, true)
		if err := where.Load().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		where.start(t, dir)
		publish(t, c, config("b"), 2, true)
		seen, stop := watch(t, c)
		sees(t, seen, "2 b, keep [2 1]")
		where.move(t, backup)
		<-time.After(6 * time.Second)
		if err := c.Confirm(t.Context()); err == nil || !strings.Contains(err.Error(), "older things than before") {
			t.Errorf("confirmed is what is old: %v", err)
		}
		sees(t, seen)
		<-time.After(20 * time.Second)
		sees(t, seen, "1 a, keep [1]")
		if err := errors.Join(c.Confirm(t.Context()), stop()); err != nil {
			t.Error(err)
		}
	})
}

// moving is a server that another one replaces.
type moving struct {
	atomic.Pointer[embedded.Server]
}

func (m *moving) InProcessConn() (net.Conn, error) { return m.Load().InProcessConn() }

// move stops the server and starts another one on the directory, a minute later.
func (m *moving) move(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	if err := m.Load().Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m.start(t, dir)
}

// start starts a server on the directory after a minute without one.
func (m *moving) start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	<-time.After(time.Minute)
	m.Store(bustest.StartWith(t, embedded.Options{Dir: dir}))
	<-time.After(time.Second) // for the connections to be made again
	return m.Load()
}

// moved is a server that will move, and a connection that goes with it.
func moved(t *testing.T, dir string) (*moving, jetstream.JetStream) {
	t.Helper()
	first, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var where moving
	where.Store(first)
	return &where, wherever(t, &where)
}

func wherever(t *testing.T, m nats.InProcessConnProvider) jetstream.JetStream {
	t.Helper()
	nc, err := bus.Connect(t.Context(), bus.Options{InProcess: m, Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
