package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// trustable rejects --trust where it is not needed and where it cannot work.
func (in *installing) trustable() error {
	switch {
	case !in.trust:
		return nil
	case in.Runtime != "codex" || in.managed:
		return program.UsageError("--trust works only for codex without --managed; leave it out, nothing else needs it")
	case in.Machine.Root != "":
		return program.UsageError("--trust talks to the Codex of this machine and does not work with --root; trust the hooks when the image runs")
	}
	return nil
}

// trustCodex makes Codex trust the hooks of agentshim, or forget them before they are
// removed.
func (in *installing) trustCodex(ctx context.Context, trust bool) error {
	n, err := in.tellCodex(ctx, trust)
	if err != nil {
		return fmt.Errorf("the hooks are installed, but Codex skips them because it does not trust them yet: %w; run codex, enter /hooks, and trust those of agentshim", err)
	}
	if n > 0 && trust {
		fmt.Fprintf(in.stdout, "Codex trusts %d hooks of agentshim now\n", n)
	}
	return nil
}

// tellCodex makes Codex trust, or forget, the hooks in the installation's own file. It
// ignores similar hooks in other files, because another program may have written them. It
// returns the number of hooks.
func (in *installing) tellCodex(ctx context.Context, trust bool) (int, error) {
	ours, err := install.Find(in.Machine, in.Runtime, in.Scope)
	if err != nil {
		return 0, err
	}
	return probe.TrustCodex(ctx, in.Machine.Dir, trust, func(h *probe.CodexHook) bool {
		source, err := filepath.EvalSymlinks(h.Source)
		return err == nil && source == ours.Path && h.TrustStatus != "managed" &&
			slices.ContainsFunc(ours.Hooks, func(o install.Owned) bool { return o.Line == h.Command })
	})
}

// forget makes Codex forget the hooks of agentshim, if Codex is installed.
func (in *installing) forget(ctx context.Context) {
	if in.Runtime != "codex" || in.managed || in.dryRun || in.Machine.Root != "" || !in.Version.Known() {
		return
	}
	if err := in.trustCodex(ctx, false); err != nil {
		fmt.Fprintf(in.stderr, "agentshim: Codex still lists the hashes of removed hooks, which does no harm: %v\n", errors.Unwrap(err))
	}
}
