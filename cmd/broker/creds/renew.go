package creds

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

func renewCommand(data string) *cobra.Command {
	var p place
	var tenant, out string
	var ttl lifetime
	c := &cobra.Command{
		Use: "renew NAME", Short: "Replace the credentials of a name with new ones of the same role", Args: one("the name"),
		Long: "renew writes new credentials with the same role, agents and pools into NAME.creds, and replaces that file. The broker\n" +
			"refuses the old ones within a second or two. Restart each process that uses them with the new file; hooks read the\n" +
			"file at each call and need no restart.",
		Example: "  broker creds renew alice --ttl 30d",
		RunE: func(c *cobra.Command, args []string) error {
			path := out
			if path == "" {
				token, err := bus.Token(args[0])
				if err != nil {
					return program.UsageError("%w", err)
				}
				path = token + ".creds"
			}
			var good *time.Duration
			if c.Flags().Changed("ttl") {
				good = (*time.Duration)(&ttl)
			}
			u, err := realm.Renew(c.Context(), p.dir(), tenant, args[0], good, func(creds []byte) error { return realm.WriteFile(path, creds) })
			if err != nil {
				return err
			}
			return printMade(c.OutOrStdout(), path, &u)
		},
	}
	p.flags(c, data)
	c.Flags().StringVar(&tenant, "tenant", realm.DefaultTenant, "tenant of the credentials")
	c.Flags().Var(&ttl, "ttl", "lifetime of the credentials, such as 30d or 12h, at most 10 years; 0: they do not expire (default: as the old ones)")
	c.Flags().StringVar(&out, "out", "", "write the credentials to this file (default: NAME.creds)")
	return c
}
