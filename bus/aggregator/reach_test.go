package aggregator_test

import (
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
)

// A thread is the way to a server in this process, which can be cut.
type thread struct {
	server *server.Server
	mu     sync.Mutex // guards the following fields
	down   bool
	conn   net.Conn
}

func (l *thread) InProcessConn() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errors.New("the way is cut")
	}
	conn, err := l.server.InProcessConn()
	l.conn = conn
	return conn, err
}

func (l *thread) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down = down; down {
		_ = l.conn.Close()
	}
}

// TestNoEventIsTakenWithoutTheConnectionToTheWorkers checks that an aggregator takes no event and
// sends nothing until its connection to the workers is restored, because another aggregator may
// take the event. A repeated event waits until then, and also until workers are known.
func TestNoEventIsTakenWithoutTheConnectionToTheWorkers(t *testing.T) {
	for name, h := range map[string]schema.Hook{"a hook that passes if it fails": hook("x", remote, idempotent, within(20*time.Second)), "a hook in this process": hook("x", idempotent)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bustest.Start(t)
				way := &thread{server: s}
				work, err := bus.Connect(t.Context(), bus.Options{InProcess: way})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(work.Close)
				f := startOn(t, s, aggregator.Options{Work: work}, library{"x": says(schema.Denied("no"))}, h)
				w := f.worker("w")
				way.cut(true)
				synctest.Wait()
				if !f.send(event(schema.PreToolUse)).nothing() {
					t.Error("an event was taken")
				}
				again := event(schema.PreToolUse)
				again.Subject += bus.AgainSuffix
				again.Header.Set(schema.HeaderAttempt, "2")
				asked := f.send(again)
				<-time.After(time.Second)
				way.cut(false)
				if h.Pool == "p" {
					for !work.IsConnected() {
						<-time.After(time.Millisecond)
					}
					<-time.After(100 * time.Millisecond) // workers say something at their own time
					w.beat(schema.Beat{Capacity: 9})
					b, m := w.batch()
					w.answer(b, m, schema.Denied("no"))
				}
				v, _ := asked.verdict()
				want(t, v, schema.Deny, "x:ok")
			})
		})
	}
}
