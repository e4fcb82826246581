package dispatch_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// act is what a hook does; the zero act does nothing, at once.
type act struct {
	takes time.Duration
	says  schema.Result
	kind  schema.OutcomeKind
}

// peer is a worker of a [world]. It runs scripted hooks one after the other, answers
// before the batch's deadline, and reports its batches in heartbeats.
type peer struct {
	w          *world
	pool, name string
	dead       atomic.Bool // it does not listen any more
	frozen     atomic.Bool // its process is stopped: it neither answers nor sends heartbeats
	mute       atomic.Bool // its heartbeats do not arrive
	forgets    atomic.Bool // its heartbeats name no batches

	mu       sync.Mutex // guards the fields below
	replies  []schema.BatchReply
	capacity int
	draining bool
	versions []uint64
	acts     map[string]act
	hand     map[string][]schema.Outcome // batches in progress, with their outcomes
	asked    []string                    // the hooks of each received batch
	inputs   map[string]string           // the tool input that each hook saw last
	most     int                         // most batches in progress at once
}

// peer adds a worker that has sent a heartbeat.
func (w *world) peer(pool, name string, capacity int) *peer {
	p := w.stranger(pool, name, capacity)
	p.beat()
	return p
}

// stranger adds a worker that has not sent a heartbeat yet.
func (w *world) stranger(pool, name string, capacity int) *peer {
	p := &peer{
		w: w, pool: pool, name: name, capacity: capacity, versions: []uint64{1},
		acts: map[string]act{}, hand: map[string][]schema.Outcome{}, inputs: map[string]string{},
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peers = append(w.peers, p)
	return p
}

func (p *peer) beat() {
	if p.dead.Load() || p.frozen.Load() || p.mute.Load() {
		return
	}
	p.mu.Lock()
	b := &schema.Beat{
		Pool: p.pool, Worker: p.name, Capacity: p.capacity, InFlight: len(p.hand),
		Draining: p.draining, Versions: p.versions,
	}
	for id, outcomes := range p.hand {
		if !p.forgets.Load() {
			b.Batches = append(b.Batches, schema.BatchProgress{Batch: id, Outcomes: slices.Clone(outcomes)})
		}
	}
	p.mu.Unlock()
	p.w.members.Beat(b)
}

// kill ends it, which is noticed at once.
func (p *peer) kill() {
	p.dead.Store(true)
	p.w.members.Gone(p.name)
}

// take receives a batch.
func (p *peer) take(ctx context.Context, b *schema.Batch) (schema.BatchReply, error) {
	p.mu.Lock()
	p.asked = append(p.asked, p.w.names(b.Hooks))
	if len(p.replies) > 0 {
		reply := p.replies[0]
		if len(p.replies) > 1 {
			p.replies = p.replies[1:]
		}
		p.mu.Unlock()
		reply.Worker = p.name
		return reply, nil
	}
	if len(p.hand) >= p.capacity {
		p.mu.Unlock()
		return schema.BatchReply{Worker: p.name, Status: schema.StatusBusy}, nil
	}
	p.hand[b.Batch] = nil
	p.most = max(p.most, len(p.hand))
	p.mu.Unlock()
	answer := make(chan schema.BatchReply, 1)
	go func() {
		reply := p.run(b)
		if !p.frozen.Load() && !p.dead.Load() {
			answer <- reply
		}
	}()
	select {
	case reply := <-answer:
		return reply, nil
	case <-ctx.Done():
		return schema.BatchReply{}, context.Cause(ctx)
	}
}

// run runs a batch until its deadline, less a margin.
func (p *peer) run(b *schema.Batch) schema.BatchReply {
	until := time.Now().Add(b.Left - schema.Margin(b.Left))
	e, err := schema.DecodeEvent(b.Body, b.Routing)
	if err != nil {
		p.finish(b.Batch)
		return schema.BatchReply{Worker: p.name, Status: schema.StatusMalformed, Error: err.Error()}
	}
	var outcomes []schema.Outcome
	for _, i := range b.Hooks {
		h := &p.w.hooks[i]
		o := p.ask(i, h, e, until)
		outcomes = append(outcomes, o)
		p.mu.Lock()
		p.hand[b.Batch] = outcomes
		p.mu.Unlock()
		part := dispatch.Settle(h, &o)
		if o.Kind == schema.LoadError || h.Mode != schema.Shadow && h.Event.Terminal(part.Decision) {
			break
		}
		if rw := part.Rewritten(h.Event); rw != nil {
			e.Apply(rw)
		}
	}
	p.finish(b.Batch)
	return schema.BatchReply{Worker: p.name, Outcomes: outcomes}
}

func (p *peer) finish(batch string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.hand, batch)
}

// ask runs one hook.
func (p *peer) ask(i int, h *schema.Hook, e *schema.Event, until time.Time) schema.Outcome {
	p.mu.Lock()
	a := p.acts[h.Name]
	p.inputs[h.Name] = string(e.ToolInput)
	p.mu.Unlock()
	o := schema.Outcome{Hook: i, Kind: a.kind, Result: a.says}
	limit := min(time.Until(until), h.Timeout.Std())
	if a.takes > limit {
		o = schema.Outcome{Hook: i, Kind: schema.Deadline}
	}
	select {
	case <-time.After(min(a.takes, limit)):
	case <-p.w.life.Done():
	}
	return o
}

// act scripts a hook on this worker.
func (p *peer) act(name string, a act) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acts[name] = a
}

// replying makes it answer the next batches with these replies; the last one is repeated.
// Without replies it runs batches again.
func (p *peer) replying(replies ...schema.BatchReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies = replies
}

// batches returns the received batches, each as the names of its hooks.
func (p *peer) batches() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *peer) saw(hook string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inputs[hook]
}

// local is a worker in the dispatcher's process.
type local struct {
	*peer
	slots chan struct{}
	full  atomic.Bool // it takes nothing, even with free slots
}

// local adds a local worker with that many slots to the world's dispatcher.
func (w *world) local(slots int) *local {
	l := &local{peer: w.stranger(schema.DefaultPool, "local", slots), slots: make(chan struct{}, slots)}
	l.mute.Store(true)
	l.dead.Store(true) // on the bus
	w.opt.Local = l
	w.build()
	return l
}

// Try runs a batch if a slot is free.
func (l *local) Try(_ context.Context, b *schema.Batch) (schema.BatchReply, bool) {
	if l.full.Load() {
		return schema.BatchReply{}, false
	}
	select {
	case l.slots <- struct{}{}:
	default:
		return schema.BatchReply{}, false
	}
	defer l.w.members.Freed(schema.DefaultPool)
	defer func() { <-l.slots }()
	l.mu.Lock()
	l.asked = append(l.asked, l.w.names(b.Hooks))
	if len(l.replies) > 0 {
		reply := l.replies[0]
		l.mu.Unlock()
		reply.Worker = l.name
		return reply, true
	}
	l.most = max(l.most, len(l.slots))
	l.mu.Unlock()
	return l.run(b), true
}

// callerFunc is a function that implements Caller.
type callerFunc func(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error)

// Call calls f.
func (f callerFunc) Call(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
	return f(ctx, pool, worker, b)
}

// loses is a bus that loses the first n batches silently.
func loses(n int32, next dispatch.Caller) dispatch.Caller {
	var sent atomic.Int32
	return callerFunc(func(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
		if sent.Add(1) > n {
			return next.Call(ctx, pool, worker, b)
		}
		<-ctx.Done()
		return schema.BatchReply{}, context.Cause(ctx)
	})
}

// callerOf is a bus whose workers refuse some batches.
func callerOf(says func(*schema.Batch) schema.Status, next dispatch.Caller) dispatch.Caller {
	return callerFunc(func(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
		if s := says(b); s != schema.StatusOK {
			return schema.BatchReply{Worker: worker, Status: s}, nil
		}
		return next.Call(ctx, pool, worker, b)
	})
}

// tryFunc is a function that implements Local.
type tryFunc func(b *schema.Batch) (schema.BatchReply, bool)

// Try calls f.
func (f tryFunc) Try(_ context.Context, b *schema.Batch) (schema.BatchReply, bool) { return f(b) }
