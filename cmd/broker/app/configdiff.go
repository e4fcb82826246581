package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

func diffCommand() *cobra.Command {
	var r remote
	c := &cobra.Command{
		Use: "diff [A [B]]", Short: "Compare two versions or files of the configuration, as a unified diff",
		Long: "diff compares A with B. Each is a version or a file; - is stdin. Without B, it compares a version with the active one,\n" +
			"and shows what applying a file would change. Without A and B, it compares the active version with the one before.\n" +
			"Files are shown as the fabric would store them: without comments and defaults.",
		Example: "  broker config diff\n" +
			"  broker config diff 7\n" +
			"  broker config diff hooks.yaml",
		Args: takes(0, 2, "two versions or files at most"),
		RunE: func(c *cobra.Command, args []string) error {
			a, b, err := r.sides(c.Context(), args, c.InOrStdin())
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

// sides returns the two texts that the arguments of a diff name.
func (r *remote) sides(ctx context.Context, args []string, stdin io.Reader) (a, b side, err error) {
	if len(args) == 0 {
		return r.lastChange(ctx)
	}
	if a, err = r.side(ctx, args[0], stdin); err != nil {
		return a, b, err
	}
	if len(args) == 2 {
		b, err = r.side(ctx, args[1], stdin)
		return a, b, err
	}
	b, err = r.shown(ctx, 0)
	if isFile(args[0]) {
		a, b = b, a
	}
	return a, b, err
}

// lastChange returns the version before the active one, and the active one.
func (r *remote) lastChange(ctx context.Context) (a, b side, err error) {
	answer, err := r.config(ctx, schema.ConfigRequest{Action: schema.ActionHistory})
	if err != nil {
		return a, b, err
	}
	older := before(answer.History, answer.Version)
	if older == nil {
		return a, b, fmt.Errorf("there is no stored version before version %d to compare it with; print it with 'broker config show'", answer.Version)
	}
	if a, err = r.shown(ctx, older.Version); err != nil {
		return a, b, err
	}
	b, err = r.shown(ctx, answer.Version)
	return a, b, err
}

func (r *remote) side(ctx context.Context, arg string, stdin io.Reader) (side, error) {
	if isFile(arg) {
		return fileSide(arg, stdin)
	}
	n, err := version(arg)
	if err != nil {
		return side{}, err
	}
	return r.shown(ctx, n)
}

// isFile reports whether an argument names a file and not a version.
func isFile(arg string) bool {
	if arg == "-" || strings.ContainsAny(arg, "./") {
		return true
	}
	if _, err := strconv.ParseUint(arg, 10, 64); err == nil {
		return false
	}
	_, err := os.Stat(arg)
	return err == nil
}

// fileSide returns a file in the form in which versions are shown.
func fileSide(path string, stdin io.Reader) (side, error) {
	doc, err := checkSource(path, stdin)
	if err != nil {
		return side{}, err
	}
	return side{sourceName(path), string(hooksyaml.Write(&doc.Config))}, nil
}

// shown returns a version; 0: the active one.
func (r *remote) shown(ctx context.Context, version uint64) (side, error) {
	answer, err := r.config(ctx, schema.ConfigRequest{Action: schema.ActionShow, Version: version})
	if err != nil {
		return side{}, err
	}
	return side{fmt.Sprintf("version %d", answer.Version), answer.Text}, nil
}
