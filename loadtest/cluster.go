package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/loadtest/cluster"
	"github.com/hookfabric/hookfabric/loadtest/lan"
)

func clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Kill, stop, restart and cut off each broker of a cluster of three, under load, and check every answer (Linux)",
		Args:  noArgs,
	}
	f := new(measuring)
	f.outputs(c)
	c.Flags().BoolVar(&f.quick, "quick", false, "cause each fault only once, for a short time, to see that it works")
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 if a figure exceeds its budget; a wrong answer still fails the run")
	usual := cluster.Thorough()
	only := c.Flags().StringSlice("only", nil, "run only these comma-separated `PARTS`: "+strings.Join(cluster.Parts(), ", ")+" (default: all)")
	rate := c.Flags().Float64("rate", usual.Rate, "tool calls per second of all agents together")
	away := c.Flags().Duration("away", usual.Away, "duration of each fault")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := usual
		if f.quick {
			o = cluster.Quick()
		}
		set := saying(c)
		set("rate", func() { o.Rate = *rate })
		set("away", func() { o.Away = *away })
		o.Only = *only
		if err := o.Check(); err != nil {
			return usage{err}
		}
		missing := lan.Possible()
		switch {
		case missing != nil:
			fmt.Fprintf(c.ErrOrStderr(), "NO BROKER IS CUT OFF: %v\n", missing)
		case !lan.IsAlone():
			return apart(c)
		default:
			l, err := lan.Open(cluster.Brokers)
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }() // what is left of it ends with this process
			o.Lan = l
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress, o.Live = s.dir, s.crew, s.live, s.live
			return cluster.Run(c.Context(), o)
		})
	}
	return c
}

// ended is how a command ended that ran elsewhere, which has said why.
type ended struct{ code int }

func (e ended) Error() string {
	return fmt.Sprintf("the process in its own network ended with exit code %d", e.code)
}

// apart runs the command once more, in a network of its own.
func apart(c *cobra.Command) error {
	args := []string{c.Name()}
	c.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if all, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(all.GetSlice(), ",")
		}
		args = append(args, "--"+f.Name+"="+value)
	})
	code, err := lan.Alone(c.Context(), args, c.OutOrStdout(), c.ErrOrStderr())
	if err == nil && code != 0 {
		err = ended{code}
	}
	return err
}
