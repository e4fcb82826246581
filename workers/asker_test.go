package workers_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// asker sends batches like an aggregator.
type asker struct {
	t  *testing.T
	nc *nats.Conn
}

func newAsker(t *testing.T, s *server.Server) *asker {
	t.Helper()
	return &asker{t, bustest.Connect(t, s, "asker")}
}

// request sends m and waits for the reply; nil: no worker listens.
func (a *asker) request(m *nats.Msg) *nats.Msg {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	answer, err := a.nc.RequestMsgWithContext(ctx, m)
	if err != nil && !errors.Is(err, nats.ErrNoResponders) {
		a.t.Error(err)
	}
	return answer
}

// send sends m to a worker and waits for its reply.
func (a *asker) send(m *nats.Msg) (r schema.BatchReply) {
	a.t.Helper()
	answer := a.request(m)
	if answer == nil {
		a.t.Error("no worker takes batches there")
		return r
	}
	if err := schema.Unmarshal(answer.Data, &r); err != nil {
		a.t.Error(err)
	}
	return r
}

func (a *asker) ask(b *schema.Batch) schema.BatchReply {
	a.t.Helper()
	return a.send(bus.BatchMsg("hook.v1.run.p.w", b))
}

// async is ask with the reply on a channel.
func (a *asker) async(b *schema.Batch) chan schema.BatchReply {
	ch := make(chan schema.BatchReply, 1)
	go func() { ch <- a.ask(b) }()
	return ch
}

// beats collects the heartbeats of the worker "w".
func (a *asker) beats() (latest func() *schema.Beat, count func() int) {
	a.t.Helper()
	var mu sync.Mutex
	var all []*schema.Beat
	if _, err := a.nc.Subscribe("hook.v1.beat.p.w", func(m *nats.Msg) {
		b := new(schema.Beat)
		if err := schema.Unmarshal(m.Data, b); err != nil {
			a.t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, b)
	}); err != nil {
		a.t.Fatal(err)
	}
	synctest.Wait()
	latest = func() *schema.Beat {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return all[len(all)-1]
	}
	return latest, func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(all)
	}
}

// attach connects w to the bus until the test ends.
func attach(t *testing.T, s *server.Server, w *workers.Worker) *workers.Service {
	t.Helper()
	svc, err := workers.Attach(bustest.Connect(t, s, workers.ConnectionPrefix+w.Name()), w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := svc.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return svc
}
