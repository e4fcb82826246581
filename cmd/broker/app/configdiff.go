package app

import (
	"context"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/schema"
)

func diffCommand() *cobra.Command {
	var r remote
	c := &cobra.Command{
		Use: "diff [A [B]]", Short: "Show what differs between two versions, as a unified diff",
		Long: "diff shows what differs between version A and version B. Without B that is the active version;\n" +
			"without both, what made the active version differ from the one before it.",
		Args: takes(0, 2, "two versions at most"),
		RunE: func(c *cobra.Command, args []string) error {
			a, b, err := r.sides(c.Context(), args)
			if err != nil {
				return err
			}
			text := diff.Diff(a.name, []byte(a.text), b.name, []byte(b.text))
			if text == nil {
				text = fmt.Appendf(nil, "no difference between %s and %s\n", a.name, b.name)
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
	r.flags(c)
	return c
}

// A side is one of the two texts of a diff.
type side struct{ name, text string }

// sides are the two texts that a diff's arguments name.
func (r *remote) sides(ctx context.Context, args []string) (a, b side, err error) {
	if len(args) == 0 {
		return r.lastChange(ctx)
	}
	if a, err = r.side(ctx, args[0]); err != nil {
		return a, b, err
	}
	if len(args) == 1 {
		b, err = r.shown(ctx, 0)
	} else {
		b, err = r.side(ctx, args[1])
	}
	return a, b, err
}

// lastChange is the version before the active one, and that.
func (r *remote) lastChange(ctx context.Context) (a, b side, err error) {
	answer, err := r.config(ctx, schema.ConfigRequest{Action: schema.ActionHistory})
	if err != nil {
		return a, b, err
	}
	older := before(answer.History, answer.Version)
	if older == nil {
		return a, b, fmt.Errorf("no version before version %d is kept, to compare it with; 'broker config show' shows it", answer.Version)
	}
	if a, err = r.shown(ctx, older.Version); err != nil {
		return a, b, err
	}
	b, err = r.shown(ctx, answer.Version)
	return a, b, err
}

func (r *remote) side(ctx context.Context, arg string) (side, error) {
	n, err := version(arg)
	if err != nil {
		return side{}, err
	}
	return r.shown(ctx, n)
}

// shown is a version; 0: the active one.
func (r *remote) shown(ctx context.Context, version uint64) (side, error) {
	answer, err := r.config(ctx, schema.ConfigRequest{Action: schema.ActionShow, Version: version})
	if err != nil {
		return side{}, err
	}
	return side{fmt.Sprintf("version %d", answer.Version), answer.Text}, nil
}
