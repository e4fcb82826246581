package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// maxNote bounds the texts about a version, in bytes; longer ones are cut.
const maxNote = 256

// ErrMoved means that the active or proposed version is not the one that the caller expected.
var ErrMoved = errors.New("the configuration changed at the same time")

// ErrTooLarge means that a configuration is too large for a message.
var ErrTooLarge = errors.New("the configuration is too large")

// Busy is the error of a proposal while another version is proposed. Its proposer may still be
// working, or be dead: see [Proposal.Over].
type Busy struct {
	// Version is the version that is proposed, By the node that proposed it.
	Version uint64
	By      string
}

// Error names the proposed version and its proposer.
func (b *Busy) Error() string {
	return fmt.Sprintf("config version %d, proposed by %s, is about to become active; try again when it is", b.Version, b.By)
}

// A Proposal describes the origin and the conditions of a configuration.
type Proposal struct {
	// By is the node that proposes, Note a description for people. Both are cut to maxNote.
	By, Note string
	// Minor versions are deleted first: see [schema.VersionInfo].
	Minor bool
	// Base is the version that must be active; 0: any.
	Base uint64
	// First: no version may be active yet.
	First bool
	// Over is the proposed version that this one replaces, because its proposer is dead or too
	// slow; 0: none.
	Over uint64
}

// Propose writes cfg as a new version, whose number it returns, and proposes it to all nodes, which
// prepare it. [Configs.Activate] makes it the active one. If the active version has the same content,
// which includes the folder because programs are looked up there, nothing is written and same is true.
//
// Numbers grow, and may have gaps. The errors are *[Busy] while another version is proposed, [ErrMoved]
// if a condition of p does not hold, and [ErrTooLarge].
func (c *Configs) Propose(ctx context.Context, cfg schema.Config, p Proposal) (version uint64, same bool, err error) {
	w := proposing{configs: c, cfg: cfg, Proposal: p}
	if w.content, err = content(cfg); err != nil {
		return 0, false, err
	}
	if n, most := len(w.content), c.largest(); n > most {
		return 0, false, fmt.Errorf("%w: it takes %d KiB as JSON, and at most %d KiB are possible; write fewer or shorter hooks", ErrTooLarge, n>>10, most>>10)
	}
	err = kv.Retry(ctx, w.try)
	w.tidy(ctx, err)
	if err != nil {
		return 0, false, fmt.Errorf("proposing the configuration: %w", err)
	}
	return w.done, w.done != w.written, nil
}

// largest returns the largest configuration that the server accepts. Another deployment may accept less
// than schema.MaxPayload.
func (c *Configs) largest() int {
	if most := int(c.js.Conn().MaxPayload()); most > 0 {
		return min(MaxConfig, most-(schema.MaxPayload-schema.MaxEvent))
	}
	return MaxConfig
}

// content returns a configuration as JSON without its number, for comparisons.
func content(cfg schema.Config) ([]byte, error) {
	cfg.Version = 0
	first, err := schema.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be written as JSON: %w", err)
	}
	// Decode and encode once more, because decoded options have other Go types.
	var back schema.Config
	if err := schema.Unmarshal(first, &back); err != nil {
		return nil, fmt.Errorf("the configuration cannot be read back: %w", err)
	}
	return schema.Marshal(back)
}

// proposing is one call of Propose.
type proposing struct {
	Proposal
	configs *Configs
	cfg     schema.Config
	content []byte
	// digest is that of the written version.
	digest string
	// written is the version that holds cfg; 0: none yet.
	written uint64
	// done is the version with the content of cfg, once the outcome is certain. replaced is the
	// proposal that it replaced.
	done, replaced uint64
}

// try reads the pointer and, if no condition fails, writes the version and then the pointer. It reports
// whether it is done.
func (w *proposing) try(ctx context.Context) (bool, error) {
	cur, revision, err := w.configs.pointer(ctx)
	if err != nil {
		return false, err
	}
	if w.written > 0 && (cur.proposes(w.written) || cur.keeps(w.written)) {
		w.done = w.written // an earlier attempt without an answer succeeded
		return true, nil
	}
	if same, err := w.same(ctx, cur.Version); same || err != nil {
		w.done = cur.Version
		return same, err
	}
	if err := w.inTheWay(cur); err != nil {
		return false, err
	}
	if w.written <= cur.Last {
		if err := w.write(ctx, cur.Last+1); err != nil {
			return false, err
		}
	}
	set, err := w.configs.set(ctx, cur.propose(w.proposed()), revision)
	if set {
		w.done = w.written
	}
	if set && cur.Proposed != nil {
		w.replaced = cur.Proposed.Version
	}
	return set, err
}

// inTheWay returns why the proposal cannot be made now.
func (w *proposing) inTheWay(cur pointer) error {
	if w.First && cur.Version != 0 || w.Base != 0 && w.Base != cur.Version {
		return fmt.Errorf("version %d is active, no longer %d: %w", cur.Version, w.Base, ErrMoved)
	}
	if cur.Proposed != nil && cur.Proposed.Version != w.Over {
		return &Busy{Version: cur.Proposed.Version, By: cur.Proposed.By}
	}
	return nil
}

// same reports whether the active version has the proposed content.
func (w *proposing) same(ctx context.Context, active uint64) (bool, error) {
	if active == 0 {
		return false, nil
	}
	cfg, err := w.configs.Get(ctx, active)
	if errors.Is(err, ErrNoVersion) || errors.Is(err, ErrUnreadable) {
		return false, nil // replaced, deleted or damaged: it can be replaced
	}
	if err != nil {
		return false, err
	}
	c, err := content(cfg)
	return bytes.Equal(c, w.content), err
}

// tidy deletes the versions that will never be active. After an error that leaves the pointer unknown it
// keeps the written one, which may be proposed.
func (w *proposing) tidy(ctx context.Context, err error) {
	_, busy := errors.AsType[*Busy](err)
	known := err == nil || busy || errors.Is(err, ErrMoved)
	if known && w.written > 0 && w.done != w.written {
		w.configs.discard(ctx, w.written)
	}
	if w.replaced > 0 {
		w.configs.discard(ctx, w.replaced)
	}
}

func (w *proposing) proposed() *proposed {
	return &proposed{Version: w.written, By: cut(w.By), Note: cut(w.Note), Hooks: w.cfg.HookCount(), Minor: w.Minor, Digest: w.digest}
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxNote)], "") }

// write stores the configuration under the first free number from n.
func (w *proposing) write(ctx context.Context, n uint64) error {
	for range kv.Attempts {
		w.cfg.Version = n
		data, err := schema.Marshal(w.cfg)
		if err != nil {
			return err
		}
		_, err = w.configs.kv.Update(ctx, versionKey(n), data, 0)
		if err == nil {
			w.written, w.digest = n, digestOf(data)
			return nil
		}
		if !kv.Refused(err) {
			return err
		}
		n++ // taken by another proposer, whose pointer may follow
	}
	return fmt.Errorf("the config versions up to %d are taken; try again", n-1)
}
