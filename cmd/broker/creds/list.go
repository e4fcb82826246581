package creds

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// listing is the output of `broker creds list --json`.
type listing struct {
	Tenants []tenant `json:"tenants"`
	Users   []user   `json:"users"`
}

type tenant struct {
	Name   string       `json:"name"`
	Key    string       `json:"key"`
	Limits realm.Limits `json:"limits"`
}

type user struct {
	realm.User `json:",inline"`
	// State is good, expiring (soon), expired or revoked.
	State string `json:"state"`
}

func listCommand(data string) *cobra.Command {
	var p place
	var only string
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List credentials with their role, agents, pools and expiry", Args: program.NoArgs,
		Long: "list shows each set of credentials: tenant, role, name, its agents or pools, expiry, state (good, expiring, expired or\n" +
			"revoked) and public key.",
		Example: "  broker creds list --tenant default --json",
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := realm.Read(p.dir())
			if err != nil {
				return err
			}
			l := list(r, only, time.Now())
			if !asJSON {
				warn(c.ErrOrStderr(), l)
				return show(c.OutOrStdout(), l)
			}
			data, err := schema.Marshal(l)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), string(schema.VisibleJSON(data)))
			return err
		},
	}
	p.flags(c, data)
	c.Flags().StringVar(&only, "tenant", "", "list only this tenant")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// list returns the credentials of one tenant or of all, sorted by tenant and name.
func list(r *realm.Realm, only string, now time.Time) listing {
	l := listing{Tenants: []tenant{}, Users: []user{}}
	for _, t := range r.Tenants {
		if only == "" || t.Name == only {
			l.Tenants = append(l.Tenants, tenant{t.Name, t.Key, t.Limits})
		}
	}
	for _, u := range r.Users {
		if only == "" || u.Tenant == only {
			l.Users = append(l.Users, user{u, state(&u, now)})
		}
	}
	slices.SortStableFunc(l.Users, func(a, b user) int {
		return strings.Compare(a.Tenant+"\x00"+a.Name, b.Tenant+"\x00"+b.Name)
	})
	return l
}

// state returns the state of a user's credentials.
func state(u *realm.User, now time.Time) string {
	switch {
	case !u.Revoked.IsZero():
		return "revoked"
	case u.Ended(now):
		return "expired"
	case u.Soon(now):
		return "expiring"
	}
	return "good"
}

// warn prints which credentials expire soon, and what to do.
func warn(w io.Writer, l listing) {
	for i := range l.Users {
		if u := &l.Users[i]; u.State == "expiring" {
			fmt.Fprintf(w, "the credentials of %s expire at %s; renew them with: broker creds renew %s --tenant %s\n", u.Name, u.Expires.Format(time.RFC3339), u.Name, u.Tenant)
		}
	}
}

func show(w io.Writer, l listing) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "TENANT\tROLE\tNAME\tFOR\tEXPIRES\tSTATE\tKEY")
	for i := range l.Users {
		u := &l.Users[i]
		expires := "never"
		if !u.Expires.IsZero() {
			expires = u.Expires.Format(time.RFC3339)
		}
		names := slices.Concat(u.Agents, u.Pools)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", u.Tenant, u.Role, u.Name, strings.Join(names, ","), expires, u.State, u.Key)
	}
	return t.Flush()
}
