package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// DefaultRate is how many verdicts a second there are unless it is said otherwise.
const DefaultRate = 2000

// Options say how to measure.
type Options struct {
	// Repetitions is how often every broker is measured; fewer than one is one.
	Repetitions int
	// Window is how long one figure is measured, Warm how long before that the callers
	// already ask.
	Window, Warm time.Duration
	// Rate is how many verdicts a second there are, but where callers ask flat out.
	Rate float64
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew says how processes are started.
	Crew *proc.Crew
	// Progress takes a line now and then; it must not be nil.
	Progress io.Writer
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options {
	return Options{Repetitions: 10, Window: time.Second, Warm: 100 * time.Millisecond, Rate: DefaultRate}
}

// Quick are the options of a run that only looks whether everything is written.
func Quick() Options {
	return Options{Repetitions: 1, Window: 200 * time.Millisecond, Warm: 20 * time.Millisecond, Rate: DefaultRate}
}

// Check says what is wrong with the options.
func (o *Options) Check() error {
	if !(o.Rate >= 1 && o.Rate <= 100_000) {
		return fmt.Errorf("--rate is %v; write 1 to 100000 verdicts per second", o.Rate)
	}
	return nil
}

const (
	// steadyCallers is how many calls may be under way at the rate: far more than there
	// are at once. flatOut callers ask again as soon as they are answered.
	steadyCallers = 32
	flatOut       = 16
	// steadyHooks and busyHooks are how many hooks there are in the one and in the other.
	steadyHooks = 3
	busyHooks   = 8
	// steadyTool and busyTool are what the calls are about.
	steadyTool = "Recorded"
	busyTool   = "Often"
	// flatOutShare is which part of a window callers ask flat out: there are as many
	// calls in it, and no more records than can wait.
	flatOutShare = 4
	// kept is how much one broker's record may hold, so little that it is full soon.
	kept     = 1 << 20
	keptFlag = "1MiB"
)

// hooksYAML is the configuration of all brokers.
func hooksYAML() string {
	var b strings.Builder
	b.WriteString("presets: []\nhooks:\n  PreToolUse:\n")
	for tool, n := range map[string]int{steadyTool: steadyHooks, busyTool: busyHooks} {
		for i := range n {
			fmt.Fprintf(&b, "    - {name: %s-%d, matcher: %s, type: builtin, handler: allow}\n", tool, i+1, tool)
		}
	}
	return b.String()
}

// mode is one way of writing down.
type mode struct {
	name, record, bytes string
}

// The modes; all others are compared with the first.
const (
	off     = "no record"
	facts   = "the facts"
	content = "the content, too"
	small   = "the facts, of which 1 MiB is kept"
)

func modes() []mode {
	return []mode{{off, "off", ""}, {facts, "facts", ""}, {content, "content", ""}, {small, "facts", keptFlag}}
}

// stand is one broker and who asks it.
type stand struct {
	mode
	url               string
	broker, requester *proc.Child
	asked             int64
	steady, busy      []sample
}

// sample is what one window showed.
type sample struct {
	p50, p99 float64 // in seconds
	cpu      float64 // of the broker per call, in seconds
	rate     float64 // calls per second
}

// Run starts a broker of each mode, measures them in turns, reads what they wrote,
// and judges.
func Run(ctx context.Context, o Options) (*result.Document, error) {
	o.Crew = o.Crew.Like(roles.KeepPages)
	d, err := run(ctx, o)
	return d, errors.Join(err, o.Crew.Stop())
}

func run(ctx context.Context, o Options) (*result.Document, error) {
	var stands []*stand
	for i, m := range modes() {
		s, err := o.start(ctx, m, filepath.Join(o.Dir, fmt.Sprint("broker-", i)))
		if err != nil {
			return nil, err
		}
		stands = append(stands, s)
	}
	if err := o.round(ctx, stands); err != nil { // to warm up; not counted
		return nil, err
	}
	for _, s := range stands {
		s.steady, s.busy = nil, nil
	}
	for i := range max(o.Repetitions, 1) {
		if err := o.round(ctx, stands); err != nil {
			return nil, err
		}
		fmt.Fprintf(o.Progress, "repetition %d of %d\n", i+1, max(o.Repetitions, 1))
	}
	d := new(result.Document)
	for _, s := range stands {
		if err := s.look(ctx, d); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	judge(d, stands, o.Rate)
	return d, nil
}

func (o *Options) start(ctx context.Context, m mode, dir string) (*stand, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory for a broker: %w", err)
	}
	hooks := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(hooks, []byte(hooksYAML()), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	s := &stand{mode: m}
	var at roles.Address
	var err error
	c := roles.BrokerConfig{Hooks: hooks, Data: filepath.Join(dir, "data"), Record: m.record, RecordBytes: m.bytes}
	if s.broker, err = o.Crew.Start(ctx, roles.Broker, c, &at); err != nil {
		return nil, err
	}
	s.url = at.URL
	s.requester, err = o.Crew.Start(ctx, roles.Requester, roles.Places{Fabric: at.URL}, nil)
	return s, err
}

// round measures all brokers once, in an order of its own.
func (o *Options) round(ctx context.Context, stands []*stand) error {
	for _, i := range rand.Perm(len(stands)) {
		if err := stands[i].measure(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", stands[i].name, err)
		}
	}
	return nil
}

// measure measures a broker at the rate, and flat out.
func (s *stand) measure(ctx context.Context, o *Options) error {
	steady, err := s.window(ctx, roles.Request{
		Target: roles.Target{Way: roles.Fabric, Tool: steadyTool, Hooks: steadyHooks},
		Window: measure.Window{Callers: steadyCallers, Warm: schema.Duration(o.Warm), Long: schema.Duration(o.Window), Rate: o.Rate},
	})
	if err != nil {
		return err
	}
	busy, err := s.window(ctx, roles.Request{
		Target: roles.Target{Way: roles.Fabric, Tool: busyTool, Hooks: busyHooks},
		Window: measure.Window{Callers: flatOut, Warm: schema.Duration(o.Warm / flatOutShare), Long: schema.Duration(o.Window / flatOutShare)},
	})
	s.steady, s.busy = append(s.steady, steady), append(s.busy, busy)
	return err
}

// window measures a broker once. What was put last is written within that.
func (s *stand) window(ctx context.Context, q roles.Request) (sample, error) {
	var before, after roles.Settled
	var f measure.Figures
	err := errors.Join(s.broker.Ask(ctx, struct{}{}, &before), s.requester.Ask(ctx, q, &f))
	measure.Pause(ctx, flushed*3/2)
	if err = errors.Join(err, s.broker.Ask(ctx, struct{}{}, &after)); err != nil {
		return sample{}, err
	}
	s.asked += f.Asked
	return sample{
		p50: f.P50.Std().Seconds(), p99: f.P99.Std().Seconds(), rate: f.PerSecond,
		cpu: after.Before.Since(before.After).CPU.Std().Seconds() / float64(max(f.Asked, 1)),
	}, nil
}
