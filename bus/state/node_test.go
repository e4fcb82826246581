package state_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
)

func TestDeadBrokersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		reader := open(t, js)
		for _, n := range []state.Node{{ID: "b1", Embedded: true}, {ID: "b2"}} {
			l, _ := lease(t, open(t, js), n)
			if err := l.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		asked := 0
		err := reader.Forget(t.Context(), func(n state.Node) bool { asked++; return n.Embedded })
		if err != nil || asked != 2 {
			t.Errorf("%d brokers checked: %v", asked, err)
		}
		wantNodes(t, reader, state.Node{ID: "b2"})
		<-time.After(4 * time.Second) // a living broker renews its lease
		wantNodes(t, reader, state.Node{ID: "b1", Embedded: true}, state.Node{ID: "b2"})
	})
}

// The test renews the lease between the read and the deletion.
func TestALeaseThatIsRenewedIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		reader := open(t, js)
		l, _ := lease(t, open(t, js), state.Node{ID: "b1"})
		synctest.Wait()
		err := reader.Forget(t.Context(), func(state.Node) bool {
			l.Report(7, nil)
			synctest.Wait()
			return true
		})
		if err != nil {
			t.Error(err)
		}
		wantNodes(t, reader, state.Node{ID: "b1", Active: 7})
	})
}

func TestLeasesLapseAlthoughTheServerWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		where, js := moved(t, dir)
		dead, _ := lease(t, open(t, bustest.JetStream(t, where.Load())), state.Node{ID: "dead"})
		if err := dead.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		alive, _ := lease(t, open(t, js), state.Node{ID: "alive"})
		reader := open(t, bustest.JetStream(t, where.move(t, dir)))
		<-time.After(5 * time.Second)
		wantNodes(t, reader, state.Node{ID: "alive"})
		if !alive.Fresh(time.Now()) || dead.Fresh(time.Now()) {
			t.Error("a connected broker is not fresh, or a disconnected one is")
		}
	})
}

func TestTheSizeOfALeaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		reader := open(t, js)
		l, _ := lease(t, open(t, js), state.Node{ID: "b1"})
		c := schema.Candidate{Version: 2, Error: strings.Repeat("e", 1<<20), LoadErrors: map[string]string{}}
		for i := range 5000 {
			c.LoadErrors[fmt.Sprintf("hook-%04d", i)] = strings.Repeat("x", 100+i%2000)
		}
		l.Report(1, &c)
		synctest.Wait()
		nodes, err := reader.Nodes(t.Context())
		if err != nil || len(nodes) != 1 || nodes[0].Candidate == nil {
			t.Fatalf("%v, %v", nodes, err)
		}
		got := nodes[0].Candidate
		if n := len(got.LoadErrors); got.Version != 2 || len(got.Error) != 256 || n < 50 || n > 160 || got.LoadErrors["hook-0000"] == "" {
			t.Errorf("version %d, %d bytes of error, %d load errors", got.Version, len(got.Error), n)
		}
		if len(c.LoadErrors) != 5000 {
			t.Error("the caller's report was changed")
		}
	})
}

func TestAnUnreadableLeaseIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		put(t, js, "node.x", "junk")
		if _, err := c.Nodes(t.Context()); err == nil || !strings.Contains(err.Error(), "the lease node.x of the bucket hook_config cannot be read") {
			t.Errorf("error %v", err)
		}
	})
}

func TestReadingNodesFailsWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		js.Conn().Close()
		_, err := c.Nodes(t.Context())
		ferr := c.Forget(t.Context(), func(state.Node) bool { return true })
		if err == nil || ferr == nil {
			t.Errorf("Nodes: %v, Forget: %v", err, ferr)
		}
	})
}
