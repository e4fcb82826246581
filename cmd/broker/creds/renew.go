package creds

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/access/realm"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

func renewCommand(data string) *cobra.Command {
	var p place
	var tenant, out string
	var ttl lifetime
	c := &cobra.Command{
		Use: "renew NAME", Short: "Make new credentials for what a name has some for, and end the old ones", Args: one("the name"),
		Long: "renew writes new credentials of the same role, for the same agents or pools, into NAME.creds, in the place of\n" +
			"a file of that name. Their key is a new one. The old ones are refused within a second or two: whoever is\n" +
			"connected by them has to be given the new file and started again, but for hooks, which read it at each call.",
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
			return told(c.OutOrStdout(), path, &u)
		},
	}
	p.flags(c, data)
	c.Flags().StringVar(&tenant, "tenant", realm.DefaultTenant, "whose credentials they are")
	c.Flags().Var(&ttl, "ttl", "how long they are good, such as 30d or 12h; 0: until they are revoked; default: as long as the old ones were")
	c.Flags().StringVar(&out, "out", "", "the file to write; default: NAME.creds")
	return c
}
