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
	others    []answerer
}

// answerer is a process of those who answer.
type answerer struct {
	role  string
	child *proc.Child
}

// open starts all processes. A session that was not opened is closed already.
func open(ctx context.Context, o Options) (*session, error) {
	s := &session{crew: o.Crew}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, o.Crew.Stop())
	}
	return s, nil
}

func (s *session) start(ctx context.Context, o Options) error {
	hooks := filepath.Join(o.Dir, "hooks.yaml")
	if err := os.WriteFile(hooks, []byte(hooksYAML()), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	broker, err := s.add(ctx, roles.Broker, roles.BrokerConfig{Hooks: hooks, Data: filepath.Join(o.Dir, "data"), Record: o.Record})
	if err != nil {
		return err
	}
	at := roles.Places{NATS: broker.URL, Fabric: broker.URL}
	if _, err := s.add(ctx, roles.RawResponder, broker); err != nil {
		return err
	}
	inside, err := s.add(ctx, roles.Inside, struct{}{})
	if err != nil {
		return err
	}
	if _, err := s.add(ctx, roles.RawResponder, inside); err != nil {
		return err
	}
	at.Inside = inside.URL
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
	s.others = append(s.others, answerer{role, child})
	return at, nil
}

// settle has everybody collect their garbage, and say what they have used before
// and after that; the requester does so by itself.
func (s *session) settle(ctx context.Context) ([]roles.Settled, error) {
	all := make([]roles.Settled, len(s.others))
	for i, o := range s.others {
		if err := o.child.Ask(ctx, struct{}{}, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// measure measures one contender; a window without callers waits until it
// answers as it should.
func (s *session) measure(ctx context.Context, c contender, w measure.Window) (figures, error) {
	var f measure.Figures
	before, err := s.settle(ctx)
	if err != nil {
		return figures{}, err
	}
	if err := s.requester.Ask(ctx, roles.Request{Target: c.target, Window: w}, &f); err != nil {
		return figures{}, fmt.Errorf("the row %q with %d callers: %w", c.name, w.Callers, err)
	}
	after, err := s.settle(ctx)
	if err != nil {
		return figures{}, err
	}
	sums := map[string]measure.Used{roles.Requester: f.Used}
	for i, o := range s.others {
		sums[o.role] = sums[o.role].Plus(after[i].Before.Since(before[i].After))
	}
	costs := map[string]Cost{}
	for role, used := range sums {
		costs[role] = perCall(used, f.Asked)
	}
	return figures{f, costs}, nil
}
