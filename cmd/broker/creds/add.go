package creds

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// adding is one call of `broker creds add`.
type adding struct {
	place
	agents, pools []string
	tenant, out   string
	ttl           lifetime
}

func addCommand(data string) *cobra.Command {
	var a adding
	c := &cobra.Command{
		Use: "add ROLE NAME", Short: "Create credentials", Args: two,
		Long: "add writes new credentials into NAME.creds, which only your user can read. ROLE is what they permit:\n" +
			"\n" +
			"  agent         the shim of one agent; NAME is the agent's id, as in agentshim --agent\n" +
			"  host          the daemon of a machine, for the agents of --agents\n" +
			"  worker        a worker that runs the hooks of the pools of --pool\n" +
			"  operator      all commands of this program\n" +
			"  orchestrator  a program that starts the agents of --agents, sends them messages and starts their rounds\n" +
			"  broker        a broker on another machine ('broker serve --nats URL --creds FILE'): everything in its tenant\n" +
			"\n" +
			"A name has at most one set of valid credentials. Use 'broker creds renew' to replace them.",
		Example: "  broker creds add agent alice --ttl 30d\n" +
			"  broker creds add host h1 --agents alice,bob\n" +
			"  broker creds add worker w1 --pool heavy",
		RunE: func(c *cobra.Command, args []string) error { return a.run(c, args[0], args[1]) },
	}
	a.flags(c, data)
	f := c.Flags()
	f.StringSliceVar(&a.agents, "agents", nil, "for host and orchestrator: agents that it acts for; '*' means all agents, also later ones")
	f.StringSliceVar(&a.pools, "pool", nil, "for worker: pool that it serves; repeat the flag for several (default "+schema.DefaultPool+")")
	f.StringVar(&a.tenant, "tenant", realm.DefaultTenant, "tenant of the credentials")
	f.Var(&a.ttl, "ttl", "lifetime of the credentials, such as 30d or 12h, at most 10 years; 0: they do not expire")
	f.StringVar(&a.out, "out", "", "write the credentials to this file (default: NAME.creds)")
	return c
}

// two checks that there are two arguments, a role and a name.
func two(c *cobra.Command, args []string) error {
	switch {
	case len(args) < 2:
		return program.UsageError("role or name is missing: broker creds add ROLE NAME; see '%s --help'", c.CommandPath())
	case len(args) > 2:
		return program.UsageError("unknown argument %q; see '%s --help'", args[2], c.CommandPath())
	}
	return nil
}

func (a *adding) run(c *cobra.Command, role, name string) error {
	g := access.Grant{Role: access.Role(role), Agents: a.agents, Pools: a.pools}
	if g.Role == access.Agent {
		if len(g.Agents) > 0 {
			return program.UsageError("credentials of the role agent are for the agent NAME only; remove --agents, or use the role host for several agents")
		}
		g.Agents = []string{name}
	}
	if g.Role == access.Worker && len(g.Pools) == 0 {
		g.Pools = []string{schema.DefaultPool}
	}
	if err := g.Check(); err != nil {
		return program.UsageError("%w", err)
	}
	path := a.out
	if path == "" {
		token, err := bus.Token(name)
		if err != nil {
			return program.UsageError("%w", err)
		}
		path = token + ".creds"
	}
	u, err := add(c.Context(), a.dir(), path, realm.Issue{Name: name, Tenant: a.tenant, Grant: g, For: time.Duration(a.ttl)})
	if err != nil {
		return err
	}
	if slices.Contains(g.Agents, access.Everyone) {
		fmt.Fprintf(c.ErrOrStderr(), "anyone who can read %s can act for EVERY agent of the tenant %s; list the agents in --agents if you know them\n", path, u.Tenant)
	}
	return printMade(c.OutOrStdout(), path, &u)
}

// printMade prints the new credentials.
func printMade(w io.Writer, path string, u *realm.User) error {
	until := "without an expiry"
	if !u.Expires.IsZero() {
		until = "until " + u.Expires.Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(w, "wrote %s: %s of the tenant %s%s, valid %s\n", path, u.Role, u.Tenant, whose(u), until)
	return err
}

// whose returns the agents or pools of credentials, as text.
func whose(u *realm.User) string {
	switch {
	case len(u.Agents) > 0 && u.Role != access.Agent:
		return ", for " + strings.Join(u.Agents, ", ")
	case len(u.Pools) > 0:
		return ", for the pools " + strings.Join(u.Pools, ", ")
	}
	return ""
}

// A lifetime is a flag value with a duration that may be in days.
type lifetime time.Duration

// String returns the duration as text.
func (l *lifetime) String() string { return time.Duration(*l).String() }

// Type returns its name in the help.
func (l *lifetime) Type() string { return "duration" }

// Set parses it.
func (l *lifetime) Set(s string) error {
	d, err := parseLifetime(s)
	if err != nil {
		return err
	}
	*l = lifetime(d)
	return nil
}

// longest is the longest lifetime of credentials that expire.
const longest = 10 * 365 * 24 * time.Hour

func parseLifetime(s string) (time.Duration, error) {
	const form = "use days and hours, such as 30d, 12h or 1d12h"
	days, rest, some := strings.Cut(s, "d")
	if !some {
		days, rest = "0", s
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; %s", s, form)
	}
	var d time.Duration
	if rest != "" {
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, fmt.Errorf("%q is not a duration; %s", s, form)
		}
	}
	d += time.Duration(n) * 24 * time.Hour
	switch {
	case d == 0 && s != "0":
		return 0, fmt.Errorf("%q is zero; %s", s, form)
	case d != 0 && d < time.Second || d < 0:
		return 0, fmt.Errorf("%q is below one second; %s", s, form)
	case d > longest:
		return 0, fmt.Errorf("%q is more than ten years; remove --ttl for credentials that do not expire", s)
	}
	return d, nil
}
