package bench

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

// session is the processes of one run: one requester and everybody it asks.
type session struct {
	crew      *proc.Crew
	requester *proc.Child
	others    []*proc.Child
}

// open starts all processes. A session that was not opened is closed already.
func open(ctx context.Context, crew *proc.Crew, dir string) (*session, error) {
	s := &session{crew: crew}
	if err := s.start(ctx, dir); err != nil {
		return nil, errors.Join(err, crew.Stop())
	}
	return s, nil
}

func (s *session) start(ctx context.Context, dir string) error {
	hooks := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(hooks, []byte(hooksYAML()), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	broker, err := s.add(ctx, roles.Broker, roles.BrokerConfig{Hooks: hooks, Data: filepath.Join(dir, "data")})
	if err != nil {
		return err
	}
	at := roles.Places{NATS: broker.URL, Fabric: broker.URL}
	if _, err := s.add(ctx, roles.RawResponder, broker); err != nil {
		return err
	}
	for _, pool := range []string{remote, further} {
		if _, err := s.add(ctx, roles.HookWorker, roles.WorkerConfig{NATS: broker.URL, Pool: pool}); err != nil {
			return err
		}
	}
	webhook, err := s.add(ctx, roles.Webhook, struct{}{})
	if err != nil {
		return err
	}
	two, err := s.add(ctx, roles.StageTwo, struct{}{})
	if err != nil {
		return err
	}
	one, err := s.add(ctx, roles.StageOne, two)
	if err != nil {
		return err
	}
	at.Webhook, at.Stages = webhook.URL, one.URL
	s.requester, err = s.crew.Start(ctx, roles.Requester, at, nil)
	return err
}

// add starts one of those who answer.
func (s *session) add(ctx context.Context, role string, config any) (roles.Address, error) {
	var at roles.Address
	child, err := s.crew.Start(ctx, role, config, &at)
	if err != nil {
		return at, err
	}
	s.others = append(s.others, child)
	return at, nil
}

// settle has everybody collect their garbage; the requester does so by itself.
func (s *session) settle(ctx context.Context) error {
	for _, child := range s.others {
		if err := child.Ask(ctx, struct{}{}, nil); err != nil {
			return err
		}
	}
	return nil
}

// measure measures one contender; a window without callers waits until it
// answers as it should.
func (s *session) measure(ctx context.Context, c contender, w measure.Window) (measure.Figures, error) {
	var f measure.Figures
	if err := s.settle(ctx); err != nil {
		return f, err
	}
	if err := s.requester.Ask(ctx, roles.Request{Target: c.target, Window: w}, &f); err != nil {
		return f, fmt.Errorf("the row %q with %d callers: %w", c.name, w.Callers, err)
	}
	return f, nil
}
