package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// clusterCommand runs the bundled scenario of a cluster, with flags for its faults.
func clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Kill, stop, restart and cut off each broker of a cluster of three, under load, and check every answer (Linux)",
		Args:  noArgs,
	}
	quick := c.Flags().Bool("quick", false, "cause each fault only once, for a short time, to see that it works")
	only := c.Flags().StringSlice("only", nil, "run only these comma-separated `PARTS`: rolling, change, kill, stop, part, one-way, freeze (default: all)")
	away := c.Flags().Duration("away", 8*time.Second, "duration of each fault")
	c.RunE = running(c, func([]string) (*scenario.Scenario, error) {
		s, err := scenario.Shipped("cluster")
		if err != nil {
			return nil, err
		}
		if *quick {
			s.Rate, s.Cluster.Away = 60, schema.Duration(5*time.Second)
			for i := range s.Cluster.Parts {
				p := &s.Cluster.Parts[i]
				p.Each = p.Unnoticed() // restarts are short
			}
		}
		set := saying(c)
		set("away", func() { s.Cluster.Away = schema.Duration(*away) })
		set("only", func() { err = s.Cluster.Only(*only) })
		return s, err
	})
	return c
}

// brokerHosts opens a host for each broker, so that brokers can be cut off. If that needs
// another process, the command runs there, and done is true.
func brokerHosts(c *cobra.Command, brokers int) (all []*faults.Host, done bool, err error) {
	missing := faults.HostsMissing()
	switch {
	case missing != nil:
		fmt.Fprintf(c.ErrOrStderr(), "NO BROKER IS CUT OFF: %v\n", missing)
		return nil, false, nil
	case !faults.IsAlone():
		return nil, true, apart(c)
	}
	all, err = faults.OpenHosts(brokers)
	return all, false, err
}

// ended is the error of a command that failed in its own network. That process has already
// printed the reason.
type ended struct{ code int }

func (e ended) Error() string {
	return fmt.Sprintf("the process in its own network ended with exit code %d", e.code)
}

// apart runs the command again, in its own network.
func apart(c *cobra.Command) error {
	args := []string{c.Name()}
	c.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if all, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(all.GetSlice(), ",")
		}
		args = append(args, "--"+f.Name+"="+value)
	})
	code, err := faults.Alone(c.Context(), append(args, c.Flags().Args()...), c.OutOrStdout(), c.ErrOrStderr())
	if err == nil && code != 0 {
		err = ended{code}
	}
	return err
}
