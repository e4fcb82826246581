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

// A Change is the result of a request.
type Change struct {
	// Freeze is the new, existing or ended freeze.
	Freeze schema.Freeze
	// Changed: the request changed the state.
	Changed bool
	// State is the state after the request; it is known here.
	State *State
	// unsure: an earlier attempt got no answer, and may have succeeded.
	unsure bool
}

// Freeze stores a freeze. An existing freeze of the same pattern stays as it is. The request is valid only for the
// version that the client knows; nil: for any.
func (f *Freezes) Freeze(ctx context.Context, z schema.Freeze, known *uint64) (Change, error) {
	if err := check(&z); err != nil {
		return Change{}, err
	}
	z.Since = time.Now().UTC().Round(0)
	return f.change(ctx, func(all []schema.Freeze, c *Change) ([]schema.Freeze, error) {
		if i := named(all, z.Agents); i >= 0 {
			// It is this one if an attempt without an answer succeeded.
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

// Thaw ends the freeze of exactly that pattern. The request is valid only for the version that the client knows; nil:
// for any.
func (f *Freezes) Thaw(ctx context.Context, agents string, known *uint64) (Change, error) {
	var ended *schema.Freeze
	return f.change(ctx, func(all []schema.Freeze, c *Change) ([]schema.Freeze, error) {
		i := named(all, agents)
		if c.unsure && ended != nil && (i < 0 || !all[i].Since.Equal(ended.Since)) {
			// An attempt without an answer ended it. An existing one is a later one.
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

// moved returns an error if the state has another version than the client knows.
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

// standing returns the error text for a pattern that is not frozen.
func standing(agents string, all []schema.Freeze) string {
	const most = 10
	text := fmt.Sprintf("there is no freeze of %q", agents)
	if len(all) == 0 {
		return text + ", and there are no other freezes"
	}
	var names []string
	for _, z := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%q", z.Agents))
	}
	text += "; there are freezes of " + strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// check returns what is wrong with a freeze.
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

// change makes a new state from the leader's and stores it by a compare-and-set, which it repeats. A nil list changes
// nothing.
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
			return false, nil // the leader was cut off, or a restored data directory was not noticed yet
		}
		next, err := make(before.Freezes, &c)
		switch {
		case err != nil:
			return false, err
		case next == nil && c.unsure && c.Changed:
			return true, nil // an earlier attempt stored it
		case next == nil:
			// A leader that is cut off may have an old state, so prove it.
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
		f.take(c.State) // so that a repeated request knows the leader's state
		return Change{}, err
	case errors.Is(err, ErrNotFrozen), errors.Is(err, ErrFull), errors.Is(err, ErrInvalid):
		return Change{}, err
	}
	if c.unsure {
		return Change{}, fmt.Errorf("%w, and the change may have been stored: %w", ErrUnavailable, err)
	}
	return Change{}, fmt.Errorf("%w, and nothing was stored: %w", ErrUnavailable, err)
}

// write stores a state over a revision; nil: another state was stored in between.
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
