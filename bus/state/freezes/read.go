package freezes

import (
	"errors"
	"fmt"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// stored is the stored form of a state.
type stored struct {
	Freezes []schema.Freeze `json:"freezes"`
}

// unread is a revision that cannot be decoded.
type unread struct {
	revision uint64
	err      error
}

// Unreadable returns why the newest revision cannot be decoded; nil: it can. Until then the state before it is in effect.
func (f *Freezes) Unreadable() error {
	if u := f.unread.Load(); u != nil {
		return u.err
	}
	return nil
}

// reads decodes a revision. If that fails it logs it once, and the known state stays. The caller holds the lock.
func (f *Freezes) reads(e kv.Entry) (*State, error) {
	s, err := read(e)
	if err == nil || e.Revision <= f.now.Load().Version {
		return s, err
	}
	if u := f.unread.Load(); u == nil || u.revision != e.Revision {
		f.log.Error("cannot read the stored freezes; the ones that were read last stay in effect", "bucket", Bucket, "revision", e.Revision, "error", err)
		f.unread.Store(&unread{e.Revision, err})
	}
	return nil, err
}

// read decodes a revision. A key that was never written, or was deleted, is an empty list. Anything else without a list is an
// error, because an empty list would thaw all agents.
func read(e kv.Entry) (*State, error) {
	s := &State{Version: e.Revision}
	if e.Revision == 0 || e.Kind == kv.Deleted {
		return s, nil
	}
	in, err := list(e)
	if err != nil {
		return nil, fmt.Errorf("%w: the key %s of the bucket %s, revision %d: %w; write an earlier revision of it again, or delete the key, which thaws all agents",
			ErrUnreadable, key, Bucket, e.Revision, err)
	}
	s.Freezes = some(in)
	return s, nil
}

// list decodes the list in a revision.
func list(e kv.Entry) ([]schema.Freeze, error) {
	if e.Kind == kv.Lapsed {
		return nil, errors.New("the key expired, and freezes must not expire: remove the TTL of the bucket")
	}
	var in stored
	if err := schema.Unmarshal(e.Value, &in); err != nil {
		return nil, fmt.Errorf("this release does not know its format: %w", err)
	}
	if in.Freezes == nil {
		return nil, errors.New("it has no list of freezes")
	}
	for i := range in.Freezes {
		if err := checkAgents(in.Freezes[i].Agents); err != nil {
			return nil, fmt.Errorf("the freeze %d of it: %w", i+1, err)
		}
	}
	return in.Freezes, nil
}

// checkAgents returns what is wrong with the pattern of a freeze.
func checkAgents(agents string) error {
	if agents == "" {
		return fmt.Errorf("agents is missing; name the agents by a pattern, %s for all", schema.AllAgents)
	}
	if _, err := match.Compile(agents); err != nil {
		return fmt.Errorf("agents: %w", err)
	}
	return nil
}

// some returns the list, nil if it is empty.
func some(all []schema.Freeze) []schema.Freeze {
	if len(all) == 0 {
		return nil
	}
	return all
}
