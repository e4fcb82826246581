package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A pointer is the value of the key `current`. Every decision about versions is a compare-and-set of
// this one key, so each reader sees a consistent state.
type pointer struct {
	// Version is the active version; 0: none yet.
	Version uint64 `json:"version"`
	// Last is the highest number that was ever proposed. A version up to it that is neither kept
	// nor proposed will never be active, and can be deleted.
	Last uint64 `json:"last"`
	// Kept are the active version and earlier active versions, newest first.
	Kept []schema.VersionInfo `json:"kept,omitzero"`
	// Proposed is the version that is to become active; nil: none.
	Proposed *proposed `json:"proposed,omitzero"`
}

// proposed is a version that nodes prepare.
type proposed struct {
	Version uint64 `json:"version"`
	By      string `json:"by,omitzero"`
	Note    string `json:"note,omitzero"`
	Hooks   int    `json:"hooks"`
	Minor   bool   `json:"minor,omitzero"`
	// Digest is the SHA-256 of the stored version.
	Digest string `json:"digest,omitzero"`
}

// digest returns the digest of a version when it was proposed; empty: unknown.
func (p *pointer) digest(version uint64) string {
	if p.proposes(version) {
		return p.Proposed.Digest
	}
	if i := slices.IndexFunc(p.Kept, func(v schema.VersionInfo) bool { return v.Version == version }); i >= 0 {
		return p.Kept[i].Digest
	}
	return ""
}

// digestOf returns the digest of a stored version.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// proposes reports whether version is the proposed one.
func (p pointer) proposes(version uint64) bool {
	return p.Proposed != nil && p.Proposed.Version == version
}

// keeps reports whether version is active, or was active and still exists.
func (p pointer) keeps(version uint64) bool {
	return slices.ContainsFunc(p.Kept, func(v schema.VersionInfo) bool { return v.Version == version })
}

// propose returns the pointer with n as the proposed version.
func (p pointer) propose(n *proposed) pointer {
	p.Last, p.Proposed = n.Version, n
	return p
}

// activate returns the pointer with the proposed version as the active one.
func (p pointer) activate(at time.Time) pointer {
	n := p.Proposed
	info := schema.VersionInfo{Version: n.Version, At: at, By: n.By, Note: n.Note, Hooks: n.Hooks, Minor: n.Minor, Digest: n.Digest}
	p.Version, p.Proposed, p.Kept = n.Version, nil, forget(append([]schema.VersionInfo{info}, p.Kept...))
	return p
}

// forget removes one version if there are too many: the oldest minor one that nodes do not keep, so that
// versions for a rollback stay, otherwise the oldest one.
func forget(kept []schema.VersionInfo) []schema.VersionInfo {
	if len(kept) <= HistoryConfigs {
		return kept
	}
	for i := len(kept) - 1; i >= KeptConfigs; i-- {
		if kept[i].Minor {
			return slices.Delete(kept, i, i+1)
		}
	}
	return kept[:HistoryConfigs]
}

// withdraw returns the pointer without a proposed version.
func (p pointer) withdraw() pointer {
	p.Proposed = nil
	return p
}

// keep returns the versions that nodes keep, newest first.
func (p pointer) keep() []uint64 {
	var all []uint64
	if p.Proposed != nil {
		all = append(all, p.Proposed.Version)
	}
	for _, v := range p.Kept[:min(len(p.Kept), KeptConfigs)] {
		all = append(all, v.Version)
	}
	return all
}

// pointer reads the key `current` and its revision from the leader.
func (c *Configs) pointer(ctx context.Context) (pointer, uint64, error) {
	data, revision, err := c.last(ctx, currentKey)
	if err != nil {
		return pointer{}, 0, fmt.Errorf("reading which config version is active: %w", err)
	}
	p, err := readPointer(data, revision)
	if err == nil {
		c.named.Store(&p)
	}
	return p, revision, err
}

// readPointer parses the leader's value of the key.
func readPointer(data []byte, revision uint64) (pointer, error) {
	switch {
	case revision == 0:
		return pointer{}, nil
	case len(data) == 0:
		return pointer{}, fmt.Errorf("the key %s of the bucket %s was deleted; delete the whole bucket to start a new fabric", currentKey, ConfigBucket)
	}
	return parsePointer(data)
}

func parsePointer(data []byte) (pointer, error) {
	var p pointer
	if err := schema.Unmarshal(data, &p); err != nil || !p.sound() {
		return pointer{}, fmt.Errorf("the key %s of the bucket %s holds %.100q, which names no config version", currentKey, ConfigBucket, data)
	}
	return p, nil
}

// sound reports whether a pointer is consistent.
func (p pointer) sound() bool {
	if p.Last == 0 || p.Version > p.Last || len(p.Kept) > HistoryConfigs {
		return false
	}
	if n := p.Proposed; n != nil && (n.Version <= p.Version || n.Version > p.Last) {
		return false
	}
	next := p.Version // without an active version there are no others
	for i, v := range p.Kept {
		if v.Version == 0 || i == 0 && v.Version != next || i > 0 && v.Version >= next {
			return false
		}
		next = v.Version
	}
	return len(p.Kept) > 0 == (p.Version > 0)
}
