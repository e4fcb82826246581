package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
)

// session is the processes of one run: who asks, and everybody it asks.
type session struct {
	requester *proc.Child
	others    []*proc.Child
}

// open starts all processes but the tap, which counts and must not be in the
// way of what is measured.
func open(ctx context.Context, o Options) (*session, string, error) {
	hooks := filepath.Join(o.Dir, "hooks.yaml")
	if err := os.WriteFile(hooks, []byte(hooksYAML()), 0o600); err != nil {
		return nil, "", fmt.Errorf("writing the configuration: %w", err)
	}
	s := new(session)
	var at roles.Address
	for _, start := range []struct {
		role   string
		config func() any
		facts  any
	}{
		{roles.Broker, func() any { return roles.BrokerConfig{Hooks: hooks, Data: filepath.Join(o.Dir, "data")} }, &at},
		{roles.RawResponder, func() any { return at }, nil},
		{roles.HookWorker, func() any { return roles.WorkerConfig{NATS: at.URL, Pool: remote} }, nil},
	} {
		child, err := o.Crew.Start(ctx, start.role, start.config(), start.facts)
		if err != nil {
			return nil, "", err
		}
		s.others = append(s.others, child)
	}
	var err error
	s.requester, err = o.Crew.Start(ctx, roles.Requester, roles.Places{NATS: at.URL, Fabric: at.URL}, nil)
	return s, at.URL, err
}

// measure measures one contender; a window without callers waits until it
// answers as it should.
func (s *session) measure(ctx context.Context, c contender, w measure.Window) (measure.Figures, error) {
	var f measure.Figures
	for _, child := range s.others {
		if err := child.Ask(ctx, struct{}{}, nil); err != nil { // it collects its garbage
			return f, err
		}
	}
	if err := s.requester.Ask(ctx, roles.Request{Target: c.target(), Window: w}, &f); err != nil {
		return f, fmt.Errorf("the row %q with %d callers: %w", c.title(), w.Callers, err)
	}
	return f, nil
}

// messages counts what goes to workers for one query of each contender.
func (s *session) messages(ctx context.Context, o Options, url string) (map[string]int, error) {
	tap, err := o.Crew.Start(ctx, roles.Tap, roles.TapConfig{NATS: url, Subject: "hook.v1.run.>"}, nil)
	if err != nil {
		return nil, err
	}
	counted := map[string]int{}
	for _, c := range contenders() {
		var before, after roles.Tapped
		err := errors.Join(
			tap.Ask(ctx, struct{}{}, &before),
			s.requester.Ask(ctx, roles.Request{Target: c.target()}, nil),
			tap.Ask(ctx, struct{}{}, &after),
		)
		if err != nil {
			return nil, fmt.Errorf("counting the messages of %q: %w", c.title(), err)
		}
		counted[c.title()] = after.Messages
	}
	return counted, nil
}
