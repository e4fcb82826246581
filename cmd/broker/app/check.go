package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// checkCommand checks a hooks.yaml without a fabric.
func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Check a hooks.yaml: all faults at once",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return program.UsageError("check takes one file; see '%s --help'", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := ReadConfig(args[0])
			if err != nil {
				return err
			}
			for _, w := range doc.Warnings {
				fmt.Fprintln(c.ErrOrStderr(), w.String())
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d hooks, no faults\n", args[0], len(doc.Config.Hooks))
			return err
		},
	}
}
