package aggregator

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// tickEvery is the interval of checks for silent workers: several per beat.
const tickEvery = schema.BeatEvery / 5

// listen subscribes to everything but events: beats, disconnects, control.
func (a *Aggregator) listen() error {
	var err error
	if a.workers.beats, err = a.opt.Work.Subscribe(bus.BeatsWildcard, a.beat); err != nil {
		return fmt.Errorf("subscribing to heartbeats: %w", err)
	}
	if err := a.serveControl(); err != nil {
		return err
	}
	a.life.done.Go(a.tick)
	a.life.done.Go(func() { a.workers.reach.follow(a.life.ctx) })
	a.life.done.Go(func() { a.report.Feed.Run(a.life.ctx) })
	if a.opt.Memory.Rounds != nil {
		a.life.done.Go(a.keep)
	}
	return nil
}

// beat processes a worker's heartbeat. Its subject is the worker's identity.
func (a *Aggregator) beat(m *nats.Msg) {
	pool, worker, err := bus.ParseBeatSubject(m.Subject)
	if err != nil {
		a.opt.Logger.Debug("heartbeat on a subject that names no worker", "subject", m.Subject, "error", err)
		return
	}
	if a.opt.Local != nil && worker == a.opt.Local.Name() {
		return
	}
	var b schema.Beat
	if err := schema.Unmarshal(m.Data, &b); err != nil {
		a.opt.Logger.Warn("cannot read a heartbeat", "worker", worker, "error", err)
		return
	}
	if b.Capacity < 1 {
		a.opt.Logger.Warn("heartbeat of a worker without capacity", "worker", worker)
		return
	}
	b.Pool, b.Worker = pool, worker
	a.workers.members.Beat(&b)
}

// Gone reports that a worker's connection closed. The worker's calls in the pools end now; without
// pools, those in all pools.
func (a *Aggregator) Gone(worker string, pools ...string) {
	// The last heartbeat of the worker may still be on its way.
	if err := a.flush(a.life.ctx, a.opt.Work); err != nil {
		a.opt.Logger.Debug("a worker's last heartbeat may be lost", "worker", worker, "error", err)
	}
	a.workers.members.Gone(worker, pools...)
	a.workers.caller.dropRoutes(worker)
}

func (a *Aggregator) tick() {
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for {
		select {
		case <-a.life.ctx.Done():
			return
		case <-t.C:
			a.control.still.tick(time.Now())
			a.workers.members.Tick(tickEvery)
			a.workers.caller.sort() // late replies, for which no call waits
			a.tellRests(false)
		}
	}
}
