package scale

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// hooks grows the number of hooks that are asked at one call.
func (o *Options) hooks(ctx context.Context, r *Report) error {
	toolOf := func(pool string, n int) string { return fmt.Sprintf("%s-%d", pool, n) }
	var lines []string
	for _, pool := range []string{schema.DefaultPool, remote} {
		for _, n := range o.Hooks {
			for i := range n {
				lines = append(lines, hookYAML(fmt.Sprintf("%s-%d-%d", pool, n, i+1), toolOf(pool, n), pool))
			}
		}
	}
	return o.with(ctx, "hooks", hooksYAML(lines), func(s *stand) error {
		if err := s.work(ctx, s.nats); err != nil {
			return err
		}
		g := &growth{part: "hooks", title: "Hooks on one call", of: "hooks", worker: true,
			note: "One caller. Each hook allows immediately. No hook is readonly, so each waits for the one before."}
		in, of := &series{name: "inside broker"}, &series{name: "of a remote pool"}
		g.all = []*series{in, of}
		for _, n := range o.Hooks {
			for one, pool := range map[*series]string{in: schema.DefaultPool, of: remote} {
				q := roles.CrowdRequest{Tool: toolOf(pool, n), Hooks: n, Window: o.window(1)}
				if err := s.ready(ctx, q); err != nil {
					return err
				}
				one.steps = append(one.steps, s.step(counted(n, "hook", "hooks"), n, q))
			}
		}
		if err := o.repeated(ctx, g); err != nil {
			return err
		}
		g.tell(r)
		return nil
	})
}
