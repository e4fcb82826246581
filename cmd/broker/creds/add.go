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
	"github.com/hookfabric/hookfabric/bus/access"
	"github.com/hookfabric/hookfabric/bus/access/realm"
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
		Use: "add ROLE NAME", Short: "Make credentials", Args: two,
		Long: "add writes credentials into NAME.creds, which only you can read. ROLE is what they are for:\n\n" +
			"  agent         one agent's shim; NAME is the agent's id, as agentshim's --agent\n" +
			"  host          the daemon of a machine, for the agents that --agents names\n" +
			"  worker        runs the hooks of the pools that --pool names\n" +
			"  operator      all commands of this program\n" +
			"  orchestrator  a program that starts the agents that --agents names: tells them things, counts their rounds\n" +
			"  broker        a broker elsewhere ('broker serve --nats URL --creds FILE'): everything in its tenant\n\n" +
			"A name may have credentials once; when those were revoked, or have expired, it may have others.",
		RunE: func(c *cobra.Command, args []string) error { return a.run(c, args[0], args[1]) },
	}
	a.flags(c, data)
	f := c.Flags()
	f.StringSliceVar(&a.agents, "agents", nil, "host, orchestrator: the agents; '*' is all of them, also those to come")
	f.StringSliceVar(&a.pools, "pool", nil, "worker: a pool that it serves; may be given several times (default "+schema.DefaultPool+")")
	f.StringVar(&a.tenant, "tenant", realm.DefaultTenant, "whose they are")
	f.Var(&a.ttl, "ttl", "how long they are good, such as 30d or 12h; 0: until they are revoked")
	f.StringVar(&a.out, "out", "", "the file to write; default: NAME.creds")
	return c
}

// two takes a role and a name.
func two(c *cobra.Command, args []string) error {
	switch {
	case len(args) < 2:
		return program.UsageError("write what for and whose: broker creds add ROLE NAME; see '%s --help'", c.CommandPath())
	case len(args) > 2:
		return program.UsageError("unknown argument %q; see '%s --help'", args[2], c.CommandPath())
	}
	return nil
}

func (a *adding) run(c *cobra.Command, role, name string) error {
	g := access.Grant{Role: access.Role(role), Agents: a.agents, Pools: a.pools}
	if g.Role == access.Agent {
		if len(g.Agents) > 0 {
			return program.UsageError("an agent's credentials are for the agent whose name they bear; leave --agents out, or make those of a host")
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
		fmt.Fprintf(c.ErrOrStderr(), "whoever has %s acts for EVERY agent of the tenant %s; name the agents if they are known\n", path, u.Tenant)
	}
	return told(c.OutOrStdout(), path, &u)
}

// told says what was made.
func told(w io.Writer, path string, u *realm.User) error {
	until := "until they are revoked"
	if !u.Expires.IsZero() {
		until = "until " + u.Expires.Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(w, "wrote %s: %s of the tenant %s%s, good %s\n", path, u.Role, u.Tenant, whose(u), until)
	return err
}

// whose is for which agents or pools credentials are, for people.
func whose(u *realm.User) string {
	switch {
	case len(u.Agents) > 0 && u.Role != access.Agent:
		return ", for " + strings.Join(u.Agents, ", ")
	case len(u.Pools) > 0:
		return ", for the pools " + strings.Join(u.Pools, ", ")
	}
	return ""
}

// A lifetime is a duration that may be told in days. It is a flag.
type lifetime time.Duration

// String is how it is shown.
func (l *lifetime) String() string { return time.Duration(*l).String() }

// Type is what it is called in help.
func (l *lifetime) Type() string { return "duration" }

// Set reads it.
func (l *lifetime) Set(s string) error {
	d, err := parseLifetime(s)
	if err != nil {
		return err
	}
	*l = lifetime(d)
	return nil
}

// longest is how long credentials may be good that expire at all.
const longest = 10 * 365 * 24 * time.Hour

func parseLifetime(s string) (time.Duration, error) {
	const form = "write a number of days and hours, such as 30d, 12h or 1d12h"
	days, rest, some := strings.Cut(s, "d")
	if !some {
		days, rest = "0", s
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration; %s", s, form)
	}
	var d time.Duration
	if rest != "" {
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, fmt.Errorf("%q is no duration; %s", s, form)
		}
	}
	d += time.Duration(n) * 24 * time.Hour
	switch {
	case d == 0 && s != "0":
		return 0, fmt.Errorf("%q is no time at all; %s", s, form)
	case d != 0 && d < time.Second || d < 0:
		return 0, fmt.Errorf("%q is too short for anybody to use; %s", s, form)
	case d > longest:
		return 0, fmt.Errorf("%q is more than ten years; leave --ttl out for credentials that do not expire", s)
	}
	return d, nil
}
