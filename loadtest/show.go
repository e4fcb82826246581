package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/report"
)

// showCommand makes tables, a page and pictures from the files of earlier runs, in the
// current format.
func showCommand() *cobra.Command {
	f := new(measuring)
	c := &cobra.Command{
		Use:   "show RUN.json [RUN.json ...]",
		Short: "Show the results of earlier runs again: as tables, a page or pictures",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage{errors.New("name at least one file that a run wrote with --json: loadtest show RUN.json")}
			}
			return nil
		},
	}
	c.Flags().StringVar(&f.html, "html", "", "also write all runs with their plots as one HTML page to `FILE`")
	c.Flags().StringVar(&f.svg, "svg", "", "also write each plot as an SVG picture to the folder `DIR`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.places(); err != nil {
			return err
		}
		runs, err := readAll(args)
		if err != nil {
			return err
		}
		errs := []error{report.Print(c.OutOrStdout(), runs...)}
		if f.html != "" {
			errs = append(errs, writePage(f.html, runs...))
		}
		if f.svg != "" {
			for _, d := range runs {
				_, err := report.Pictures(f.svg, d)
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	return c
}
