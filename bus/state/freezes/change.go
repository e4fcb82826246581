package freezes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// A Change is what came of a request.
type Change struct {
	// Freeze is the one that stands now, or that has ended.
	Freeze schema.Freeze
	// Changed: it was not so before.
	Changed bool
	// State is what is frozen now; it is known here.
	State *State
	// unsure: nobody answered an earlier attempt, which may have gone through.
	unsure bool
}

// Freeze has a freeze stand from now on. Where one of the same pattern stands, that
// one stays as it is. It counts only while what is frozen has the version that the asker
// knows; nil: whatever it has.
func (f *Freezes) Freeze(ctx context.Context, z schema.Freeze, known *uint64) (Change, error) {
	if err := check(&z); err != nil {
		return Change{}, err
	}
	z.Since = time.Now().UTC().Round(0)
	return f.change(ctx, func(all []schema.Freeze, c *Change) ([]schema.Freeze, error) {
		if i := named(all, z.Agents); i >= 0 {
			// It is this one if nobody answered an attempt that went through.
			c.Freeze, c.Changed = all[i], c.unsure && all[i].Since.Equal(z.Since) && all[i].By == z.By
			return nil, nil
		}
		if err := c.moved(known); err != nil {
			return nil, err
		}
		if len(all) >= schema.MaxFreezes {
			return nil, fmt.Errorf("%w: there are already %d; thaw some, or freeze one pattern for many agents", ErrFull, len(all))
		}
		c.Freeze, c.Changed = z, true
		return append(slices.Clone(all), z), nil
	})
}

// Thaw ends the freeze of exactly that pattern. It counts only while what is frozen has
// the version that the asker knows; nil: whatever it has.
func (f *Freezes) Thaw(ctx context.Context, agents string, known *uint64) (Change, error) {
	var ended *schema.Freeze
	return f.change(ctx, func(all []schema.Freeze, c *Change) ([]schema.Freeze, error) {
		i := named(all, agents)
		if c.unsure && ended != nil && (i < 0 || !all[i].Since.Equal(ended.Since)) {
			// It was this one if nobody answered an attempt that went through. What stands now came later.
			c.Freeze, c.Changed = *ended, true
			return nil, nil
		}
		if i < 0 {
			return nil, fmt.Errorf("%w: %s", ErrNotFrozen, standing(agents, all))
		}
		if err := c.moved(known); err != nil {
			return nil, err
		}
		ended = &all[i]
		c.Freeze, c.Changed = all[i], true
		return slices.Delete(slices.Clone(all), i, i+1), nil
	})
}

// moved refuses a change of another state than the one that is there.
func (c *Change) moved(known *uint64) error {
	if known == nil || *known == c.State.Version {
		return nil
	}
	return fmt.Errorf("%w: the freezes have version %d, and the request is about version %d; nothing changed, list the freezes and try again",
		ErrMoved, c.State.Version, *known)
}

func named(all []schema.Freeze, agents string) int {
	return slices.IndexFunc(all, func(z schema.Freeze) bool { return z.Agents == agents })
}

// standing says what stands, where a pattern is not among it.
func standing(agents string, all []schema.Freeze) string {
	const most = 10
	said := fmt.Sprintf("there is no freeze of %q", agents)
	if len(all) == 0 {
		return said + ", and there are no other freezes"
	}
	var names []string
	for _, z := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%q", z.Agents))
	}
	said += "; there are freezes of " + strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}

// check says what is wrong with a freeze.
func check(z *schema.Freeze) error {
	z.Agents = strings.TrimSpace(z.Agents)
	switch {
	case len(z.Reason) > schema.MaxFreezeReason:
		return fmt.Errorf("%w: the reason has %d bytes; use at most %d", ErrInvalid, len(z.Reason), schema.MaxFreezeReason)
	case len(z.By) > schema.MaxFreezeBy:
		return fmt.Errorf("%w: by has %d bytes; use at most %d", ErrInvalid, len(z.By), schema.MaxFreezeBy)
	}
	if err := checkAgents(z.Agents); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// change makes a new state of the leader's and writes it if nothing came between,
// else again. A nil list changes nothing.
func (f *Freezes) change(ctx context.Context, make func([]schema.Freeze, *Change) ([]schema.Freeze, error)) (c Change, err error) {
	err = kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		e, err := f.bucket.Last(ctx, key)
		if err != nil {
			return false, fmt.Errorf("reading the freezes: %w", err)
		}
		before, err := read(e)
		if err != nil {
			return false, err
		}
		c = Change{State: before, unsure: c.unsure}
		if before.Version < f.Now().Version {
			return false, nil // who says so was cut off, or it went back to an earlier state and nobody knows yet
		}
		next, err := make(before.Freezes, &c)
		switch {
		case err != nil:
			return false, err
		case next == nil && c.unsure && c.Changed:
			return true, nil // it is what was written here
		case next == nil:
			// What stands already, as a leader says that may be cut off, may have ended since.
			err := f.prove(ctx)
			return err == nil && f.Now().Version <= before.Version, err
		}
		c.State, err = f.write(ctx, before.Version, next)
		c.unsure = c.unsure || err != nil
		return c.State != nil, err
	})
	switch {
	case err == nil:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.take(c.State)
		return c, nil
	case errors.Is(err, ErrMoved) && c.unsure:
		return Change{}, fmt.Errorf("%w: the change may have been stored, and the freezes have changed since; list them", ErrUnavailable)
	case errors.Is(err, ErrMoved):
		f.mu.Lock()
		defer f.mu.Unlock()
		f.take(c.State) // who asks again then knows what the leader does
		return Change{}, err
	case errors.Is(err, ErrNotFrozen), errors.Is(err, ErrFull), errors.Is(err, ErrInvalid):
		return Change{}, err
	}
	if c.unsure {
		return Change{}, fmt.Errorf("%w, and the change may have been stored: %w", ErrUnavailable, err)
	}
	return Change{}, fmt.Errorf("%w, and nothing was stored: %w", ErrUnavailable, err)
}

// write stores a state in the place of that revision; nil: another one stands there.
func (f *Freezes) write(ctx context.Context, last uint64, all []schema.Freeze) (*State, error) {
	data, err := schema.Marshal(&stored{all})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	case len(data) > schema.MaxFrozen:
		return nil, fmt.Errorf("%w: together they have %d bytes, and at most %d are possible; thaw some, or freeze one pattern for many agents", ErrFull, len(data), schema.MaxFrozen)
	}
	revision, err := f.bucket.Write(ctx, kv.Write{Key: key, Value: data, Last: last})
	if kv.Refused(err) {
		return nil, nil //nolint:nilnil // documented above
	}
	if err != nil {
		return nil, err
	}
	return &State{Version: revision, Freezes: some(all)}, nil
}
