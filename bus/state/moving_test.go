package state_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// moving is a server that can be replaced.
type moving struct {
	atomic.Pointer[server.Server]
}

func (m *moving) InProcessConn() (net.Conn, error) { return m.Load().InProcessConn() }

// move stops the server and starts another one on the directory, a minute later.
func (m *moving) move(t *testing.T, dir string) *server.Server {
	t.Helper()
	if err := m.Load().Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m.start(t, dir)
}

// start starts a server on the directory after a minute without one.
func (m *moving) start(t *testing.T, dir string) *server.Server {
	t.Helper()
	<-time.After(time.Minute)
	m.Store(bustest.StartWith(t, server.Options{Dir: dir}))
	<-time.After(time.Second) // until the connections are made again
	return m.Load()
}

// moved returns a server that can move, and a connection that follows it.
func moved(t *testing.T, dir string) (*moving, jetstream.JetStream) {
	t.Helper()
	first, err := server.Start(t.Context(), server.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var where moving
	where.Store(first)
	return &where, jetStreamAt(t, &where)
}

func jetStreamAt(t *testing.T, m nats.InProcessConnProvider) jetstream.JetStream {
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

// A gate is the network path to a server, which can be shut.
type gate struct {
	server *server.Server

	mu   sync.Mutex // guards the following fields
	shut bool
	open []net.Conn
}

func (g *gate) InProcessConn() (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, errors.New("there is no way")
	}
	conn, err := g.server.InProcessConn()
	g.open = append(g.open, conn)
	return conn, err
}

// set shuts the gate, which closes its connections, or opens it.
func (g *gate) set(t *testing.T, shut bool) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for _, conn := range g.open {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	g.open = nil
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
		publish(t, open(t, bustest.JetStream(t, second)), config("c2"), 2, true)
		<-time.After(11 * time.Second)
		seesActive(t, seen, "2 c2, keep [2 1]")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAWatcherNoticesARecreatedFabric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		where, js := moved(t, t.TempDir())
		c := open(t, js)
		for i := range 3 {
			publish(t, c, config("old"+fmt.Sprint(i)), uint64(i+1), true)
		}
		old := c.FabricID()
		seen, stop := watch(t, c)
		sees(t, seen, "3 old2, keep [3 2 1]")
		recreated := open(t, bustest.JetStream(t, where.move(t, t.TempDir())))
		<-time.After(11 * time.Second)
		sees(t, seen, "nothing, keep []")
		for i := range 3 { // the same numbers and revisions
			publish(t, recreated, config("new"+fmt.Sprint(i)), uint64(i+1), true)
			<-time.After(6 * time.Second)
		}
		last := seesActive(t, seen, "1 new0, keep [1]", "2 new1, keep [2 1]", "3 new2, keep [3 2 1]")
		if c.FabricID() == old || last.Active.Fabric != recreated.FabricID() {
			t.Errorf("the fabric is %s, of the version %s; want %s", c.FabricID(), last.Active.Fabric, recreated.FabricID())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A leader that is cut off returns an older state, too.
func TestAWatcherAcceptsARestoredDirectoryOnlyAfterAWhile(t *testing.T) {
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
		if err := c.Confirm(t.Context()); err == nil || !strings.Contains(err.Error(), "an older state than before") {
			t.Errorf("an old state is confirmed: %v", err)
		}
		sees(t, seen)
		<-time.After(20 * time.Second)
		sees(t, seen, "1 a, keep [1]")
		if err := errors.Join(c.Confirm(t.Context()), stop()); err != nil {
			t.Error(err)
		}
	})
}

// The test copies the files of a running server: they must have all acknowledged writes.
func TestVersionsSurviveAKilledServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, left := t.TempDir(), t.TempDir()
		where, js := moved(t, dir)
		c := open(t, js)
		l, _ := lease(t, c, state.Node{ID: "b1"})
		publish(t, c, config("a"), 1, true)
		v := propose(t, c, "b", state.Proposal{By: "b1"})
		l.Report(1, &schema.Candidate{Version: v})
		synctest.Wait()
		if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		second := bustest.StartWith(t, server.Options{Dir: left})
		reader := open(t, bustest.JetStream(t, second))
		wantNodes(t, reader, state.Node{ID: "b1", Active: 1, Candidate: &schema.Candidate{Version: v}})
		_, _, err := reader.Propose(t.Context(), config("c"), state.Proposal{})
		if busy, ok := errors.AsType[*state.Busy](err); !ok || busy.Version != v || busy.By != "b1" {
			t.Errorf("the proposed version: %v", err)
		}
		activate(t, reader, v)
		<-time.After(20 * time.Second) // the lease lapses
		wantNodes(t, reader)
		if err := where.Load().Close(t.Context()); err != nil {
			t.Error(err)
		}
		where.Store(second)
	})
}

func TestVersionsSurviveTheirServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		where, js := moved(t, dir)
		c := open(t, js)
		publish(t, c, config("a"), 1, true)
		v := propose(t, c, "b", state.Proposal{By: "b1"})
		where.move(t, dir)
		activate(t, c, v)
		kept, err := c.Versions(t.Context())
		if err != nil || !slices.EqualFunc(kept, []uint64{2, 1}, func(i schema.VersionInfo, v uint64) bool { return i.Version == v }) {
			t.Errorf("%+v, %v", kept, err)
		}
	})
}
