package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// ConnectionPrefix begins the name of a worker's connection; the worker's id follows. When
// a connection closes, the broker finds the lost worker by this name.
const ConnectionPrefix = "worker:"

// A Service connects a worker to the bus. It receives batches and sends heartbeats.
type Service struct {
	w     *Worker
	nc    *nats.Conn
	out   *bus.Outlet // on nc
	face  micro.Service
	first []subscription // first contact of its pools
	own   []subscription // its own subjects
	stop  context.CancelFunc
	done  sync.WaitGroup
	// envelopes and rooms are used again: those of batches that were answered.
	envelopes bus.Envelopes
	rooms     sync.Pool // of *outcomes, empty

	mu       sync.Mutex    // guards what follows
	under    int           // batches that are not answered yet
	draining bool          // no batch is taken any more
	answered chan struct{} // closed when draining and nothing is under way
	idle     chan struct{} // closed when moving and nothing is under way; nil: it does not move
}

// outcomes are where those of one batch lie, and maxRoom bounds how many are kept room for.
type outcomes struct{ list []schema.Outcome }

const maxRoom = 64

// quick is how many batches that wait to be taken are as much as one under way: most take
// no longer than it does to bring them in.
const quick = 16

// Attach connects w to the bus, where it takes batches at once. Load a configuration first:
// without one, the worker answers every batch with the status stale.
func Attach(nc *nats.Conn, w *Worker) (*Service, error) {
	s := &Service{w: w, nc: nc, out: bus.NewOutlet(nc), answered: make(chan struct{})}
	if err := s.subscribe(); err != nil {
		s.unsubscribe()
		return nil, err
	}
	var err error
	s.face, err = micro.AddService(nc, micro.Config{
		Name: "hookfabric-worker", Version: schema.Release, Description: "Runs hooks",
		Metadata: map[string]string{"worker": w.Name()},
	})
	if err != nil {
		s.unsubscribe()
		return nil, fmt.Errorf("registering the worker's service: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.done.Go(func() { s.beat(ctx) })
	w.leaving.Store(func(nc *nats.Conn) { s.beside(func() { s.move(ctx, nc) }) })
	return s, nil
}

func (s *Service) subscribe() error {
	for _, pool := range s.w.opt.Pools {
		own, err := bus.RunSubject(pool, s.w.Name())
		if err != nil {
			return fmt.Errorf("serving the pool %q: %w", pool, err)
		}
		first, err := bus.FirstContactSubject(pool)
		if err != nil {
			return fmt.Errorf("serving the pool %q: %w", pool, err)
		}
		take := func(m *nats.Msg) { s.take(pool, m) }
		// A queue group of its own, so that a name given twice runs nothing twice.
		sub, err := s.nc.QueueSubscribe(own, bus.QueueWorkers, take)
		if err != nil {
			return fmt.Errorf("subscribing to %s: %w", own, err)
		}
		s.own = append(s.own, newSubscription(sub))
		if sub, err = s.nc.QueueSubscribe(first, bus.QueueWorkers, take); err != nil {
			return fmt.Errorf("subscribing to %s: %w", first, err)
		}
		s.first = append(s.first, newSubscription(sub))
	}
	return nil
}

func (s *Service) unsubscribe() {
	for _, sub := range slices.Concat(s.first, s.own) {
		_ = sub.Unsubscribe() // a closed connection has none
	}
}

// take receives one batch. Without a free slot it says so at once, so that the
// aggregator can ask another worker.
func (s *Service) take(pool string, m *nats.Msg) {
	if !bus.IsReply(m.Reply) {
		return // nobody to answer: it was not asked, only published
	}
	b, err := bus.ParseBatchMsg(m)
	if err != nil {
		s.reply(m, schema.BatchReply{Worker: s.w.Name(), Status: schema.StatusMalformed, Error: err.Error()})
		return
	}
	switch refused := s.enter(); {
	case refused != "":
		s.reply(m, schema.BatchReply{Worker: s.w.Name(), Status: refused})
	case !s.w.acquire():
		s.reply(m, schema.BatchReply{Worker: s.w.Name(), Status: schema.StatusBusy})
		s.leave()
	case s.w.inline(b):
		s.follow(1, m.Sub) // whatever else is, it takes no time
		s.answer(m, b, nil)
		s.leave()
	default:
		s.follow(len(s.w.slots), m.Sub)
		go s.run(pool, m, b)
	}
}

// enter counts a batch that is to be answered, unless none is taken, or none now.
func (s *Service) enter() (refused schema.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return schema.StatusDraining
	case s.w.moving.Load():
		return schema.StatusBusy
	}
	s.under++
	return ""
}

// follow has the pace hear how much there is to do with so many batches under way.
func (s *Service) follow(under int, from *nats.Subscription) {
	if p := s.w.opt.Pace; p != nil {
		there, _, _ := from.Pending() // none if it is closed
		p.Begun(int64(under + there/quick))
	}
}

// leave counts a batch as answered.
func (s *Service) leave() {
	left := s.left()
	if p := s.w.opt.Pace; p != nil {
		p.Ended(int64(left))
	}
}

// left is how many are under way when one was answered.
func (s *Service) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under--; s.draining && s.under == 0 {
		close(s.answered)
	}
	if s.under == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	return s.under
}

// refuse begins to take no batches, and reports how many are under way.
func (s *Service) refuse() int {
	s.w.draining.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining && s.under == 0 {
		close(s.answered)
	}
	s.draining = true
	return s.under
}

// run runs a batch in a slot that is taken, and lets the beats follow it.
func (s *Service) run(pool string, m *nats.Msg, b *schema.Batch) {
	p := &progress{pool: pool}
	s.w.mu.Lock()
	s.w.batches[b.Batch] = p
	s.w.mu.Unlock()
	defer s.leave()
	s.answer(m, b, p)
}

// answer runs a batch in a slot that is taken and replies. Its outcomes lie where those
// of others did before: nobody has them any more once they are sent.
func (s *Service) answer(m *nats.Msg, b *schema.Batch, p *progress) {
	room, ok := s.rooms.Get().(*outcomes)
	if !ok {
		room = new(outcomes)
	}
	b.Room = room.list
	r := s.w.run(context.Background(), b, p)
	s.reply(m, r)
	if p != nil {
		s.w.mu.Lock()
		delete(s.w.batches, b.Batch)
		s.w.mu.Unlock()
	}
	if clear(r.Outcomes); cap(r.Outcomes) <= maxRoom {
		room.list = r.Outcomes
		s.rooms.Put(room)
	}
}

func (s *Service) reply(m *nats.Msg, r schema.BatchReply) {
	e := s.envelopes.Take()
	defer s.envelopes.Put(e)
	data, err := e.JSON(&r)
	if err == nil {
		err = s.out.Publish(&bus.Message{Subject: m.Reply, Data: data})
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		if data, err = e.JSON(trimmed(r, s.nc.MaxPayload())); err == nil {
			err = s.out.Publish(&bus.Message{Subject: m.Reply, Data: data})
		}
	}
	if err != nil {
		s.w.opt.Logger.Warn("answering a batch failed", "error", err)
	}
}

// trimmed is a reply that is too large to send without what makes it so: its
// hooks have failed, and what they decided stands.
func trimmed(r schema.BatchReply, most int64) *schema.BatchReply {
	r.Outcomes = slices.Clone(r.Outcomes)
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		o.Result = *o.Result.Trimmed()
		if o.Kind == "" || o.Kind == schema.OK {
			o.Kind = schema.Errored
			o.Error = fmt.Sprintf("the answers of its batch are larger than the limit of %d bytes; answer less, or put the hooks into separate pools", most)
		}
	}
	return &r
}

// beat says how the worker is, every 250 ms, until ctx ends.
func (s *Service) beat(ctx context.Context) {
	t := time.NewTicker(schema.BeatEvery)
	defer t.Stop()
	for {
		s.beatOnce()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (s *Service) beatOnce() {
	for _, pool := range s.w.opt.Pools {
		subject, err := bus.BeatSubject(pool, s.w.Name())
		if err != nil {
			continue // Attach has refused such a pool
		}
		data, err := schema.Marshal(s.w.Beat(pool))
		if err == nil {
			err = s.nc.Publish(subject, data)
		}
		if err != nil {
			s.w.opt.Logger.Debug("sending a beat failed", "error", err)
		}
	}
}

// flushTime bounds how long the server may take to take over what was said.
const flushTime = 5 * time.Second

// Drain takes no new batches, finishes those under way, and leaves the bus. Until the last
// answer is sent, the worker answers new batches with the status draining: an unreachable
// worker would count as dead, and its batches as lost. Drain does not wait for handlers that
// ignore their deadline, because the worker has already answered for them.
func (s *Service) Drain(ctx context.Context) (err error) {
	under := s.refuse()
	s.beatOnce()
	s.end(ctx, s.first)
	select {
	case <-s.answered:
	case <-ctx.Done():
		err = fmt.Errorf("waiting for %d batches under way: %w", under, context.Cause(ctx))
	}
	s.end(ctx, s.own)
	s.stop()
	s.done.Wait()
	_ = s.face.Stop() // only withdraws the face; nothing depends on it
	s.unsubscribe()
	if !s.nc.IsConnected() {
		return err // nobody is there to hear the last answers
	}
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if flushErr := s.nc.FlushWithContext(ctx); err == nil && flushErr != nil && s.nc.IsConnected() {
		err = fmt.Errorf("sending the last answers: %w", flushErr)
	}
	return err
}

// inline reports whether every hook of b returns at once, so that b needs no
// goroutine of its own.
func (w *Worker) inline(b *schema.Batch) bool {
	v := (*w.versions.Load())[b.Version]
	if v == nil {
		return true // only the answer that it is stale
	}
	for _, i := range b.Hooks {
		if i < 0 || i >= len(v.hooks) || !v.hooks[i].inline || v.hooks[i].slots != nil {
			return false
		}
	}
	return true
}
