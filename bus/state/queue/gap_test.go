package queue_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

// A cable leads to a server, and can be cut.
type cable struct {
	s *server.Server

	mu    sync.Mutex // guards what follows
	cut   bool
	conns []net.Conn
}

var errCut = errors.New("the cable is cut")

func (c *cable) InProcessConn() (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, errCut
	}
	conn, err := c.s.InProcessConn()
	c.conns = append(c.conns, conn)
	return conn, err
}

// set cuts the cable, or mends it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// openVia opens a queue behind a cable.
func openVia(t *testing.T, c *cable) *queue.Queue {
	t.Helper()
	nc, err := bus.Connect(context.Background(), bus.Options{Name: "far", InProcess: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.Open(context.Background(), js, queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func TestABrokerThatWasCutOffDoesNotDeliverEndedItems(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, c := open(t, s, queue.Options{}), &cable{s: s}
		far := openVia(t, c)
		nameless := func(it *schema.Item) { it.Number = 0 }
		enqueue(t, q, item(1, matcher("Other"))) // does not fit, and so keeps the cursor from moving past what follows
		enqueue(t, q, item(2, nameless))
		enqueue(t, q, item(3, nameless, forSession))
		q.Seen("a", "s", "")
		synctest.Wait()
		c.set(true)
		takes(t, claim(t, q, "e1"), "text 2")
		ack(t, q, "e1")
		<-time.After(5 * time.Minute)
		takes(t, claim(t, q, "e2"))
		if err := q.Note(t.Context(), "a", "", func(p *schema.Peers) { p.VoteOnly = true }); err != nil { // says no more that 2 is done
			t.Error(err)
		}
		c.set(false)
		<-time.After(10 * time.Second)
		takes(t, claim(t, far, "e3"))
		takes(t, claim(t, far, "e4", tool("Other")), "text 1")
		if err := far.Ack(t.Context(), "a", []string{"e4"}); err != nil {
			t.Error(err)
		}
		<-time.After(10 * time.Second)
		if p := far.Pending("a", 0); p.Total != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// deleteBucket takes a bucket away with all that is in it.
func deleteBucket(t *testing.T, s *server.Server, name string) {
	t.Helper()
	if err := bustest.JetStream(t, s).DeleteKeyValue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func TestAQueueWhoseBucketWasRecreatedIsNotReady(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		for n := range uint64(10) {
			enqueue(t, q, item(n+1))
		}
		synctest.Wait()
		deleteBucket(t, s, queue.ItemBucket)
		next := open(t, s, queue.Options{})
		<-time.After(20 * time.Second)
		if err := q.Ready(); err == nil || next.Ready() != nil {
			t.Errorf("%v, %v", err, next.Ready())
		}
		if err := q.Note(t.Context(), "a", "", func(p *schema.Peers) { p.VoteOnly = true }); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("it writes a cursor by items that are no more: %v", err)
		}
	})
}

func TestCursorsDoNotTakeNewItemsForThoseOfADeletedBucket(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		q.Seen("a", "s", "")
		for n := range uint64(10) {
			enqueue(t, q, item(n+1))
		}
		enqueue(t, q, item(11, forSession))
		claim(t, q, "e1")
		enqueue(t, q, item(12, source("leased")))
		claim(t, q, "e2", acks("e1"))
		<-time.After(5 * time.Second)
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		deleteBucket(t, s, queue.ItemBucket)
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		for n := range uint64(20) {
			enqueue(t, q, item(n+1, source("x")))
			enqueue(t, other, item(n+1, source("y"), forAll))
		}
		synctest.Wait()
		if got := claim(t, other, "e3"); len(got.Items) != 40 {
			t.Errorf("%d of 40 went out", len(got.Items))
		}
	})
}
