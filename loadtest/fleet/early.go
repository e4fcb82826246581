package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// early ends a load that was interrupted, as if it had been only as long as it was in
// whole seconds. What goes wrong while processes end that may just be starting, stopped
// or cut off says nothing of what was measured before.
func (r *run) early(ctx context.Context) error {
	long := time.Since(r.Began).Truncate(time.Second)
	if long < time.Second {
		return fmt.Errorf("before the first measurement: %w", context.Cause(ctx))
	}
	s := *r.Scenario
	s.For, s.Steps = min(s.For, schema.Duration(long)), s.Steps.Until(long)
	r.Scenario, r.Early, r.ending = &s, true, r.end()
	return nil
}

// End closes the session after a load, which gave m or an error. Where that was
// interrupted what goes wrong now is a note.
func (x *Session) End(m *Measured, err error) error {
	closed := x.Close()
	if err == nil && m.Early {
		m.ending = errors.Join(m.ending, closed)
		return nil
	}
	return errors.Join(err, closed)
}
