package shim

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// Daemon is the measurement of the daemon.
type Daemon struct {
	// Parallel is the number of hook processes at the same time, Together the time of all of them.
	Parallel int             `json:"parallel"`
	Together schema.Duration `json:"together"`
	// Calls is the number of calls through its socket after that.
	Calls     int             `json:"calls"`
	PerSecond float64         `json:"per_second"`
	P50       schema.Duration `json:"p50"`
	P99       schema.Duration `json:"p99"`
	// Before and After are its resident memory in bytes; 0: unknown.
	Before int64 `json:"rss_before"`
	After  int64 `json:"rss_after"`
}

const (
	// parallel is the number of hooks at the same time, askers that of callers in the long run.
	parallel = 200
	askers   = 16
)

// load sends the daemon parallel hooks, and then many calls.
func (s *session) load(ctx context.Context, calls int) (d Daemon, err error) {
	d.Parallel, d.Calls = parallel, calls
	if d.Together, err = s.together(ctx); err != nil {
		return d, err
	}
	d.Before = s.daemon.resident()
	first := s.asked + 1
	f, err := load.Calls(ctx, askers, calls, func(ctx context.Context, i int) error {
		event := strings.Replace(s.like(), "load-", fmt.Sprintf("many-%d-", first+i), 1)
		r, err := daemon.Hook(s.socket, &daemon.Request{Runtime: "generic", Payload: []byte(event)}, time.Now().Add(limit))
		if err != nil {
			return err
		}
		defer r.Written()
		if r.Exit != 0 || !strings.Contains(string(r.Stdout), `"continue"`) {
			return fmt.Errorf("%w: %s", errWrong, r.Stdout)
		}
		return nil
	})
	if err != nil {
		return d, fmt.Errorf("many calls: %w", err)
	}
	d.PerSecond, d.P50, d.P99 = f.PerSecond, f.P50, f.P99
	d.After = s.daemon.resident()
	return d, nil
}

// like returns an event of the same shape.
func (s *session) like() string { one := session{}; return one.event() }

// together starts many hooks at once.
func (s *session) together(ctx context.Context) (schema.Duration, error) {
	errs := make(chan error, parallel)
	var wait sync.WaitGroup
	began := time.Now()
	for i := range parallel {
		one := &session{asked: 1_000_000 + i}
		wait.Go(func() {
			_, _, err := one.once(ctx, s.hook("--socket", s.socket))
			errs <- err
		})
	}
	wait.Wait()
	took := time.Since(began)
	for range parallel {
		if err := <-errs; err != nil {
			return 0, fmt.Errorf("%d hooks at once: %w", parallel, err)
		}
	}
	return schema.Duration(took), nil
}

// resident returns the memory of the daemon.
func (p *daemonProcess) resident() int64 {
	u, _ := proc.UsageOf(p.cmd.Process.Pid)
	return int64(u.RSS)
}
