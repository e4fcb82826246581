package creds

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// Folder returns the realm folder of a broker with the data directory dir.
func Folder(dir string) string { return filepath.Join(dir, "auth") }

// Command returns `broker creds`; data is the default data directory.
func Command(data string) *cobra.Command {
	c := &cobra.Command{
		Use: "creds", Short: "Manage who may use the fabric, and their credentials",
		Long: "creds makes credentials for agents, workers and operators. After 'broker creds init', the broker accepts only clients\n" +
			"with credentials, and each may do only what its role permits:\n" +
			"\n" +
			"  broker creds init\n" +
			"  broker creds add agent alice --ttl 30d        alice.creds: asks about alice's events, reads alice's messages\n" +
			"  broker creds add host h1 --agents alice,bob   for the daemon of a machine\n" +
			"  broker creds add worker w1 --pool heavy       runs the hooks of the pool heavy\n" +
			"  broker creds add operator olga                'broker status', 'broker inject', 'broker apply', …\n" +
			"\n" +
			"Give the file to its owner, who names it with --creds or HOOKFABRIC_CREDS. It is a secret: anyone who can read it can\n" +
			"use it. A running broker applies added and revoked credentials within a second or two.",
		Args: program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(initCommand(data), addCommand(data), listCommand(data), renewCommand(data), revokeCommand(data), tenantCommand(data), exportCommand(data))
	return c
}

// place identifies the realm.
type place struct{ data string }

func (p *place) flags(c *cobra.Command, data string) {
	c.Flags().StringVar(&p.data, "data", data, "data directory of the broker")
}

func (p *place) dir() string { return Folder(p.data) }

func initCommand(data string) *cobra.Command {
	var p place
	var l limits
	c := &cobra.Command{
		Use: "init", Short: "Require credentials from all clients", Args: program.NoArgs,
		Long: "init creates the realm, which is the folder auth in the data directory, with one tenant, \"default\". From its next\n" +
			"start on, the broker accepts only clients with credentials. The limits apply to that tenant; tenants that\n" +
			"'broker creds tenant add' makes share the rest of the server.",
		Example: "  broker creds init --data /var/lib/hookfabric/broker",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := realm.Init(c.Context(), p.dir(), l.realm()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "created %s; from its next start on, the broker with this data directory accepts only clients with credentials\n"+
				"anyone who can read that folder can create credentials: keep a backup of it where only you can read it\n"+
				"next: 'broker creds add operator NAME' for the commands of this program, and 'broker creds add agent NAME'\n", p.dir())
			return err
		},
	}
	p.flags(c, data)
	l.flags(c, limits{connections: 50_000, subscriptions: 5_000_000})
	return c
}

func revokeCommand(data string) *cobra.Command {
	var p place
	var tenant string
	c := &cobra.Command{
		Use: "revoke NAME", Short: "Revoke credentials and close the connections that use them", Args: one("the name"),
		Long:    "revoke makes credentials invalid. Running brokers close their connections within a second or two.",
		Example: "  broker creds revoke alice",
		RunE: func(c *cobra.Command, args []string) error {
			u, err := realm.Revoke(c.Context(), p.dir(), tenant, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s (%s of the tenant %s) is revoked: running brokers close the connections of %s within a second or two\n", u.Name, u.Role, u.Tenant, u.Key)
			return err
		},
	}
	p.flags(c, data)
	c.Flags().StringVar(&tenant, "tenant", realm.DefaultTenant, "tenant of the credentials")
	return c
}

func tenantCommand(data string) *cobra.Command {
	c := &cobra.Command{
		Use: "tenant", Short: "Manage tenants, which are isolated from each other", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var p place
	var l limits
	add := &cobra.Command{
		Use: "add NAME", Short: "Create a tenant", Args: one("the tenant's name"),
		Long: "add creates a tenant with agents, workers, hooks and messages of its own, which no other tenant can see. It needs its\n" +
			"own brokers: 'broker serve --tenant NAME', or 'broker serve --nats URL --creds FILE' with credentials that\n" +
			"'broker creds add broker B --tenant NAME' made.",
		Example: "  broker creds tenant add blue --max-connections 2000",
		RunE: func(c *cobra.Command, args []string) error {
			if err := realm.AddTenant(c.Context(), p.dir(), args[0], l.realm()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "created the tenant %s; next: 'broker creds add broker NAME --tenant %s'\n", args[0], args[0])
			return err
		},
	}
	p.flags(add, data)
	l.flags(add, limits{connections: 10_000, subscriptions: 1_000_000, disk: 2048, memory: 64})
	c.AddCommand(add)
	return c
}

// limits are the limits of a tenant, as flags.
type limits struct{ connections, subscriptions, disk, memory int64 }

// flags declares the flags with their defaults.
func (l *limits) flags(c *cobra.Command, usual limits) {
	f := c.Flags()
	f.Int64Var(&l.connections, "max-connections", usual.connections, "connections at a time; 0: the server's limit")
	f.Int64Var(&l.subscriptions, "max-subscriptions", usual.subscriptions, "subscriptions of all its connections together; 0: the server's limit")
	f.Int64Var(&l.disk, "max-disk", usual.disk, "MiB that its streams may use on disk; 0: the server's limit")
	f.Int64Var(&l.memory, "max-memory", usual.memory, "MiB that its streams may use in memory; 0: the server's limit")
}

// realm returns the limits in bytes.
func (l *limits) realm() realm.Limits {
	return realm.Limits{Connections: l.connections, Subscriptions: l.subscriptions, Disk: l.disk << 20, Memory: l.memory << 20}
}

func exportCommand(data string) *cobra.Command {
	var p place
	var out string
	c := &cobra.Command{
		Use: "export", Short: "Print the configuration with which your own nats-server accepts these credentials", Args: program.NoArgs,
		Long: "export prints the part of a nats-server configuration with which that server accepts these credentials. It contains no\n" +
			"secret. After a tenant was added or credentials were revoked, export it again and reload the servers.",
		Example: "  broker creds export --out hookfabric.conf",
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := realm.Read(p.dir())
			if err != nil {
				return err
			}
			if out == "" {
				_, err = io.WriteString(c.OutOrStdout(), r.ServerConfig())
				return err
			}
			return realm.WriteFile(out, []byte(r.ServerConfig()))
		},
	}
	p.flags(c, data)
	c.Flags().StringVar(&out, "out", "", "write to this file (default: stdout)")
	return c
}

// one checks that there is one argument; what is its name.
func one(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return program.UsageError("%s is missing; see '%s --help'", what, c.CommandPath())
		case len(args) > 1:
			return program.UsageError("unknown argument %q; see '%s --help'", args[1], c.CommandPath())
		}
		return nil
	}
}

// free returns an error if a file exists, or its folder does not.
func free(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s already exists; move it away, or name another file with --out", path)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("cannot write %s: %w; create the folder, or name another file with --out", path, err)
	}
	return nil
}

// writeNew returns a function that writes credentials to a new file.
func writeNew(path string) func([]byte) error {
	return func(creds []byte) error {
		if err := free(path); err != nil {
			return err
		}
		return realm.WriteFile(path, creds)
	}
}

// add makes credentials and writes them to a file.
func add(ctx context.Context, dir, path string, i realm.Issue) (realm.User, error) {
	if err := free(path); err != nil {
		return realm.User{}, err
	}
	return realm.Add(ctx, dir, i, writeNew(path))
}
