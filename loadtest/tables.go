package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/tables"
)

// tablesCommand fills the tables of README.md and loadtest/BENCHMARKS.md.
func tablesCommand() *cobra.Command {
	var into string
	c := &cobra.Command{
		Use:    "tables DIR",
		Short:  "Write Markdown tables from the JSON reports in a folder",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage{fmt.Errorf("got %d folders; name one folder with reports: loadtest tables DIR", len(args))}
			}
			return nil
		},
	}
	c.Flags().StringVar(&into, "into", "", "write the tables between the markers of the page `FILE` instead of printing them")
	c.RunE = func(c *cobra.Command, args []string) error {
		if into == "" {
			return printTables(c, args[0])
		}
		page, err := os.ReadFile(into)
		if err != nil {
			return fmt.Errorf("reading the page: %w", err)
		}
		filled, err := tables.Fill(string(page), args[0])
		if err != nil {
			return err
		}
		if err := os.WriteFile(into, []byte(filled), 0o644); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
		return nil
	}
	return c
}

// printTables prints all views with figures.
func printTables(c *cobra.Command, dir string) error {
	for _, name := range tables.Names() {
		view, err := tables.View(dir, name)
		if err != nil {
			return err
		}
		if view != "" {
			fmt.Fprintf(c.OutOrStdout(), "## %s\n\n%s\n", name, view)
		}
	}
	return nil
}
