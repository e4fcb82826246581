package creds

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/access/realm"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// Folder is where the realm of a broker lies that keeps its data in dir.
func Folder(dir string) string { return filepath.Join(dir, "auth") }

// Command is the command, for brokers that keep their data in that folder unless
// told otherwise.
func Command(data string) *cobra.Command {
	c := &cobra.Command{
		Use: "creds", Short: "Say who may use the fabric, and make their credentials",
		Long: "creds makes credentials by which agents, workers and people say who they are. After 'creds init' the\n" +
			"broker asks everybody, and each may do what their credentials are for and no more:\n\n" +
			"  broker creds init\n" +
			"  broker creds add agent alice --ttl 30d        alice.creds: asks about alice's events, reads what waits for alice\n" +
			"  broker creds add host h1 --agents alice,bob   for the daemon of a machine\n" +
			"  broker creds add worker w1 --pool heavy       runs the hooks of the pool heavy\n" +
			"  broker creds add operator olga                'broker status', 'broker inject', 'broker apply', …\n\n" +
			"The file goes to whom it is for, who names it with --creds or HOOKFABRIC_CREDS. It is all that they need,\n" +
			"and all that somebody else would need: nobody else may read it. A broker that runs hears of what is added\n" +
			"and revoked by itself.",
		Args: program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(initCommand(data), addCommand(data), listCommand(data), renewCommand(data), revokeCommand(data), tenantCommand(data), exportCommand(data))
	return c
}

// place is which realm is meant.
type place struct{ data string }

func (p *place) flags(c *cobra.Command, data string) {
	c.Flags().StringVar(&p.data, "data", data, "the broker's data directory")
}

func (p *place) dir() string { return Folder(p.data) }

func initCommand(data string) *cobra.Command {
	var p place
	var l limits
	c := &cobra.Command{
		Use: "init", Short: "From now on everybody has to say who they are", Args: program.NoArgs,
		Long: "init makes the realm, with one tenant, the default one. The limits are that tenant's; what else a server has is\n" +
			"left to those that 'creds tenant add' makes.",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := realm.Init(c.Context(), p.dir(), l.realm()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "made %s; a broker with that data asks everybody who they are from its next start on\n"+
				"whoever can read that folder can make credentials: keep a copy of it where only you can\n"+
				"next: broker creds add operator NAME, for the commands of this program; broker creds add agent NAME\n", p.dir())
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
		Use: "revoke NAME", Short: "Take credentials away; whoever is connected by them is cut off", Args: one("the name"),
		RunE: func(c *cobra.Command, args []string) error {
			u, err := realm.Revoke(c.Context(), p.dir(), tenant, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s (%s of the tenant %s) is revoked: brokers with that data cut %s off within a second or two\n", u.Name, u.Role, u.Tenant, u.Key)
			return err
		},
	}
	p.flags(c, data)
	c.Flags().StringVar(&tenant, "tenant", realm.DefaultTenant, "whose credentials they are")
	return c
}

func tenantCommand(data string) *cobra.Command {
	c := &cobra.Command{
		Use: "tenant", Short: "Tenants, which see nothing of each other", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var p place
	var l limits
	add := &cobra.Command{
		Use: "add NAME", Short: "Make a tenant", Args: one("the tenant's name"),
		Long: "add makes a tenant: agents, workers, hooks and messages of its own, of which no other tenant sees anything.\n" +
			"It has brokers of its own: 'broker serve --tenant NAME', or 'broker serve --nats URL --creds FILE' with\n" +
			"credentials that 'broker creds add broker B --tenant NAME' made.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := realm.AddTenant(c.Context(), p.dir(), args[0], l.realm()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "the tenant %s is there; next: broker creds add broker NAME --tenant %s\n", args[0], args[0])
			return err
		},
	}
	p.flags(add, data)
	l.flags(add, limits{connections: 10_000, subscriptions: 1_000_000, disk: 2048, memory: 64})
	c.AddCommand(add)
	return c
}

// limits are what a tenant may take, as the flags say it.
type limits struct{ connections, subscriptions, disk, memory int64 }

// flags are those of them, with what is usual.
func (l *limits) flags(c *cobra.Command, usual limits) {
	f := c.Flags()
	f.Int64Var(&l.connections, "max-connections", usual.connections, "how many may be connected at a time; 0: as many as the server takes")
	f.Int64Var(&l.subscriptions, "max-subscriptions", usual.subscriptions, "how many subscriptions they may have together; 0: as many as the server takes")
	f.Int64Var(&l.disk, "max-disk", usual.disk, "how many MiB its streams may take on disk; 0: as many as the server has")
	f.Int64Var(&l.memory, "max-memory", usual.memory, "how many MiB its streams may take in memory; 0: as many as the server has")
}

// realm are the same in bytes.
func (l *limits) realm() realm.Limits {
	return realm.Limits{Connections: l.connections, Subscriptions: l.subscriptions, Disk: l.disk << 20, Memory: l.memory << 20}
}

func exportCommand(data string) *cobra.Command {
	var p place
	var out string
	c := &cobra.Command{
		Use: "export", Short: "Print what a nats-server of your own needs to take these credentials", Args: program.NoArgs,
		Long: "export prints the part of a nats-server's configuration by which it asks everybody who they are, and takes\n" +
			"the credentials that were made here. There is nothing secret in it. Write it anew, and reload the servers,\n" +
			"when a tenant was added or credentials were revoked.",
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
	c.Flags().StringVar(&out, "out", "", "write it there instead")
	return c
}

// one takes one argument, which is called what.
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

// free refuses a file that is there, and a folder that is not.
func free(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already; move it away, or name another file with --out", path)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s can not be written: %w; make the folder, or name another file with --out", path, err)
	}
	return nil
}

// keep returns what writes credentials where nothing is yet.
func keep(path string) func([]byte) error {
	return func(creds []byte) error {
		if err := free(path); err != nil {
			return err
		}
		return realm.WriteFile(path, creds)
	}
}

// add makes credentials in a file.
func add(ctx context.Context, dir, path string, i realm.Issue) (realm.User, error) {
	if err := free(path); err != nil {
		return realm.User{}, err
	}
	return realm.Add(ctx, dir, i, keep(path))
}
