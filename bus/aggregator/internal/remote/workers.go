// Package remote reaches the workers over the bus. It follows their heartbeats, sends batches to
// them, and knows whether the connection to them is up.
package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// TickEvery is the interval of checks for silent workers: several per beat.
const TickEvery = schema.BeatEvery / 5

// Options are the parameters of [New].
type Options struct {
	Conn *nats.Conn
	// Local is the id of the worker in this process, whose beats on the bus are for the others.
	Local string
	// Queue bounds the calls that wait for a worker, per pool.
	Queue int
	// Late is called with a batch that was answered after its call was given up.
	Late   func(*schema.Batch)
	Logger *slog.Logger
}

// Workers are the workers on the bus.
type Workers struct {
	Members *dispatch.Members

	*caller
	reach

	opt   Options
	beats *nats.Subscription
}

// New makes Workers. [Workers.Listen] begins to follow them.
func New(opt Options) (*Workers, error) {
	c, err := newCaller(opt.Conn, opt.Late)
	if err != nil {
		return nil, err
	}
	members := dispatch.NewMembers(opt.Queue)
	members.Expect()
	return &Workers{Members: members, caller: c, reach: reach{nc: opt.Conn, back: members.Expect}, opt: opt}, nil
}

// Listen begins to follow the heartbeats of workers.
func (w *Workers) Listen() (err error) {
	if w.beats, err = w.opt.Conn.Subscribe(bus.BeatsWildcard, w.beat); err != nil {
		return fmt.Errorf("subscribing to heartbeats: %w", err)
	}
	return nil
}

// Stop reverses New and Listen.
func (w *Workers) Stop() {
	for _, s := range []*nats.Subscription{w.beats, w.replied} {
		_ = s.Unsubscribe() // the connection may be closed already
	}
}

// Tick looks for silent workers and late replies, for which no call waits.
func (w *Workers) Tick() {
	w.Members.Tick(TickEvery)
	w.sort()
}

// beat processes a worker's heartbeat. Its subject is the worker's identity.
func (w *Workers) beat(m *nats.Msg) {
	pool, worker, err := bus.ParseBeatSubject(m.Subject)
	if err != nil {
		w.opt.Logger.Debug("heartbeat on a subject that names no worker", "subject", m.Subject, "error", err)
		return
	}
	if worker == w.opt.Local {
		return
	}
	var b schema.Beat
	if err := schema.Unmarshal(m.Data, &b); err != nil {
		w.opt.Logger.Warn("cannot read a heartbeat", "worker", worker, "error", err)
		return
	}
	if b.Capacity < 1 {
		w.opt.Logger.Warn("heartbeat of a worker without capacity", "worker", worker)
		return
	}
	b.Pool, b.Worker = pool, worker
	w.Members.Beat(&b)
}

// Gone reports that a worker's connection closed. The worker's calls in the pools end now; without
// pools, those in all pools.
func (w *Workers) Gone(ctx context.Context, worker string, pools ...string) {
	// The last heartbeat of the worker may still be on its way.
	if err := Flush(ctx, w.opt.Conn); err != nil {
		w.opt.Logger.Debug("a worker's last heartbeat may be lost", "worker", worker, "error", err)
	}
	w.Members.Gone(worker, pools...)
	w.dropRoutes(worker)
}

// flushTime bounds how long a flush waits for the server.
const flushTime = 5 * time.Second

// Flush waits until the server has received everything that the connections sent.
func Flush(ctx context.Context, all ...*nats.Conn) error {
	var errs []error
	for _, nc := range all {
		ctx, cancel := context.WithTimeout(ctx, flushTime)
		if err := nc.FlushWithContext(ctx); err != nil && !nc.IsClosed() {
			errs = append(errs, fmt.Errorf("flushing to the server: %w", err))
		}
		cancel()
	}
	return errors.Join(errs...)
}
