package app

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/doctor"
	"github.com/hookfabric/hookfabric/cmd/agentshim/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/kept"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

func doctorCommand(code *int) *cobra.Command {
	var l link
	var socket, root string
	var runtimes []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Examine whether the agents of this machine obey the fabric",
		Long: "doctor looks for agent runtimes on this machine, and whether they ask the fabric: it reads their\n" +
			"configurations, makes a call through each installed hook for an agent of its own, called " + doctor.Agent + ",\n" +
			"and says what is wrong. It ends with 1 if something that the fabric decides would not be enforced.",
		Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, r := range runtimes {
				if !slices.Contains(install.Names(), r) {
					return program.UsageError("--runtime is %q; write one of %s", r, install.Names())
				}
			}
			m, err := machine(root)
			if err != nil {
				return err
			}
			report := doctor.Examine(c.Context(), doctor.Options{Runtimes: runtimes, Machine: m, NATS: l.nats, Creds: l.creds, TLS: l.tls, State: l.state,
				Socket: daemon.Place{State: l.state, At: socket}.Socket(),
				Noted: func(runtime, version string) {
					if !install.Foreign(l.state) {
						_ = kept.Folder(l.state).NoteVersion(runtime, version)
					}
				}})
			if !report.Enforced {
				*code = program.Failed
			}
			if !asJSON {
				return report.Print(c.OutOrStdout())
			}
			data, err := schema.Marshal(report)
			if err == nil {
				_, err = c.OutOrStdout().Write(append(data, '\n'))
			}
			return err
		},
	}
	f := c.Flags()
	l.flags(f, "none")
	f.StringVar(&socket, "socket", "", "where the local daemon listens; default: as for 'agentshim hook'")
	f.StringSliceVar(&runtimes, "runtime", nil, "only these runtimes; default: all that are here")
	f.StringVar(&root, "root", "", "folder before all paths of the system and of homes")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
