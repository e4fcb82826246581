package notice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// pool is the workers' pool. tool is the tool of the calls.
	pool = "notice"
	tool = "Slow"
	// asker is the connection name of the client.
	asker = "loadtest notice"
	// patience limits how long a call, and the waits beside it, may take.
	patience = 10 * time.Second
	// again is the interval between checks whether all processes are connected.
	again = 20 * time.Millisecond
	// relaxed is the interval at which servers sync to disk: this test does not depend on
	// it.
	relaxed = schema.Duration(time.Second)
)

// hooksYAML returns the configuration with one hook. The hook may run twice, and a call
// that it could not judge must not pass.
func hooksYAML() string {
	return fmt.Sprintf(`presets: []
hooks:
  PreToolUse:
    - {name: slow, matcher: %s, type: builtin, handler: %s, pool: %s, idempotent: true, fail_closed: true, timeout: 8}
`, tool, handler, pool)
}

// A stand is a running fabric and its client.
type stand struct {
	field   *field.Field
	client  *client.Client
	nc      *nats.Conn
	workers []*faults.Victim
}

// takes is how long the hook runs, longer than the heartbeat interval.
const takes = schema.Duration(600 * time.Millisecond)

// open starts the fabric for a loss.
func open(ctx context.Context, o *bench.Options, l loss) (*stand, error) {
	dir := filepath.Join(o.Dir, l.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory for %s: %w", l.name, err)
	}
	f, err := field.Open(ctx, field.Config{
		Kind: field.Local, Dir: dir, Crew: o.Crew, Brokers: l.brokers, Workers: l.workers, Server: l.server, Hooks: hooksYAML(), Sync: relaxed,
		WorkerRole: Worker, Worker: func(at faults.At) any {
			return WorkerConfig{NATS: at.NATS, Name: named(at.By), Takes: takes}
		},
	})
	if err != nil {
		return nil, err
	}
	s := &stand{field: f}
	for i := range l.workers {
		s.workers = append(s.workers, f.Member(field.Numbered(field.Worker, i+1)))
	}
	s.nc, err = bus.Connect(ctx, bus.Options{URL: f.URL(), Name: asker})
	if err == nil {
		s.client, err = client.Connect(ctx, client.Options{URL: f.URL(), Name: asker})
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stand) close() error {
	if s.client != nil {
		s.client.Close()
	}
	if s.nc != nil {
		s.nc.Close()
	}
	return s.field.Close()
}

// named returns a process's name in the form of a worker's name, which cannot contain dots
// in a subject.
func named(by string) string { return strings.ReplaceAll(by, ".", "-") }

// ready waits until a broker knows all workers that are up.
func (s *stand) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no broker saw all workers within %v", patience))
	defer cancel()
	return load.Until(ctx, again, func(ctx context.Context) error {
		var now schema.FabricStatus
		if err := roles.Control(ctx, s.nc, roles.Verb{Verb: "status"}, struct{}{}, &now); err != nil {
			return err
		}
		if !s.complete(now) {
			return errors.New("a worker is missing")
		}
		return nil
	})
}

// complete reports whether all workers are up and can run the active configuration.
func (s *stand) complete(now schema.FabricStatus) bool {
	var here []string
	for _, p := range now.Pools {
		for _, w := range p.Workers {
			if p.Pool == pool && !w.Silent && slices.Contains(w.Versions, now.ConfigVersion) {
				here = append(here, w.Worker)
			}
		}
	}
	return !slices.ContainsFunc(s.workers, func(v *faults.Victim) bool { return !slices.Contains(here, named(v.By())) })
}

// An answer is the result of a call.
type answer struct {
	verdict *schema.Verdict
	err     error
}

// calls are calls in flight.
type calls struct {
	events  []string
	answers chan answer
}

// ask makes n calls at once. It uses the normal client, which repeats a lost request.
func (s *stand) ask(ctx context.Context, n int) (*calls, error) {
	c := &calls{answers: make(chan answer, n)}
	for range n {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("making an event's id: %w", err)
		}
		c.events = append(c.events, id.String())
	}
	for _, id := range c.events {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			v, err := s.client.Ask(ctx, &schema.Event{
				HookType: schema.PreToolUse, EventID: id, AgentID: "load", SessionID: "notice", Runtime: "generic",
				ToolName: tool, ToolInput: []byte(`{}`),
			})
			c.answers <- answer{v, err}
		}()
	}
	return c, nil
}

// all waits for all answers.
func (c *calls) all() []answer {
	var all []answer
	for range c.events {
		all = append(all, <-c.answers)
	}
	return all
}

// begun asks a worker which hooks of the calls have begun, and waits until there are at
// least want.
func (c *calls) begun(ctx context.Context, worker *faults.Victim, want int) (all []Begin, err error) {
	err = worker.Ask(ctx, Look{Events: c.events, Want: want, For: schema.Duration(patience)}, &all)
	return all, err
}
