package shim

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/schema"
)

// Daemon is what the daemon takes.
type Daemon struct {
	// Parallel is how many hooks, as processes, asked at the same time, and Together how long all of
	// them took.
	Parallel int             `json:"parallel"`
	Together schema.Duration `json:"together"`
	// Calls went over its socket after that, PerSecond of them, with these times each.
	Calls     int             `json:"calls"`
	PerSecond float64         `json:"per_second"`
	P50       schema.Duration `json:"p50"`
	P99       schema.Duration `json:"p99"`
	// Before and After are its resident memory in bytes; 0: this system does not tell.
	Before int64 `json:"rss_before"`
	After  int64 `json:"rss_after"`
}

// askers is how many ask the daemon at the same time for the long run.
const askers = 16

// load gives the daemon hooks side by side, and then many calls.
func (s *session) load(ctx context.Context, calls int) (d Daemon, err error) {
	d.Parallel, d.Calls = parallel, calls
	if d.Together, err = s.together(ctx); err != nil {
		return d, err
	}
	d.Before = resident(s.daemon.cmd.Process.Pid)
	first := s.asked + 1
	f, err := measure.Calls(ctx, askers, calls, func(ctx context.Context, i int) error {
		event := strings.Replace(s.like(), "load-", fmt.Sprintf("many-%d-", first+i), 1)
		r, err := daemon.Hook(s.socket, &daemon.Request{Runtime: "generic", Payload: []byte(event)}, time.Now().Add(dawdle))
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
	d.After = resident(s.daemon.cmd.Process.Pid)
	return d, nil
}

// like is an event of the same shape; it may be read by many at once.
func (s *session) like() string { one := session{}; return one.event() }

// together starts many hooks at once.
func (s *session) together(ctx context.Context) (schema.Duration, error) {
	var hook contender
	for _, c := range s.contenders() {
		if c.name == byDaemon {
			hook = c
		}
	}
	errs := make(chan error, parallel)
	var wait sync.WaitGroup
	began := time.Now()
	for i := range parallel {
		one := &session{dir: s.dir, shim: s.shim, asked: 1_000_000 + i}
		wait.Go(func() {
			_, err := one.once(ctx, hook)
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

// resident is a process's memory.
func resident(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "VmRSS:" {
			kib, _ := strconv.ParseInt(words[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
