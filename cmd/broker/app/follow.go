package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// configTime bounds the wait for the first configuration.
const configTime = 30 * time.Second

// noHooks is the configuration of a new fabric.
const noHooks = "hooks: {}\n"

// readConfig reads the file of --config; nil: there is no such file.
func (b *Broker) readConfig() (*control.File, error) {
	if b.opt.Config == "" {
		return nil, nil
	}
	data, err := readFile(b.opt.Config)
	if err != nil {
		return nil, err
	}
	return toApply(b.opt.Config, data, "started with ")
}

// openState opens the configurations, and takes the lease that makes this broker known to the
// others.
func (b *Broker) openState(ctx context.Context) error {
	js, err := jetstream.New(b.work)
	if err != nil {
		return fmt.Errorf("reaching JetStream: %w", err)
	}
	if err := b.awaitReplicas(ctx, js); err != nil {
		return err
	}
	b.configs, err = state.OpenConfigs(ctx, js, state.ConfigOptions{Replicas: b.replicas(), Logger: b.log})
	if err != nil {
		return err
	}
	if b.stores() {
		// The previous process with this data directory has ended.
		if err := b.configs.Forget(ctx, func(n state.Node) bool { return n.Embedded && n.Server == b.serverName() }); err != nil {
			return err
		}
	}
	if b.lease, err = b.configs.Lease(state.Node{ID: b.name, Embedded: b.stores(), Server: b.serverName()}); err != nil {
		return err
	}
	b.stack.Push("lease", b.lease.Close)
	b.lease.Realm(b.realmUnreadable)
	b.followed = make(chan error, 1)
	b.stack.Push("configuration", b.stopFollowing)
	return nil
}

// follow applies the file of --config, and then uses each configuration that becomes active. It
// returns when a configuration is in use, because only then the broker accepts events.
func (b *Broker) follow(ctx context.Context, file *control.File) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	seen, active := make(chan error, 1), make(chan error, 1)
	b.unfollow = stop
	go func() {
		err := b.configs.Watch(watching, func(u state.Update) {
			err := b.take(u)
			offer(seen, nil)
			if u.Active != nil {
				offer(active, err)
			}
		})
		if err != nil {
			b.log.Error("this broker no longer follows the configuration", "error", err)
		}
		b.followed <- err
	}()
	if _, err := b.await(ctx, seen); err != nil {
		return err
	}
	if err := b.applyFirst(ctx, file); err != nil {
		return err
	}
	unusable, err := b.await(ctx, active)
	if err := errors.Join(err, unusable); err != nil {
		return err
	}
	return b.attachWorker()
}

// await waits for the result of an update.
func (b *Broker) await(ctx context.Context, results <-chan error) (result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, configTime, errors.New("no configuration arrived within 30 s; check that JetStream is healthy"))
	defer cancel()
	select {
	case result = <-results:
		return result, nil
	case err := <-b.followed:
		b.followed <- nil
		return nil, fmt.Errorf("following the configuration: %w", err)
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the configuration: %w", context.Cause(ctx))
	}
}

// stopFollowing ends the goroutine of follow.
func (b *Broker) stopFollowing(context.Context) error {
	if b.unfollow == nil {
		return nil // the start failed before
	}
	b.unfollow()
	return <-b.followed
}

// stopRunners ends the worker. It stops following first: a closed worker cannot load a candidate,
// and the other brokers would take that for a refusal.
func (b *Broker) stopRunners(context.Context) error {
	if b.unfollow != nil {
		b.unfollow()
	}
	return b.worker.Close()
}

// offer replaces the value in ch, whose capacity is 1. Only one goroutine may offer.
func offer[T any](ch chan T, v T) {
	select {
	case <-ch:
	default:
	}
	ch <- v
}

// applyFirst applies the file of --config, or makes the first configuration of a new fabric. A
// handler that cannot be loaded does not stop the start: calls of its hooks are denied.
func (b *Broker) applyFirst(ctx context.Context, file *control.File) error {
	if file == nil {
		file = &control.File{Text: noHooks, Note: "a new fabric", First: true}
	}
	file.Force, file.AtOnce, file.Alone = true, true, !b.opt.Replace
	answer, err := b.agg.Apply(ctx, file)
	if err != nil {
		return err
	}
	for _, w := range answer.Warnings {
		b.log.Warn("configuration", "warning", w)
	}
	for _, p := range answer.Problems {
		if p.Node != b.name { // this node's worker has logged its own
			b.log.Warn("another node cannot load a handler", "node", p.Node, "hook", p.Hook, "error", p.Error)
		}
	}
	if answer.Refused {
		return fmt.Errorf("not every broker of the fabric can use %s: %v", b.opt.Config, answer.Problems)
	}
	return nil
}

// take uses the active configuration, prepares the candidate, and reports to the other brokers.
func (b *Broker) take(u state.Update) error {
	err := b.activate(u.Active)
	report := b.reports.next()
	loaded := func(c *schema.Candidate) {
		c = b.consider(u.Candidate, c)
		report(func() { b.lease.Report(b.agg.Version(), c) })
	}
	if b.worker != nil {
		b.worker.Take(u, loaded)
	} else {
		loaded(candidateOf(u))
	}
	return err
}

// latest drops reports of all turns but the newest: an old candidate may finish loading after the
// next one was reported.
type latest struct {
	mu   sync.Mutex
	turn uint64 // the newest; guarded by mu
}

// next begins a turn. The function that it returns calls say, unless another turn has begun.
func (l *latest) next() func(say func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	turn := l.turn
	return func(say func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if turn == l.turn {
			say()
		}
	}
}

// activate loads a version into the worker before calls can use it.
func (b *Broker) activate(cfg *schema.Config) error {
	if cfg == nil || cfg == b.active {
		return nil
	}
	if b.worker != nil {
		b.worker.Prepare(*cfg)
	}
	if err := b.agg.Activate(*cfg); err != nil {
		b.log.Error("this broker cannot use the active configuration and answers no call until another version is active", "version", cfg.Version, "error", err)
		return err
	}
	b.active = cfg
	b.log.Info("configuration active", "version", cfg.Version, "hooks", cfg.HookCount())
	if lacksPresetHooks(cfg) {
		b.log.Warn("an earlier release applied the configuration, and its presets had no hooks: queued messages stay undelivered until you apply it again", "version", cfg.Version)
	}
	return nil
}

// lacksPresetHooks reports whether a configuration names presets but has neither their hooks nor
// replacements.
func lacksPresetHooks(cfg *schema.Config) bool {
	return len(cfg.Presets) > 0 && !slices.ContainsFunc(cfg.Hooks, func(h schema.Hook) bool { return h.Preset != "" || h.Stage() })
}

// candidateOf returns the report of a broker without a worker.
func candidateOf(u state.Update) *schema.Candidate {
	switch {
	case u.Candidate != nil:
		return &schema.Candidate{Version: u.Candidate.Version}
	case u.Bad != nil:
		return &schema.Candidate{Version: u.Bad.Version, Error: u.Bad.Err.Error()}
	}
	return nil
}

// consider adds the aggregator's report on a candidate to the worker's.
func (b *Broker) consider(cfg *schema.Config, c *schema.Candidate) *schema.Candidate {
	if cfg == nil || c == nil {
		return c
	}
	failed, err := b.agg.Prepare(*cfg)
	if err == nil && len(failed) == 0 {
		return c
	}
	both := *c
	if err != nil {
		both.Error = err.Error()
	}
	both.LoadErrors = maps.Clone(c.LoadErrors)
	if both.LoadErrors == nil {
		both.LoadErrors = make(map[string]string)
	}
	maps.Copy(both.LoadErrors, failed)
	return &both
}

// attachWorker connects the worker to the bus, for the other brokers.
func (b *Broker) attachWorker() error {
	if b.worker == nil {
		return nil
	}
	svc, err := workers.Attach(b.work, b.worker)
	if err != nil {
		return err
	}
	b.service = svc
	return nil
}
