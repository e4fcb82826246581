package shimstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	maxFabrics     = 64                  // limits the fabrics whose handovers are read
	handoverExpiry = 30 * 24 * time.Hour // the age at which files of agents that ended are removed
	// ackTime is how long an acknowledgement is useful. Later only sequences prevent duplicates.
	ackTime = 10 * time.Minute

	// The limits of a file. What a file drops may be delivered twice.
	maxEvents       = 500
	maxSequences    = 2000
	maxHandoverFile = 128 << 10
)

// handovers are what one agent got from one fabric, both oldest first.
type handovers struct {
	Events    []string `json:"events,omitzero"`    // the events that are not acknowledged yet
	Sequences []uint64 `json:"sequences,omitzero"` // the delivered items
}

// Handovers returns the stored handovers of an agent. The error names files that cannot be read.
func (f Folder) Handovers(agent string) (all []client.Handover, err error) {
	if f == "" {
		return nil, nil
	}
	token, err := agentToken(agent)
	if err != nil {
		return nil, err
	}
	fabrics, err := f.fabrics()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range fabrics {
		fabric, err := bus.ParseToken(e.Name())
		if err != nil {
			continue // other state
		}
		h, written, err := handoverFile(f.path(e.Name()), token).load()
		if err != nil {
			errs = append(errs, err)
		}
		if time.Since(written) > ackTime {
			h.Events = nil
		}
		if len(h.Events)+len(h.Sequences) > 0 {
			all = append(all, client.Handover{Fabric: fabric, Agent: agent, Events: h.Events, Sequences: h.Sequences})
		}
	}
	return all, errors.Join(errs...)
}

// fabrics returns the folders of fabrics; of more than maxFabrics those that were written last.
func (f Folder) fabrics() ([]fs.DirEntry, error) {
	all, err := os.ReadDir(f.path())
	if len(all) <= maxFabrics {
		return all, err
	}
	written := make(map[string]time.Time, len(all))
	for _, e := range all {
		if info, err := e.Info(); err == nil {
			written[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return written[b.Name()].Compare(written[a.Name()]) })
	return all[:maxFabrics], err
}

// AddHandover stores a handover that the fabric has not confirmed, and removes acknowledged events.
func (f Folder) AddHandover(h client.Handover, acknowledged []string) error {
	if f == "" || h.Fabric == "" {
		return nil
	}
	dir, err := f.fabric(h.Fabric)
	if err != nil {
		return err
	}
	token, err := agentToken(h.Agent)
	if err != nil {
		return err
	}
	return handoverFile(dir, token).update(func(all *handovers) (bool, error) { return all.change(h, acknowledged), nil })
}

func handoverFile(dir, token string) file[handovers] {
	stored := jsonFile[handovers]("the handovers of the agent", maxHandoverFile, filepath.Join(dir, token+suffix), filepath.Join(dir, lockName), handoverExpiry)
	stored.decode = decodeHandovers
	return stored
}

// decodeHandovers rejects an event that is no UUID: it would make the shim's requests malformed.
func decodeHandovers(data []byte) (h handovers, err error) {
	if err := schema.Unmarshal(data, &h); err != nil {
		return handovers{}, fmt.Errorf("it is not a file of agentshim, and counts as empty: %w", err)
	}
	for _, e := range h.Events {
		if len(e) != len(uuid.Nil.String()) || uuid.Validate(e) != nil {
			return handovers{}, fmt.Errorf("%.64q is not an event id, so the file counts as empty", e)
		}
	}
	if len(h.Events) > maxEvents || len(h.Sequences) > maxSequences {
		return handovers{}, fmt.Errorf("it has %d events and %d sequences, so it counts as empty; the limits are %d and %d", len(h.Events), len(h.Sequences), maxEvents, maxSequences)
	}
	return h, nil
}

// change adds a handover and removes acknowledged events, and reports whether that changed anything.
func (h *handovers) change(more client.Handover, acknowledged []string) bool {
	events := slices.DeleteFunc(slices.Clone(h.Events), func(e string) bool { return slices.Contains(acknowledged, e) })
	events = appendNew(events, more.Events, maxEvents)
	sequences := appendNew(slices.Clone(h.Sequences), more.Sequences, maxSequences)
	if slices.Equal(events, h.Events) && slices.Equal(sequences, h.Sequences) {
		return false
	}
	h.Events, h.Sequences = events, sequences
	return true
}

// appendNew appends the values of more that all does not have, and returns the last values up to limit.
func appendNew[T comparable](all, more []T, limit int) []T {
	for _, m := range more {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all[max(0, len(all)-limit):]
}
