// Package shim measures a hook that starts once per tool call, from exec to exit:
// `agentshim hook` direct and through the daemon. It compares them with a Go program that
// only makes one request on a unix socket, and with a Python hook that does the same. Only
// ratios to the Go program have budgets.
package shim

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// A Report is the result of a run.
type Report struct {
	bench.Report
	// Binary is the size of agentshim in bytes.
	Binary int64 `json:"binary_bytes"`
	// Runs is the number of processes behind the figure of a repetition.
	Runs int `json:"runs"`
}

// The rows. All others are divided by the baseline.
const (
	baseline  = "Go program, one request on a unix socket"
	direct    = "agentshim hook, direct"
	byDaemon  = "agentshim hook, through the daemon"
	inPython  = "Python hook, one request on a unix socket"
	versioned = "agentshim version"
)

// lines lists the ratios with their budgets.
func lines() []bench.Line {
	return []bench.Line{
		{Of: byDaemon, By: baseline, Limits: bench.Limits{P50: bench.ShimByDaemon}},
		{Of: direct, By: baseline, Limits: bench.Limits{P50: bench.ShimDirect}},
		{Of: versioned, By: baseline},
		{Of: inPython, By: baseline},
	}
}

//go:embed baseline.py
var python string

// contenders lists the programs. The one in Python needs python3.
func (s *session) contenders(runs int) []bench.Contender {
	echo := filepath.Join(s.dir, "echo.sock")
	all := []bench.Contender{
		s.contender(baseline, runs, s.base, echo),
		s.contender(direct, runs, s.hook("--nats", s.nats)...),
		s.contender(byDaemon, runs, s.hook("--socket", s.socket)...),
		s.contender(versioned, runs, s.shim, "version"),
	}
	all[0].Times = 3
	if program, err := exec.LookPath("python3"); err == nil {
		all = append(all, s.contender(inPython, runs, program, "-c", python, echo))
	}
	return all
}

// hook returns the command line of a hook.
func (s *session) hook(more ...string) []string {
	return slices.Concat([]string{s.shim, "hook", "--runtime", "generic", "--state", s.dir}, more)
}

// contender runs a program several times. The time is the median, the CPU time the average.
func (s *session) contender(name string, runs int, args ...string) bench.Contender {
	return bench.Contender{Name: name, Measure: func(ctx context.Context, callers int) (bench.Sample, error) {
		var took []float64
		var cpu time.Duration
		for range max(runs*callers, 1) {
			one, used, err := s.once(ctx, args)
			if err != nil {
				return bench.Sample{}, err
			}
			took, cpu = append(took, float64(one)), cpu+used
		}
		return bench.Sample{
			Figures: load.Figures{P50: schema.Duration(report.Median(took))},
			Costs:   map[string]bench.Cost{"program": {CPU: schema.Duration(cpu / time.Duration(len(took)))}},
		}, nil
	}}
}

// Run builds the programs, starts a broker and a daemon, and measures. A wrong answer is an error.
func Run(ctx context.Context, o bench.Options) (_ *Report, err error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r := &Report{Runs: bench.Pick(&o, 40, 2)}
	all := s.contenders(r.Runs)
	samples, err := o.Repeat(ctx, o.Times(10, 1), []int{1}, all)
	if err != nil {
		return nil, err
	}
	r.Compare(&o, samples, lines())
	r.Show(samples, []int{1}, all)
	info, err := os.Stat(s.shim)
	if err != nil {
		return nil, fmt.Errorf("reading the size of agentshim: %w", err)
	}
	r.Binary = info.Size()
	r.Figures = append(r.Figures, report.Figured("size of agentshim", "B", report.Lower, []float64{float64(r.Binary)}))
	return r, nil
}

// session is the processes of all repetitions.
type session struct {
	dir, shim, base string
	nats, socket    string
	fabric          *bench.Fabric
	daemon          *daemonProcess
	echo            io.Closer
	asked           int // makes every call different
}

func open(ctx context.Context, o bench.Options) (s *session, err error) {
	s = &session{dir: o.Dir, socket: filepath.Join(o.Dir, "agentshim.sock")}
	if s.shim, err = build(ctx, o.Dir, "cmd/agentshim"); err != nil {
		return nil, err
	}
	if s.base, err = build(ctx, o.Dir, "loadtest/internal/shim/baseline"); err != nil {
		return nil, err
	}
	if s.fabric, err = o.Start(ctx, "fabric", "presets: []\nhooks: {}\n", roles.BrokerConfig{}); err != nil {
		return nil, err
	}
	s.nats = s.fabric.URL()
	if s.echo, err = listen(filepath.Join(o.Dir, "echo.sock")); err == nil {
		s.daemon, err = s.startDaemon(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *session) close() error {
	if s.daemon != nil {
		s.daemon.stop()
	}
	if s.echo != nil {
		_ = s.echo.Close()
	}
	return s.fabric.Stop()
}

// limit is the longest time for a process that should take milliseconds.
const limit = 20 * time.Second
