package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/figures"
	"github.com/hookfabric/hookfabric/loadtest/model"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/scale"
	"github.com/hookfabric/hookfabric/schema"
)

func modelCommand() *cobra.Command {
	f, units, page := model.Default(), "", ""
	c := &cobra.Command{
		Use:   "model",
		Short: "Calculate the needs of a fleet of any size from the figures of scale; measures nothing",
		Args:  noArgs,
	}
	fl := c.Flags()
	fl.Float64Var(&f.Agents, "agents", f.Agents, "agents that work at the same time")
	fl.Float64Var(&f.CallsPerMinute, "calls-per-minute", f.CallsPerMinute, "events per minute of one agent")
	fl.Float64Var(&f.Local, "local", f.Local, "fraction of events with a hook inside the broker, 0 to 1")
	fl.Float64Var(&f.Remote, "remote", f.Remote, "fraction of events with a hook on a worker, 0 to 1")
	fl.Float64Var(&f.HookTime, "hook-time", f.HookTime, "CPU time of a hook on a worker, in seconds")
	fl.Float64Var(&f.Injections, "injections", f.Injections, "messages per hour to one agent")
	fl.Float64Var(&f.Pending, "pending", f.Pending, "average number of waiting messages per agent")
	fl.Float64Var(&f.AgentsPerHost, "agents-per-host", f.AgentsPerHost, "agents that share a connection")
	fl.Float64Var(&f.Cores, "cores", f.Cores, "cores of one machine")
	fl.Float64Var(&f.Busy, "busy", f.Busy, "fraction of the cores that may be busy, above 0 and up to 1")
	fl.Float64Var(&f.Memory, "memory", f.Memory, "memory limit of a broker, in bytes")
	fl.StringVar(&units, "units", "", "read the costs from `FILE`, which 'loadtest scale --json' wrote (default: bundled costs)")
	fl.StringVar(&page, "html", "", "also write the tables as an HTML page to `FILE`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.Check(); err != nil {
			return usage{err}
		}
		if page != "" {
			if err := writable(page); err != nil {
				return usage{err}
			}
		}
		u, origin, err := unitsOf(units)
		if err != nil {
			return err
		}
		d := f.Document(&u)
		d.Scenario, d.Command, d.Started = c.Name(), typed(c), time.Now().UTC().Round(time.Millisecond)
		d.Notes = append(d.Notes, origin)
		if page != "" {
			if err := writePage(page, d); err != nil {
				return err
			}
		}
		return report.Print(c.OutOrStdout(), d)
	}
	return c
}

// unitsOf returns the units of a report of scale, and where and when they were measured.
// Without a file they are those of loadtest/BENCHMARKS.md.
func unitsOf(file string) (u model.Units, origin string, err error) {
	name, body, more := "the bundled run", figures.Scale, " For your own machine, run `loadtest scale --json FILE` and use --units FILE."
	if file != "" {
		name, more = file, ""
		if body, err = os.ReadFile(file); err != nil {
			return u, "", fmt.Errorf("reading the costs: %w", err)
		}
	}
	var r scale.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		return u, "", fmt.Errorf("%s is not a report of 'loadtest scale': %w", name, err)
	}
	if r.Scenario != "scale" {
		return u, "", fmt.Errorf("%s is a report of %q; name a file that 'loadtest scale --json' wrote", name, r.Scenario)
	}
	return r.Units, fmt.Sprintf("Costs were measured on %s, on %s.%s", r.Started.UTC().Format("2006-01-02"), r.Machine, more), nil
}
