package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

func policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Forget the stored policy of a fabric that you replaced",
		Long: "agentshim stores the last policy of each fabric, and applies it while no fabric answers.\n" +
			"'agentshim policy reset' forgets stored policies.",
		Example: "  agentshim policy reset --nats nats://127.0.0.1:4222",
		Args:    program.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var l link
	reset := &cobra.Command{
		Use:   "reset [--nats URL]",
		Short: "Forget stored policies and keys, so that agentshim trusts the next fabric that answers",
		Long: "agentshim stores the policy and the key of each fabric that answered at a URL. While no fabric answers there,\n" +
			"it applies all these policies: another server at the URL can add guards, but cannot remove any.\n\n" +
			"Run reset after you replaced a fabric on purpose, by one with a new data directory. It removes the stored\n" +
			"policies and keys of all URLs, or of the URL in --nats only. Until a fabric answers again, --unreachable\n" +
			"decides. reset keeps the records of deliveries and of calls that the fabric did not judge.",
		Example: "  agentshim policy reset\n  agentshim policy reset --nats nats://127.0.0.1:4222",
		Args:    program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l.resolve(c.Flags())
			if l.state == "" {
				return errors.New("agentshim found no state folder; name one with --state")
			}
			place := "any place"
			if l.unnamed {
				l.nats = ""
			} else {
				place = bus.RedactURL(l.nats)
			}
			all, err := shimstate.Folder(l.state).Forget(l.nats)
			if err != nil {
				return fmt.Errorf("removing the policies in %s: %w", l.state, err)
			}
			said := fmt.Sprintf("no fabric answered at %s, so there is nothing to forget", place)
			if len(all) > 0 {
				said = fmt.Sprintf("forgot the policy of %s at %s", strings.Join(all, ", "), place)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), said)
			return err
		},
	}
	f := reset.Flags()
	f.StringVar(&l.nats, "nats", "", "forget only the fabrics that answered at `URL`; default: all")
	stateFlag(f, &l.state)
	c.AddCommand(reset)
	return c
}
