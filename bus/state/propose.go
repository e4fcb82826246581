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

// maxNote is how long the words about a version may be; longer ones are cut.
const maxNote = 256

// ErrMoved says that another version is active, or proposed, than the caller
// took for granted.
var ErrMoved = errors.New("the configuration changed at the same time")

// ErrTooLarge says that a configuration cannot be kept.
var ErrTooLarge = errors.New("the configuration is too large")

// Busy is the error of a proposal while another one stands. Its proposer may
// be at work, which is worth waiting for, or dead: see [Proposal.Over].
type Busy struct {
	// Version is the version that is proposed, By the node that proposed it.
	Version uint64
	By      string
}

// Error says who is at work.
func (b *Busy) Error() string {
	return fmt.Sprintf("config version %d, proposed by %s, is about to become active; try again when it is", b.Version, b.By)
}

// A Proposal says where a configuration comes from, and what must still hold.
type Proposal struct {
	// By is the node that proposes, Note what it is: for people. Both are cut
	// when they are long.
	By, Note string
	// Minor versions are the first that are forgotten: see [schema.VersionInfo].
	Minor bool
	// Base is the version that must be active for the proposal to make sense;
	// 0: any.
	Base uint64
	// First: no version may be active yet.
	First bool
	// Over is the proposed version that this one replaces, because its proposer
	// is dead or its time is up; 0: none.
	Over uint64
}

// Propose writes cfg as a version of its own, whose number it returns, and
// proposes it to all nodes, which then get it ready; [Configs.Activate] makes
// it the active one. If the active version already says the same (its number
// aside; the folder counts, because programs are looked up there), nothing is
// written and same is true.
//
// Numbers only grow; some may be skipped. While another proposal stands the
// error is a *[Busy]; if another version is active than it asks for, [ErrMoved]; of
// a configuration that no message holds, [ErrTooLarge].
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

// largest is the largest configuration that the server takes: one that is not
// ours may take less than the contract's largest message.
func (c *Configs) largest() int {
	if most := int(c.js.Conn().MaxPayload()); most > 0 {
		return min(MaxConfig, most-(schema.MaxPayload-schema.MaxEvent))
	}
	return MaxConfig
}

// content is what two configurations have in common when they say the same.
func content(cfg schema.Config) ([]byte, error) {
	cfg.Version = 0
	first, err := schema.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be written as JSON: %w", err)
	}
	// Once around, because options read back may be of other Go types.
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
	// digest is that of the version as it was written.
	digest string
	// written is the version that holds cfg, proposed or not yet; 0 is none.
	written uint64
	// done is the version that says the same as cfg, once that is settled, and
	// replaced the proposal that it took the place of.
	done, replaced uint64
}

// try reads what is active and proposed and, if nothing is in the way, writes
// the version and then the pointer to it. It reports whether that is settled.
func (w *proposing) try(ctx context.Context) (bool, error) {
	cur, revision, err := w.configs.pointer(ctx)
	if err != nil {
		return false, err
	}
	if w.written > 0 && (cur.proposes(w.written) || cur.keeps(w.written)) {
		w.done = w.written // An attempt that nobody answered went through.
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

// inTheWay says why the proposal cannot be made now.
func (w *proposing) inTheWay(cur pointer) error {
	if w.First && cur.Version != 0 || w.Base != 0 && w.Base != cur.Version {
		return fmt.Errorf("version %d is active, no longer %d: %w", cur.Version, w.Base, ErrMoved)
	}
	if cur.Proposed != nil && cur.Proposed.Version != w.Over {
		return &Busy{Version: cur.Proposed.Version, By: cur.Proposed.By}
	}
	return nil
}

// same reports whether the active version says what is proposed.
func (w *proposing) same(ctx context.Context, active uint64) (bool, error) {
	if active == 0 {
		return false, nil
	}
	cfg, err := w.configs.Get(ctx, active)
	if errors.Is(err, ErrNoVersion) || errors.Is(err, ErrUnreadable) {
		return false, nil // Replaced meanwhile, deleted, or spoilt: then it is no longer in the way.
	}
	if err != nil {
		return false, err
	}
	c, err := content(cfg)
	return bytes.Equal(c, w.content), err
}

// tidy deletes the versions that will never be active. After an error that does
// not say what the pointer is, the own one may be proposed all the same.
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
	return &proposed{Version: w.written, By: cut(w.By), Note: cut(w.Note), Hooks: w.cfg.Written(), Minor: w.Minor, Digest: w.digest}
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
		n++ // Somebody else's, whose pointer may still come.
	}
	return fmt.Errorf("the config versions up to %d are taken; try again", n-1)
}
