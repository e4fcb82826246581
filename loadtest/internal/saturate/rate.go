package saturate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
)

// Rate returns the knee of a scenario's fabric, for a run at a part of the knee: how many
// tool uses per second the fabric keeps up with, for the scenario's own agents and
// injections.
func Rate(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (float64, error) {
	searched := *s
	searched.Kind, searched.Faults = scenario.Saturate, nil
	searched.Fabric.Links = s.Soak.Chaos || s.Fabric.Links // as the load itself will
	st.Dir = filepath.Join(st.Dir, "knee")
	if err := os.Mkdir(st.Dir, 0o700); err != nil {
		return 0, fmt.Errorf("making a directory for the search: %w", err)
	}
	x, err := open(ctx, &searched, st)
	if err != nil {
		return 0, err
	}
	found, err := x.knee(ctx)
	if err = errors.Join(err, x.session.Close()); err != nil {
		return 0, err
	}
	for _, c := range x.checks.Checks {
		if c.Wrong > 0 {
			return 0, fmt.Errorf("during the search for the knee a check failed: %s: %s", c.Name, c.Examples[0])
		}
	}
	return found.knee, nil
}
