package app

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/doctor"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

func doctorCommand(code *int) *cobra.Command {
	var l link
	var socket, root string
	var runtimes []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether the agents of this machine obey the fabric",
		Long: "doctor finds the agent runtimes of this machine and checks whether they obey the fabric. It reads their\n" +
			"configurations, sends one test call through each installed hook as the agent " + doctor.Agent + ", and reports each problem.\n" +
			"It changes no configuration.\n\n" +
			"The exit code is 1 if the fabric is not reachable, or if a connected runtime would not enforce its decisions.\n" +
			"A runtime that --runtime names must be connected. Without --nats, doctor checks the fabric that the hooks of this\n" +
			"user or machine name, else the daemon's. It does not use the --nats and --creds of a project's hooks, because the\n" +
			"project may come from a stranger: name such a fabric with --nats. It can check most with an operator's credentials.",
		Example: "  agentshim doctor\n  agentshim doctor --runtime claude --creds operator.creds",
		Args:    program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, r := range runtimes {
				if !slices.Contains(install.Names(), r) {
					return program.UsageError("--runtime is %q; write one of %s", r, install.Names())
				}
			}
			l.resolve(c.Flags())
			m, err := machine(root)
			if err != nil {
				return err
			}
			report := doctor.Examine(c.Context(), doctor.Options{Runtimes: runtimes, Machine: m, NATS: l.nats, Creds: l.creds, TLS: l.tls, State: l.state,
				Named:  c.Flags().Changed("nats"),
				Socket: daemon.Place{State: l.state, At: socket}.Socket()})
			if !report.Enforced {
				*code = program.Failed
			}
			if !asJSON {
				return report.Print(program.Terminal(c.OutOrStdout()))
			}
			return printJSON(c.OutOrStdout(), report)
		},
	}
	f := c.Flags()
	l.flags(f, "none")
	socketFlag(f, &socket, "")
	f.StringSliceVar(&runtimes, "runtime", nil, "check only this `RUNTIME`; repeat the flag for several; default: all on this machine")
	f.StringVar(&root, "root", "", "read all configuration files below `DIR`, such as an unpacked image; doctor then sends no test call; default: /")
	program.Completes(c, "runtime", install.Names()...)
	f.BoolVar(&asJSON, "json", false, "print the report as one JSON object; default: text")
	return c
}
