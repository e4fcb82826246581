package queue_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// lossy is a JetStream that loses the answers to what is stored of cursors.
type lossy struct {
	jetstream.JetStream
	// lose is called in the place of each such write; nil: nothing is lost.
	lose func(store func())
}

func (l *lossy) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	lose := l.lose
	if lose == nil || !strings.Contains(m.Subject, queue.CursorBucket) {
		return l.JetStream.PublishMsg(ctx, m, opts...)
	}
	l.lose = nil
	lose(func() { _, _ = l.JetStream.PublishMsg(context.WithoutCancel(ctx), m, opts...) })
	return nil, context.DeadlineExceeded
}

// forgetful opens a queue that loses answers.
func forgetful(t *testing.T, s *server.Server) (*queue.Queue, *lossy) {
	t.Helper()
	js := &lossy{JetStream: bustest.JetStream(t, s)}
	q, err := queue.Open(t.Context(), js, queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	enqueue(t, q, item(1))
	q.Seen("a", "", "")
	synctest.Wait()
	return q, js
}

// fails makes a claim whose context ends before the answer.
func fails(t *testing.T, q *queue.Queue, event string) {
	t.Helper()
	c := &queue.Claim{Routing: schema.Routing{Agent: "a", ID: event}, Choose: func(p *schema.Peers, due []*schema.Item) []*schema.Item {
		p.Updates++
		return due
	}}
	if got, err := q.Claim(t.Context(), c); err == nil {
		t.Fatalf("it took %v", got)
	}
}

func TestAnUnansweredClaimIsReleasedAtOnce(t *testing.T) {
	for name, lose := range map[string]func(store func()){
		"it was stored":     func(store func()) { store() },
		"it was not stored": func(func()) {},
		"it is stored later, which is too late": func(store func()) {
			time.AfterFunc(time.Second, store)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server.Server) {
				q, js := forgetful(t, s)
				js.lose = lose
				began := time.Now()
				fails(t, q, "e1")
				synctest.Wait()
				got := claim(t, q, "e2")
				takes(t, got, "text 1")
				if took := time.Since(began); took > queue.LeaseFor/2 || got.Peers.Updates != 0 {
					t.Errorf("after %v, %+v", took, got.Peers)
				}
				<-time.After(2 * time.Second)
				takes(t, claim(t, q, "e3"))
			})
		})
	}
}

// What is given back is of the session that took it; what another one counted since stays.
func TestReleasingAClaimKeepsTheUpdatesOfOtherSessions(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, js := forgetful(t, s)
		other := open(t, s, queue.Options{})
		enqueue(t, other, answer("s2", "agent2", 1))
		js.lose = func(store func()) {
			store()
			synctest.Wait()
			claim(t, other, "e2", counting("s2"))
		}
		failing := queue.Claim{Routing: schema.Routing{Agent: "a", ID: "e1"}}
		counting("s1")(&failing)
		if _, err := q.Claim(t.Context(), &failing); err == nil {
			t.Fatal("it was stored")
		}
		synctest.Wait()
		if got := q.Peers("a", ""); got.Updates != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestARepeatedClaimIsNotReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, js := forgetful(t, s)
		other := open(t, s, queue.Options{})
		js.lose = func(store func()) {
			store()
			synctest.Wait()
			takes(t, claim(t, other, "e1"), "text 1")
		}
		fails(t, q, "e1")
		synctest.Wait()
		takes(t, claim(t, q, "e2"))
		ack(t, q, "e1")
		synctest.Wait()
		if left := pending(q); len(left) > 0 {
			t.Errorf("%v waits", left)
		}
	})
}

func TestARestartDoesNotExtendLeases(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1))
		takes(t, claim(t, q, "e1"), "text 1")
		<-time.After(queue.LeaseFor - 2*time.Second)
		restarted := open(t, s, queue.Options{})
		takes(t, claim(t, restarted, "e2"))
		<-time.After(4 * time.Second)
		takes(t, claim(t, restarted, "e3"), "text 1")
	})
}
