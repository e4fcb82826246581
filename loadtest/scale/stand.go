package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest/ports"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// remote is the pool that has a hookworker of its own.
const remote = "remote"

// relaxed is how often brokers sync here: nothing that is measured but the units
// waits for the disk.
const relaxed = schema.Duration(time.Second)

// tool is what calls are about where it does not matter.
const tool = "Bash"

// A stand is a fabric of its own: a broker, perhaps a worker, and who asks.
type stand struct {
	crew   *proc.Crew
	config roles.BrokerConfig
	nats   string
	web    string // where the broker shows its metrics
	broker *proc.Child
	worker *proc.Child // nil: there is none
	crowd  *proc.Child
	crowds []*proc.Child // further ones
}

// stand starts a broker with a configuration, and a crowd with one connection.
func (o *Options) stand(ctx context.Context, name, hooks string) (*stand, error) {
	s, err := o.bare(ctx, name, hooks)
	if err != nil {
		return nil, err
	}
	if s.crowd, err = s.crew.Start(ctx, roles.Crowd, roles.CrowdConfig{NATS: s.nats, Prefix: "agent-"}, nil); err == nil {
		err = s.crowd.Ask(ctx, roles.CrowdRequest{Open: 1}, nil)
	}
	if err != nil {
		return nil, errors.Join(err, s.crew.Stop())
	}
	return s, nil
}

// bare starts a broker alone.
func (o *Options) bare(ctx context.Context, name, hooks string) (*stand, error) {
	dir := filepath.Join(o.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory for %s: %w", name, err)
	}
	file := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(file, []byte(hooks), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of %s: %w", name, err)
	}
	free, err := ports.Free(1)
	if err != nil {
		return nil, err
	}
	s := &stand{
		crew:   o.Crew.Like(),
		config: roles.BrokerConfig{Hooks: file, Data: filepath.Join(dir, "data"), Listen: free[0], Sync: relaxed},
	}
	if err := s.up(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), s.crew.Stop())
	}
	return s, nil
}

// up starts the broker.
func (s *stand) up(ctx context.Context) (err error) {
	var at roles.Address
	s.broker, err = s.crew.Start(ctx, roles.Broker, s.config, &at)
	s.nats, s.web = at.URL, at.Web
	return err
}

// work starts a worker of the remote pool.
func (s *stand) work(ctx context.Context, nats string) (err error) {
	s.worker, err = s.crew.Start(ctx, roles.HookWorker, roles.WorkerConfig{NATS: nats, Pool: remote}, nil)
	return err
}

// stands are several stands that end together.
type stands []*stand

func (all stands) stop() error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}

// stop ends those first who ask, however late they were started: thousands of them
// would look for the broker that ended.
func (s *stand) stop() error {
	var errs []error
	for _, c := range s.crowds {
		errs = append(errs, c.Stop())
	}
	return errors.Join(append(errs, s.crew.Stop())...)
}

// with starts a stand, has f measure it, and ends it.
func (o *Options) with(ctx context.Context, name, hooks string, f func(*stand) error) error {
	s, err := o.stand(ctx, name, hooks)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.crew.Stop())
}

// look has a process collect its garbage and says what it takes; nil takes nothing.
func look(ctx context.Context, child *proc.Child) (took roles.Settled, err error) {
	if child == nil {
		return took, nil
	}
	return took, child.Ask(ctx, struct{}{}, &took)
}

// A sample is what one window showed.
type sample struct {
	measure.Figures
	// broker and worker are the time of a processor that each needed for a call.
	broker, worker float64
}

// cpu is the time of a processor that the fabric needed for a call.
func (s sample) cpu() float64 { return s.broker + s.worker }

// ready waits until what is asked is answered as it should be.
func (s *stand) ready(ctx context.Context, q roles.CrowdRequest) error {
	q.Window = measure.Window{}
	return s.crowd.Ask(ctx, q, nil)
}

// ask measures a window.
func (s *stand) ask(ctx context.Context, q roles.CrowdRequest) (got sample, err error) {
	var cpu [2]float64
	of := [2]*proc.Child{s.broker, s.worker}
	var before, after [2]roles.Settled
	for i, child := range of {
		if before[i], err = look(ctx, child); err != nil {
			return got, err
		}
	}
	if err := s.crowd.Ask(ctx, q, &got.Figures); err != nil {
		return got, err
	}
	for i, child := range of {
		if after[i], err = look(ctx, child); err != nil {
			return got, err
		}
		cpu[i] = after[i].Before.Since(before[i].After).CPU.Std().Seconds() / float64(max(got.Asked, 1))
	}
	got.broker, got.worker = cpu[0], cpu[1]
	return got, nil
}

// step is a step of a growth at which this stand is asked.
func (s *stand) step(name string, many int, q roles.CrowdRequest) step {
	return step{name, many, func(ctx context.Context) (sample, error) { return s.ask(ctx, q) }}
}

// window is a window of so many callers.
func (o *Options) window(callers int) measure.Window {
	return measure.Window{Callers: callers, Warm: schema.Duration(o.Warm), Long: schema.Duration(o.Window)}
}

// hooksYAML is a configuration without presets whose global hooks at PreToolUse are
// the lines.
func hooksYAML(lines []string) string {
	if len(lines) == 0 {
		return "presets: []\n"
	}
	return "presets: []\nhooks:\n  PreToolUse:\n" + strings.Join(lines, "")
}

// hookYAML is one hook that allows.
func hookYAML(name, matcher, pool string) string {
	return fmt.Sprintf("    - {name: %s, matcher: %q, type: builtin, handler: allow, pool: %s}\n", name, matcher, pool)
}
