package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/loadtest/internal/chaos"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/saturate"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// A bundle is a command that runs a bundled scenario.
type bundle struct {
	name, short, example string
	// flags adds further flags, which change the scenario. It returns a function for flags
	// that need more than setting a key; nil: none does.
	flags func(*pflag.FlagSet, *scenario.Scenario) (apply func() error)
}

func bundles() []bundle {
	return []bundle{
		{
			name: "fleet", short: "Let many agents use tools at the same time, in an open loop, and check every answer",
			example: "  loadtest fleet --agents 500 --rate 1000 --for 1m\n  loadtest fleet --nats nats://10.0.0.5:4222 --creds operator.creds",
		},
		{
			name: "saturate", short: "Find the highest rate of tool calls that the fabric keeps up with",
			example: "  loadtest saturate --agents 1000 --brokers 2",
		},
		{
			name: "overload", short: "Send twice the rate that the fabric keeps up with, and measure how it recovers",
			example: "  loadtest overload --rate 4000 --for 30s",
		},
		{
			name: "chaos", short: "Kill, stop and cut off brokers, workers, server and agents at random, under load, and check every answer",
			example: "  loadtest chaos --kinds kill,stop --members 'worker-*' --for 5m", flags: chaosFlags,
		},
		{
			name: "soak", short: "Keep a constant load for a long time, and check that memory, goroutines and files do not grow",
			example: "  loadtest soak --for 1h --chaos --of-knee 0.7", flags: soakFlags,
		},
		{
			name: "crash", short: "Kill broker, workers, agents, daemon and producers at random, and check that no message is lost or delivered twice",
			example: "  loadtest crash --for 1m --kill broker", flags: crashFlags,
		},
		{
			name: "cluster", short: "Kill, stop, restart and cut off each broker of a cluster of three, under load, and check every answer (Linux)",
			example: "  loadtest cluster --only kill,stop --rate 50", flags: clusterFlags,
		},
	}
}

// durationVar adds a flag for a duration of a scenario.
func durationVar(f *pflag.FlagSet, to *schema.Duration, name, words string) {
	f.DurationVar((*time.Duration)(to), name, to.Std(), words)
}

func chaosFlags(f *pflag.FlagSet, s *scenario.Scenario) func() error {
	kinds := f.StringSlice("kinds", nil, "use only these comma-separated `KINDS` of faults: "+strings.Join(strings.Fields(strings.Trim(fmt.Sprint(faults.Kinds()), "[]")), ", ")+" (default: all)")
	f.StringSliceVar(&s.Chaos.Members, "members", nil, "use only these comma-separated `MEMBERS` as targets, such as \"worker-*\" (default: all)")
	f.IntVar(&s.Chaos.Together, "together", s.Chaos.Together, "maximum number of faults at the same time")
	durationVar(f, &s.Chaos.Longest, "longest", "maximum duration of a fault")
	durationVar(f, &s.Chaos.Pause, "pause", "average pause between two faults")
	return func() error {
		for _, k := range *kinds {
			s.Chaos.Kinds = append(s.Chaos.Kinds, faults.Kind(k))
		}
		return nil
	}
}

func soakFlags(f *pflag.FlagSet, s *scenario.Scenario) func() error {
	f.BoolVar(&s.Soak.Chaos, "chaos", false, "cause random faults during the run")
	f.Float64Var(&s.Soak.OfKnee, "of-knee", 0, "find the highest rate first, and run at this fraction of it, such as 0.7 (default: use --rate)")
	durationVar(f, &s.Soak.Settle, "settle", "interval between garbage collections, which show the live memory (default: calculated from --for)")
	return nil
}

func crashFlags(f *pflag.FlagSet, s *scenario.Scenario) func() error {
	kinds := f.StringSlice("kill", nil, "kill only these comma-separated `KINDS` of processes: broker, worker, driver, daemon, producer (default: all)")
	return func() error {
		if len(*kinds) == 0 {
			return nil
		}
		lives := map[string]schema.Duration{}
		for _, kind := range *kinds {
			lives[kind] = s.Chaos.Lives[kind] // 0 if unknown, which the check rejects
		}
		s.Chaos.Lives = lives
		return nil
	}
}

func clusterFlags(f *pflag.FlagSet, s *scenario.Scenario) func() error {
	quick := f.Bool("quick", false, "cause each fault only once, for a short time, to see that it works")
	only := f.StringSlice("only", nil, "run only these comma-separated `PARTS`: rolling, change, kill, stop, part, one-way, freeze (default: all)")
	durationVar(f, &s.Cluster.Away, "away", "duration of each fault")
	return func() error {
		if *quick {
			quickly(f, s)
		}
		if f.Changed("only") {
			return s.Cluster.Only(*only)
		}
		return nil
	}
}

// quickly causes each fault once, except restarts, which are short. Other flags override it.
func quickly(f *pflag.FlagSet, s *scenario.Scenario) {
	if !f.Changed("rate") {
		s.Rate = 60
	}
	if !f.Changed("away") {
		s.Cluster.Away = schema.Duration(5 * time.Second)
	}
	for i := range s.Cluster.Parts {
		p := &s.Cluster.Parts[i]
		p.Each = p.Unnoticed()
	}
}

func (b bundle) command() *cobra.Command {
	c := &cobra.Command{Use: b.name, Short: b.short, Example: b.example, Args: noArgs}
	s, err := scenario.Shipped(b.name)
	if err != nil {
		panic(err) // a test reads all of them
	}
	apply := func() error { return nil }
	if b.flags != nil {
		if more := b.flags(c.Flags(), s); more != nil {
			apply = more
		}
	}
	c.RunE = running(c, s, func([]string) error { return apply() })
	return c
}

func runCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "run FILE", Short: "Run the scenario in a YAML file", Args: oneArg("name one scenario file: loadtest run FILE"),
		Example: "  loadtest run loadtest/figures/faults.yaml --json faults.json",
	}
	s := scenario.Default()
	c.RunE = running(c, &s, func(args []string) error {
		read, err := scenario.ReadFile(args[0])
		if err != nil {
			return err
		}
		given := map[string]string{}
		c.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
		s = *read
		for name, value := range given { // the flags point into the scenario
			err = errors.Join(err, c.Flags().Set(name, value))
		}
		return err
	})
	return c
}

// scenarioFlags adds the flags that all scenarios have, with their values as defaults.
func scenarioFlags(f *pflag.FlagSet, s *scenario.Scenario) {
	switch {
	case s.Kind == scenario.Clustered: // the faults determine the length of each load, and the number of messages
	case s.Kind == scenario.Saturate:
		durationVar(f, &s.Knee.Step, "for", "duration of the measurement of each rate")
		f.Float64Var(&s.Injections, "injections", s.Injections, "messages sent to agents per tool call")
	case s.Messages > 0:
		durationVar(f, &s.For, "for", "duration of the load")
		f.IntVar(&s.Messages, "injections", s.Messages, "minimum number of messages")
	default:
		durationVar(f, &s.For, "for", "duration of the measurement")
		f.Float64Var(&s.Injections, "injections", s.Injections, "messages sent to agents per tool call")
	}
	durationVar(f, &s.Warm, "warm", "duration of the load before the measurement")
	f.Float64Var(&s.Rate, "rate", s.Rate, "tool calls per second of all agents together")
	f.IntVar(&s.Agents, "agents", s.Agents, "number of agents")
	f.IntVar(&s.Connections, "connections", s.Connections, "number of connections that the agents share")
	f.IntVar(&s.Drivers, "drivers", s.Drivers, "number of processes that run the agents")
	f.IntVar(&s.Fabric.Brokers, "brokers", s.Fabric.Brokers, "number of brokers")
	f.IntVar(&s.Fabric.Workers, "workers", s.Fabric.Workers, "number of workers")
	f.StringVar(&s.Fabric.NATS, "nats", "", "use the fabric at the NATS server `URL` (default: start one)")
	f.StringVar(&s.Fabric.Creds, "creds", "", "NATS credentials `FILE` for the server of --nats")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of all random choices")
}

// running adds the flags of a scenario and returns what runs it. change applies other flags
// and the arguments.
func running(c *cobra.Command, s *scenario.Scenario, change func(args []string) error) func(*cobra.Command, []string) error {
	f := flags(c)
	scenarioFlags(c.Flags(), s)
	embedded := c.Flags().Bool("embedded", false, "run broker, NATS server and worker in one process")
	return func(c *cobra.Command, args []string) error {
		if err := change(args); err != nil {
			return usage{err}
		}
		switch {
		case *embedded:
			s.Fabric.Kind, s.Fabric.Server = field.Embedded, false
			if !c.Flags().Changed("brokers") {
				s.Fabric.Brokers = 1
			}
		case c.Flags().Changed("nats"):
			s.Fabric.Kind = field.External
		}
		if err := s.Wrong(); err != nil {
			return usage{err}
		}
		var hosts []*faults.Host
		if s.Kind == scenario.Clustered {
			var done bool
			var err error
			if hosts, done, err = brokerHosts(c, s.Fabric.Brokers); done || err != nil {
				return err
			}
		}
		return f.staged(c, func(st stage) (outcome, error) {
			st.Hosts = hosts
			return ran(c.Context(), s, st)
		})
	}
}

// ran runs a scenario of any kind.
func ran(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (*report.Document, error) {
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

// soaked runs a soak. If OfKnee is set, it first searches the knee and runs at that part of
// it.
func soaked(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (*report.Document, error) {
	if s.Soak.OfKnee == 0 {
		return chaos.Run(ctx, s, st)
	}
	knee, err := saturate.Rate(ctx, s, st)
	if err != nil {
		return nil, err
	}
	s.Rate = knee * s.Soak.OfKnee
	d, err := chaos.Run(ctx, s, st)
	if err == nil {
		d.Notes = append(d.Notes, fmt.Sprintf("The fabric keeps up with %.0f tool calls per second; the load is %.0f %% of that rate.", knee, s.Soak.OfKnee*100))
	}
	return d, err
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
	c.Flags().Visit(func(f *pflag.Flag) { args = append(args, "--"+f.Name+"="+valueOf(f)) })
	code, err := faults.Alone(c.Context(), append(args, c.Flags().Args()...), c.OutOrStdout(), c.ErrOrStderr())
	if err == nil && code != 0 {
		err = ended{code}
	}
	return err
}

// valueOf returns the value of a flag as the command line has it.
func valueOf(f *pflag.Flag) string {
	if all, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(all.GetSlice(), ",")
	}
	return f.Value.String()
}
