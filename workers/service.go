package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	out   *bus.Publisher // on nc
	face  micro.Service
	first []subscription // first contact of its pools
	own   []subscription // its own subjects
	stop  context.CancelFunc
	done  sync.WaitGroup
	// envelopes and buffers are reused after their batch was answered.
	envelopes bus.Envelopes
	buffers   sync.Pool // empty *outcomeBuffer values

	mu       sync.Mutex    // guards the fields below
	under    int           // number of unanswered batches
	draining bool          // no batch is taken any more
	answered chan struct{} // closed when draining and no batch is in progress
	idle     chan struct{} // closed when moving and no batch is in progress; nil: not moving
}

// outcomeBuffer is the memory for the outcomes of one batch. maxBuffer is the largest
// reused one, in hooks.
type outcomeBuffer struct{ list []schema.Outcome }

const maxBuffer = 64

// quick is how many received batches count as much as one in progress, because most take
// no longer than their receipt.
const quick = 16

// Attach connects w to the bus, where it takes batches at once. Load a configuration first:
// without one, the worker answers every batch with the status stale.
func Attach(nc *nats.Conn, w *Worker) (*Service, error) {
	s := &Service{w: w, nc: nc, out: bus.NewPublisher(nc), answered: make(chan struct{})}
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
	w.leaving.Store(func(nc *nats.Conn) { s.goBeside(func() { s.move(ctx, nc) }) })
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
		// The queue group ensures that two workers with one name do not both run a batch.
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
		_ = sub.Unsubscribe() // a closed connection has no subscription
	}
}

// take receives one batch. Without a free slot it answers at once, so that the aggregator
// can ask another worker.
func (s *Service) take(pool string, m *nats.Msg) {
	if !bus.IsReply(m.Reply) {
		return // published without a reply subject
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
		s.follow(1, m.Sub) // other answers take no time
		s.answer(m, b, nil)
		s.leave()
	default:
		s.follow(len(s.w.slots), m.Sub)
		go s.run(pool, m, b)
	}
}

// enter counts a batch in progress, or returns the status with which it is refused.
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

// follow reports to the pace how many batches are in progress and received.
func (s *Service) follow(under int, from *nats.Subscription) {
	if p := s.w.opt.Pace; p != nil {
		there, _, _ := from.Pending() // 0 if it is closed
		p.Begun(int64(under + there/quick))
	}
}

// leave counts a batch as answered.
func (s *Service) leave() {
	left := s.countAnswered()
	if p := s.w.opt.Pace; p != nil {
		p.Ended(int64(left))
	}
}

// countAnswered counts a batch as answered and returns how many are in progress.
func (s *Service) countAnswered() int {
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

// startDrain stops taking batches, and returns how many are in progress.
func (s *Service) startDrain() int {
	s.w.draining.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining && s.under == 0 {
		close(s.answered)
	}
	s.draining = true
	return s.under
}

// run runs a batch in a taken slot, and lets heartbeats report it.
func (s *Service) run(pool string, m *nats.Msg, b *schema.Batch) {
	p := &progress{pool: pool}
	s.w.mu.Lock()
	s.w.batches[b.Batch] = p
	s.w.mu.Unlock()
	defer s.leave()
	s.answer(m, b, p)
}

// answer runs a batch in a taken slot and replies. The buffer of its outcomes is reused,
// because no reference is left after they are sent.
func (s *Service) answer(m *nats.Msg, b *schema.Batch, p *progress) {
	buffer, ok := s.buffers.Get().(*outcomeBuffer)
	if !ok {
		buffer = new(outcomeBuffer)
	}
	b.Room = buffer.list
	r := s.w.run(context.Background(), b, p)
	s.reply(m, r)
	if p != nil {
		s.w.mu.Lock()
		delete(s.w.batches, b.Batch)
		s.w.mu.Unlock()
	}
	if clear(r.Outcomes); cap(r.Outcomes) <= maxBuffer {
		buffer.list = r.Outcomes
		s.buffers.Put(buffer)
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

// trimmed returns a reply that is small enough to send. The hooks with large answers
// fail, and their decisions stay.
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

// beat sends a heartbeat every 250 ms, until ctx ends.
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

// flushTime limits how long the server may take to accept sent messages.
const flushTime = 5 * time.Second

// Drain takes no new batches, finishes those under way, and leaves the bus. Until the last
// answer is sent, the worker answers new batches with the status draining: an unreachable
// worker would count as dead, and its batches as lost. Drain does not wait for handlers that
// ignore their deadline, because the worker has already answered for them.
func (s *Service) Drain(ctx context.Context) (err error) {
	under := s.startDrain()
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
	_ = s.face.Stop() // only stops the NATS service's description, on which nothing depends
	s.unsubscribe()
	if !s.nc.IsConnected() {
		return err // without a connection the last answers cannot arrive
	}
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if flushErr := s.nc.FlushWithContext(ctx); err == nil && flushErr != nil && s.nc.IsConnected() {
		err = fmt.Errorf("sending the last answers: %w", flushErr)
	}
	return err
}

// inline reports whether every hook of b returns at once, so that b needs no goroutine.
func (w *Worker) inline(b *schema.Batch) bool {
	v := (*w.versions.Load())[b.Version]
	if v == nil {
		return true // the answer is only that it is stale
	}
	for _, i := range b.Hooks {
		if i < 0 || i >= len(v.hooks) || !v.hooks[i].inline || v.hooks[i].slots != nil {
			return false
		}
	}
	return true
}

const (
	// defaultLinger is how long a version that was active is held after it was replaced.
	// A call passes through several pools with the version that it started with, while
	// several changes may follow.
	defaultLinger = 2 * time.Minute
	// maxLingering limits the number of such versions.
	maxLingering = 32
)

// drop drops all versions except those to keep, and those that calls may still use.
func (w *Worker) drop() {
	next, now := maps.Clone(*w.versions.Load()), time.Now()
	var lingering []uint64
	for n, v := range next {
		switch {
		case slices.Contains(w.kept, n):
		case v.lingers(now, w.opt.Linger):
			lingering = append(lingering, n)
		default:
			delete(next, n)
		}
	}
	slices.Sort(lingering)
	for len(lingering) > maxLingering {
		delete(next, lingering[0])
		lingering = lingering[1:]
	}
	w.replace(next)
	if len(lingering) > 0 {
		w.dropTimer.Reset(next[lingering[0]].until.Sub(now))
	}
}

// lingers reports whether a replaced version is still held. A version that was never
// active has no calls.
func (v *version) lingers(now time.Time, linger time.Duration) bool {
	if !v.served {
		return false
	}
	if v.until.IsZero() {
		v.until = now.Add(linger)
	}
	return now.Before(v.until)
}

// A subscription can be ended without losing received messages, whose senders would wait
// until their deadline.
type subscription struct {
	*nats.Subscription
	closed chan struct{}
}

func newSubscription(sub *nats.Subscription) subscription {
	s := subscription{sub, make(chan struct{})}
	sub.SetClosedHandler(func(string) { close(s.closed) })
	return s
}

// end handles all messages that were sent so far, and no later ones.
func (s subscription) end(ctx context.Context) {
	if !s.IsValid() || s.Drain() != nil {
		return // its connection is closed
	}
	select {
	case <-s.closed:
	case <-ctx.Done():
	}
}

// end ends subscriptions. Without a connection they receive nothing.
func (s *Service) end(ctx context.Context, subs []subscription) {
	if !s.nc.IsConnected() {
		return
	}
	var all sync.WaitGroup
	for _, sub := range subs {
		all.Go(func() { sub.end(ctx) })
	}
	all.Wait()
}
