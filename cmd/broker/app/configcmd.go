package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// configCommand is `broker config`.
func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Show the stored versions of the configuration, compare them, and roll back",
		Args: program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(showCommand(), historyCommand(), diffCommand(), rollbackCommand())
	return c
}

// config makes one control request with the verb config.
func (r *remote) config(ctx context.Context, req schema.ConfigRequest) (*schema.ConfigAnswer, error) {
	answer := &schema.ConfigAnswer{}
	if err := r.ask(ctx, "config", "", req, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// version parses the number of a version.
func version(arg string) (uint64, error) {
	n, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || n == 0 {
		return 0, program.UsageError("%q is not a version; use a number that 'broker config history' lists, such as 7", arg)
	}
	return n, nil
}

func showCommand() *cobra.Command {
	var r remote
	var asJSON bool
	c := &cobra.Command{
		Use: "show [VERSION]", Short: "Print a version of the configuration, or the active one, as a hooks.yaml", Args: takes(0, 1, "one version at most"),
		Long:    "show prints a version of the configuration as a hooks.yaml that 'broker apply' accepts (default: the active version).",
		Example: "  broker config show 7",
		RunE: func(c *cobra.Command, args []string) error {
			req := schema.ConfigRequest{Action: schema.ActionShow}
			if len(args) > 0 {
				n, err := version(args[0])
				if err != nil {
					return err
				}
				req.Version = n
			}
			answer, err := r.config(c.Context(), req)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), answer.Config)
			}
			_, err = io.WriteString(c.OutOrStdout(), answer.Text)
			return err
		},
	}
	r.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the stored configuration as JSON")
	return c
}

func historyCommand() *cobra.Command {
	var r remote
	var asJSON bool
	c := &cobra.Command{
		Use: "history", Short: "List the stored versions of the configuration, newest first", Args: program.NoArgs,
		Long:    "history lists the versions that the fabric stores, at most eight, the newest first.",
		Example: "  broker config history --json",
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := r.config(c.Context(), schema.ConfigRequest{Action: schema.ActionHistory})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), answer)
			}
			return printHistory(c.OutOrStdout(), answer)
		},
	}
	r.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printHistory(w io.Writer, answer *schema.ConfigAnswer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "VERSION\tACTIVE\tWHEN\tHOOKS\tBY\tNOTE")
	for _, v := range answer.History {
		active, when := "", ""
		if v.Version == answer.Version {
			active = "yes"
		}
		if !v.At.IsZero() {
			when = v.At.Local().Format(time.RFC3339)
		}
		row(t, v.Version, active, when, v.Hooks, v.By, v.Note)
	}
	return t.Flush()
}

// versionIn returns a version of a history; nil: the history does not have it.
func versionIn(history []schema.VersionInfo, version uint64) *schema.VersionInfo {
	if i := slices.IndexFunc(history, func(v schema.VersionInfo) bool { return v.Version == version }); i >= 0 {
		return &history[i]
	}
	return nil
}

// before returns the newest version that is older than version; nil: there is no older one.
func before(history []schema.VersionInfo, version uint64) *schema.VersionInfo {
	older := slices.DeleteFunc(slices.Clone(history), func(v schema.VersionInfo) bool { return v.Version >= version })
	if len(older) == 0 {
		return nil
	}
	newest := slices.MaxFunc(older, func(a, b schema.VersionInfo) int { return cmp.Compare(a.Version, b.Version) })
	return &newest
}

func rollbackCommand() *cobra.Command {
	var change changing
	c := &cobra.Command{
		Use: "rollback VERSION", Short: "Publish the content of an earlier version again, under a new number",
		Long:    "rollback publishes the content of an earlier version under a new number. It checks and waits as 'broker apply' does.",
		Example: "  broker config rollback 7",
		Args:    takes(1, 1, "one version"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := version(args[0])
			if err != nil {
				return err
			}
			return change.run(c, schema.ConfigRequest{Action: schema.ActionRollback, Version: n}, "version "+args[0])
		},
	}
	change.flags(c)
	return c
}
