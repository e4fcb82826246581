package main

import (
	"fmt"
	"io"
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
		Short: "Calculate what a fleet of any size takes, from what one of each costs; it measures nothing",
		Args:  noArgs,
	}
	fl := c.Flags()
	fl.Float64Var(&f.Agents, "agents", f.Agents, "how many agents are at work at the same time")
	fl.Float64Var(&f.CallsPerMinute, "calls-per-minute", f.CallsPerMinute, "how many events one agent asks about")
	fl.Float64Var(&f.Local, "local", f.Local, "the part of them with a hook inside the broker")
	fl.Float64Var(&f.Remote, "remote", f.Remote, "the part of them with a hook of a remote pool")
	fl.Float64Var(&f.HookTime, "hook-time", f.HookTime, "the CPU time in seconds that a hook of a remote pool needs itself")
	fl.Float64Var(&f.Injections, "injections", f.Injections, "how many items one agent is sent in an hour")
	fl.Float64Var(&f.Pending, "pending", f.Pending, "how many items wait for one agent on average")
	fl.Float64Var(&f.AgentsPerHost, "agents-per-host", f.AgentsPerHost, "how many agents share a connection")
	fl.Float64Var(&f.Cores, "cores", f.Cores, "how many cores a machine has")
	fl.Float64Var(&f.Busy, "busy", f.Busy, "which part of them may be used")
	fl.Float64Var(&f.Memory, "memory", f.Memory, "how many bytes of memory a broker may take")
	fl.StringVar(&units, "units", "", "take what one of each costs from `FILE`, which scale wrote with --json, and not from what this program comes with")
	fl.StringVar(&page, "html", "", "write the tables as one page to `FILE`, too")
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

// unitsOf are the units of a scale run's report; no file: the one that BENCHMARKS.md shows.
// It says where and when they were measured, too.
func unitsOf(file string) (u model.Units, origin string, err error) {
	name, body, more := "the run that this program comes with", figures.Scale, " To reckon with your own machine: --units with what scale wrote with --json."
	if file != "" {
		name, more = file, ""
		if body, err = few(file); err != nil {
			return u, "", fmt.Errorf("reading what one of each costs: %w", err)
		}
	}
	var r scale.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		return u, "", fmt.Errorf("%s is no report of scale: %w", name, err)
	}
	if r.Scenario != "scale" {
		return u, "", fmt.Errorf("%s is a report of %q; name one that scale wrote", name, r.Scenario)
	}
	return r.Units, fmt.Sprintf("What one of each costs was measured on %s, on %s.%s", r.Started.UTC().Format("2006-01-02"), r.Machine, more), nil
}

// few reads a file, up to many times what scale writes.
func few(file string) ([]byte, error) {
	const most = 64 << 20
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
