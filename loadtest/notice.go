package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/notice"
)

func noticeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "notice",
		Short: "Measure how long the fabric takes to notice that a worker or an aggregator is lost",
		Args:  noArgs,
	}
	f := flags(c)
	only := c.Flags().StringSlice("only", nil, "measure only these comma-separated `LOSSES`: "+strings.Join(notice.Losses(), ", ")+" (default: all)")
	slack := slackFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := notice.Thorough()
		if f.quick {
			o = notice.Quick()
		}
		if f.reps > 0 {
			o.Repetitions = f.reps
		}
		o.Only, o.Slack = *only, *slack
		if err := o.Check(); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.dir, s.crew, s.live
			return notice.Run(c.Context(), o)
		})
	}
	return c
}
