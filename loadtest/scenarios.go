package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/chaos"
	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/saturate"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// changes are the flags that change a scenario.
type changes struct {
	duration, warm      time.Duration
	rate, injections    float64
	messages            int // of the whole run
	agents, connections int
	drivers             int
	brokers, workers    int
	embedded            bool
	nats, creds         string
	seed                uint64
}

func changing(c *cobra.Command) *changes {
	f := new(changes)
	switch c.Name() {
	case "cluster": // the faults determine the length of each load, and the number of messages
	case "crash":
		c.Flags().DurationVar(&f.duration, "for", 0, "duration of the load")
		c.Flags().IntVar(&f.messages, "injections", 0, "minimum number of messages")
	default:
		c.Flags().DurationVar(&f.duration, "for", 0, "duration of the measurement (saturate: of each rate)")
		c.Flags().Float64Var(&f.injections, "injections", 0, "messages sent to agents per tool call")
	}
	c.Flags().DurationVar(&f.warm, "warm", 0, "duration of the load before the measurement")
	c.Flags().Float64Var(&f.rate, "rate", 0, "tool calls per second of all agents together")
	c.Flags().IntVar(&f.agents, "agents", 0, "number of agents")
	c.Flags().IntVar(&f.connections, "connections", 0, "number of connections that the agents share")
	c.Flags().IntVar(&f.drivers, "drivers", 0, "number of processes that run the agents")
	c.Flags().IntVar(&f.brokers, "brokers", 0, "number of brokers")
	c.Flags().IntVar(&f.workers, "workers", 0, "number of workers")
	c.Flags().BoolVar(&f.embedded, "embedded", false, "run broker, NATS server and worker in one process")
	c.Flags().StringVar(&f.nats, "nats", "", "use the fabric at the NATS server `URL` (default: start one)")
	c.Flags().StringVar(&f.creds, "creds", "", "NATS credentials `FILE` for the server of --nats")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of all random choices (default: the seed of the scenario)")
	return f
}

// tell shows the values of a bundled scenario as the defaults of the flags.
func tell(c *cobra.Command, read func(args []string) (*scenario.Scenario, error)) {
	if c.Name() == "run" {
		return
	}
	s, err := read(nil)
	if err != nil {
		return // the command reports the error
	}
	long := s.For
	if s.Kind == scenario.Saturate {
		long = s.Knee.Step
	}
	injections := any(s.Injections)
	if s.Messages > 0 {
		injections = s.Messages
	}
	for flag, value := range map[string]any{
		"for": long, "warm": s.Warm, "rate": s.Rate, "injections": injections, "agents": s.Agents, "connections": s.Connections,
		"drivers": s.Drivers, "brokers": s.Fabric.Brokers, "workers": s.Fabric.Workers,
	} {
		if l := c.Flags().Lookup(flag); l != nil {
			l.DefValue = fmt.Sprint(value)
		}
	}
}

// apply changes only the settings that the command line names.
func (f *changes) apply(c *cobra.Command, s *scenario.Scenario) {
	set := saying(c)
	set("for", func() {
		s.For, s.Steps = schema.Duration(f.duration), nil
		if s.Kind == scenario.Saturate {
			s.Knee.Step = s.For
		}
	})
	set("warm", func() { s.Warm = schema.Duration(f.warm) })
	set("rate", func() { s.Rate, s.Think, s.Steps = f.rate, 0, nil })
	set("injections", func() { s.Injections, s.Messages = f.injections, f.messages })
	set("agents", func() { s.Agents = f.agents })
	set("connections", func() { s.Connections = f.connections })
	set("drivers", func() { s.Drivers = f.drivers })
	set("embedded", func() {
		if f.embedded {
			s.Fabric.Kind, s.Fabric.Brokers, s.Fabric.Server = field.Embedded, 1, false
		}
	})
	set("brokers", func() { s.Fabric.Brokers = f.brokers })
	set("workers", func() { s.Fabric.Workers = f.workers })
	set("nats", func() {
		s.Fabric.NATS = f.nats
		if !f.embedded { // the check rejects that
			s.Fabric.Kind = field.External
		}
	})
	set("creds", func() { s.Fabric.Creds = f.creds })
	set("seed", func() { s.Seed = f.seed })
}

// shippedCommand runs a bundled scenario.
func shippedCommand(name, short string) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: noArgs}
	c.RunE = running(c, func([]string) (*scenario.Scenario, error) { return scenario.Shipped(name) })
	return c
}

// chaosCommand runs the bundled scenario, with flags for its random faults.
func chaosCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "chaos", Short: "Kill, stop and cut off brokers, workers, server and agents at random, under load, and check every answer", Args: noArgs,
	}
	kinds := c.Flags().StringSlice("kinds", nil, "use only these comma-separated `KINDS` of faults: "+strings.Join(strings.Fields(strings.Trim(fmt.Sprint(faults.Kinds()), "[]")), ", ")+" (default: all)")
	members := c.Flags().StringSlice("members", nil, "use only these comma-separated `MEMBERS` as targets, such as \"worker-*\" (default: all)")
	together := c.Flags().Int("together", 0, "maximum number of faults at the same time (default: as in the scenario)")
	longest := c.Flags().Duration("longest", 0, "maximum duration of a fault (default: as in the scenario)")
	pause := c.Flags().Duration("pause", 0, "average pause between two faults (default: as in the scenario)")
	c.RunE = running(c, func([]string) (*scenario.Scenario, error) {
		s, err := scenario.Shipped("chaos")
		if err != nil {
			return nil, err
		}
		set := saying(c)
		set("kinds", func() {
			for _, k := range *kinds {
				s.Chaos.Kinds = append(s.Chaos.Kinds, faults.Kind(k))
			}
		})
		set("members", func() { s.Chaos.Members = *members })
		set("together", func() { s.Chaos.Together = *together })
		set("longest", func() { s.Chaos.Longest = schema.Duration(*longest) })
		set("pause", func() { s.Chaos.Pause = schema.Duration(*pause) })
		return s, nil
	})
	return c
}

// crashCommand runs the bundled scenario that only kills, with a flag for the processes
// that it kills.
func crashCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "crash", Short: "Kill broker, workers, agents, daemon and producers at random, and check that no message is lost or delivered twice", Args: noArgs,
	}
	kinds := c.Flags().StringSlice("kill", nil, "kill only these comma-separated `KINDS` of processes: broker, worker, driver, daemon, producer (default: all)")
	c.RunE = running(c, func([]string) (*scenario.Scenario, error) {
		s, err := scenario.Shipped("crash")
		if err == nil && len(*kinds) > 0 {
			lives := map[string]schema.Duration{}
			for _, kind := range *kinds {
				lives[kind] = s.Chaos.Lives[kind] // 0 if unknown, which the check rejects
			}
			s.Chaos.Lives = lives
		}
		return s, err
	})
	return c
}

// soaked runs a soak. If OfKnee is set, it first searches the knee and runs at that part of
// it.
func soaked(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (*result.Document, error) {
	if s.Soak.OfKnee == 0 {
		return chaos.Run(ctx, s, st)
	}
	knee, err := saturate.Rate(ctx, s, st)
	if err != nil {
		return nil, err
	}
	s.Rate, s.Think = knee*s.Soak.OfKnee, 0
	d, err := chaos.Run(ctx, s, st)
	if err != nil {
		return nil, err
	}
	d.Notes = append(d.Notes, fmt.Sprintf("The fabric keeps up with %.0f tool calls per second; the load is %.0f %% of that rate.", knee, s.Soak.OfKnee*100))
	return d, nil
}

// soakCommand runs the bundled scenario, with faults if a flag asks for them.
func soakCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "soak", Short: "Keep a constant load for a long time, and check that memory, goroutines and files do not grow", Args: noArgs,
	}
	wild := c.Flags().Bool("chaos", false, "cause random faults during the run")
	part := c.Flags().Float64("of-knee", 0, "find the highest rate first, and run at this fraction of it, such as 0.7 (default: use --rate)")
	settle := c.Flags().Duration("settle", 0, "interval between garbage collections, which show the live memory (default: calculated from --for)")
	c.RunE = running(c, func([]string) (*scenario.Scenario, error) {
		s, err := scenario.Shipped("soak")
		if err == nil {
			s.Soak = scenario.Soak{Settle: schema.Duration(*settle), Chaos: *wild, OfKnee: *part}
		}
		return s, err
	})
	return c
}

// saying returns a function that calls do if the command line sets the flag.
func saying(c *cobra.Command) func(flag string, do func()) {
	return func(flag string, do func()) {
		if c.Flags().Changed(flag) {
			do()
		}
	}
}

// runCommand runs a scenario from a file.
func runCommand() *cobra.Command {
	c := &cobra.Command{Use: "run FILE", Short: "Run the scenario in a YAML file", Args: func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage{errors.New("name one scenario file: loadtest run FILE")}
		}
		return nil
	}}
	c.RunE = running(c, func(args []string) (*scenario.Scenario, error) {
		return scenario.ReadFile(args[0])
	})
	return c
}

// running runs a scenario with the changes of the flags.
func running(c *cobra.Command, read func(args []string) (*scenario.Scenario, error)) func(*cobra.Command, []string) error {
	f := new(measuring)
	f.outputs(c)
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 if a figure exceeds its budget; a wrong answer still fails the run")
	change := changing(c)
	tell(c, read)
	return func(c *cobra.Command, args []string) error {
		s, err := read(args)
		if err != nil {
			return usage{err}
		}
		change.apply(c, s)
		if wrong := s.Check(); len(wrong) > 0 {
			var errs []error
			for _, w := range wrong {
				errs = append(errs, errors.New(w.String()))
			}
			return usage{errors.Join(errs...)}
		}
		var hosts []*faults.Host
		if s.Kind == scenario.Clustered {
			var done bool
			if hosts, done, err = brokerHosts(c, s.Fabric.Brokers); done || err != nil {
				return err
			}
		}
		return f.staged(c, func(st stage) (outcome, error) {
			return ran(c.Context(), s, fleet.Stage{Dir: st.dir, Crew: st.crew, Progress: st.live, Live: st.live, Hosts: hosts})
		})
	}
}

// ran runs a scenario of any kind.
func ran(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (*result.Document, error) {
	switch s.Kind {
	case scenario.Saturate:
		return saturate.Run(ctx, s, st)
	case scenario.Overload:
		return saturate.Overload(ctx, s, st)
	case scenario.Chaotic:
		return chaos.Run(ctx, s, st)
	case scenario.Clustered:
		return chaos.RunCluster(ctx, s, st)
	case scenario.Soaking:
		return soaked(ctx, s, st)
	default:
		return fleet.Run(ctx, s, st)
	}
}
