package realm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/access"
)

// Init creates a realm in dir, with the default tenant and no credentials.
func Init(ctx context.Context, dir string, l Limits) error {
	if err := l.check(); err != nil {
		return err
	}
	if err := makeFolder(filepath.Join(dir, seedsName)); err != nil {
		return fmt.Errorf("cannot create the folder %s: %w", dir, err)
	}
	// An existing folder may be accessible to others.
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chmod(filepath.Join(dir, seedsName), 0o700)); err != nil {
		return fmt.Errorf("cannot restrict the folder %s to your user: %w", dir, err)
	}
	return locked(ctx, dir, func() error {
		if _, err := os.Lstat(filepath.Join(dir, fileName)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s already exists, and a new realm would lock out the credentials that it issued; list them with `broker creds list`", filepath.Join(dir, fileName))
		}
		if hasSeeds(dir) {
			return errGone(dir)
		}
		r := &Realm{dir: dir}
		if err := r.found(); err != nil {
			return err
		}
		if err := r.addTenant(DefaultTenant, l); err != nil {
			return err
		}
		return r.write()
	})
}

// found makes the operator and the system account.
func (r *Realm) found() (err error) {
	if r.Operator.Key, err = r.newKey(nkeys.CreateOperator); err != nil {
		return err
	}
	if r.System.Key, err = r.newKey(nkeys.CreateAccount); err != nil {
		return err
	}
	by, err := r.signer(r.Operator)
	if err != nil {
		return err
	}
	defer by.Wipe()
	c := jwt.NewOperatorClaims(r.Operator.Key)
	c.Name, c.SystemAccount = "hookfabric", r.System.Key
	if r.Operator.JWT, err = c.Encode(by); err != nil {
		return fmt.Errorf("signing the operator's claims: %w", err)
	}
	system := jwt.NewAccountClaims(r.System.Key)
	system.Name = "system"
	return r.signAccount(&r.System, system)
}

// newKey makes a key, and stores the private part.
func (r *Realm) newKey(create func() (nkeys.KeyPair, error)) (string, error) {
	pair, err := create()
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	defer pair.Wipe()
	key, err := pair.PublicKey()
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", err
	}
	defer clear(seed)
	return key, WriteFile(seedPath(r.dir, key), seed)
}

// AddTenant adds a tenant.
func AddTenant(ctx context.Context, dir, name string, l Limits) error {
	if _, err := bus.Token(name); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	return change(ctx, dir, func(r *Realm) error {
		if _, err := r.Tenant(name); err == nil {
			return fmt.Errorf("the tenant %s already exists", name)
		}
		return r.addTenant(name, l)
	})
}

func (l *Limits) check() error {
	if l.Connections < 0 || l.Subscriptions < 0 || l.Disk < 0 || l.Memory < 0 {
		return errors.New("a limit is negative; use 0 for the server's limit")
	}
	return nil
}

func (r *Realm) addTenant(name string, l Limits) (err error) {
	t := Tenant{Name: name, Limits: l}
	if t.Key, err = r.newKey(nkeys.CreateAccount); err != nil {
		return err
	}
	if err := r.signTenant(&t); err != nil {
		return err
	}
	r.Tenants = append(r.Tenants, t)
	return nil
}

// An Issue describes credentials to make.
type Issue struct {
	// Name is the name of the credentials; it is the agent's id for an agent.
	Name string
	// Tenant is their tenant; empty: the default one.
	Tenant string
	Grant  access.Grant
	// For is their lifetime; 0: unlimited.
	For time.Duration
}

// Add makes credentials and passes them to keep, which stores them. If that fails they are revoked, because
// another process may have seen them.
func Add(ctx context.Context, dir string, i Issue, keep func(creds []byte) error) (User, error) {
	i.Tenant = cmp.Or(i.Tenant, DefaultTenant)
	if _, err := bus.Token(i.Name); err != nil {
		return User{}, err
	}
	if err := i.Grant.Check(); err != nil {
		return User{}, err
	}
	if i.For < 0 {
		return User{}, fmt.Errorf("the credentials would have expired %s ago; use a longer --ttl", -i.For)
	}
	var made *signed
	u := User{Name: i.Name, Role: i.Grant.Role, Tenant: i.Tenant, Agents: i.Grant.Agents, Pools: i.Grant.Pools}
	err := change(ctx, dir, func(r *Realm) (err error) {
		made, err = r.add(&u, i.For)
		return err
	})
	if err != nil {
		return User{}, err
	}
	if err := made.hand(keep); err != nil {
		return User{}, errors.Join(err, revokeKey(ctx, dir, u.Tenant, u.Key))
	}
	return u, nil
}

// add signs and adds a user that has no valid credentials.
func (r *Realm) add(u *User, good time.Duration) (*signed, error) {
	if before := r.user(u.Tenant, u.Name); before != nil && !before.Ended(time.Now()) {
		return nil, fmt.Errorf("%s already has credentials of the role %s; choose another name, revoke them with `broker creds revoke %s`, or replace them with `broker creds renew %s`",
			u.Name, before.Role, u.Name, u.Name)
	}
	return r.issue(u, good)
}

// issue signs and adds a user.
func (r *Realm) issue(u *User, good time.Duration) (*signed, error) {
	t, err := r.Tenant(u.Tenant)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Second) // the precision of claims
	u.Issued, u.Expires = now, time.Time{}
	if good > 0 {
		u.Expires = now.Add(good)
	}
	made, err := r.sign(t.Identity, u.Name, u.Grant(), u.Expires)
	if err != nil {
		return nil, err
	}
	u.Key = made.key
	r.Users = append([]User{*u}, r.Users...) // before expired ones of the same name
	r.tidy(now)
	return made, nil
}

// rememberFor is how long expired credentials are listed.
const rememberFor = 30 * 24 * time.Hour

// tidy removes credentials that expired long ago. They are useless, revoked or not.
func (r *Realm) tidy(now time.Time) {
	r.Users = slices.DeleteFunc(r.Users, func(u User) bool { return u.forgotten(now) })
}

func (u *User) forgotten(now time.Time) bool {
	return !u.Expires.IsZero() && now.Sub(u.Expires) > rememberFor
}

// Revoke revokes the credentials of a name. A server that follows the folder closes their connections.
func Revoke(ctx context.Context, dir, tenant, name string) (u User, err error) {
	tenant = cmp.Or(tenant, DefaultTenant)
	err = change(ctx, dir, func(r *Realm) error {
		t, err := r.Tenant(tenant)
		if err != nil {
			return err
		}
		found := r.user(tenant, name)
		if found == nil {
			return notFound(tenant, name)
		}
		// Two servers may have issued credentials of the same name at the same time.
		r.revoke(func(u *User) bool { return u.Tenant == tenant && u.Name == name })
		u = *found
		return r.signTenant(t)
	})
	return u, err
}

func notFound(tenant, name string) error {
	return fmt.Errorf("%w: the tenant %[3]s has no credentials with the name %.64[2]q; list them with `broker creds list`", ErrNotFound, name, tenant)
}

// revoke revokes the credentials of the matching users.
func (r *Realm) revoke(which func(*User) bool) {
	now := time.Now().UTC().Truncate(time.Second)
	for i := range r.Users {
		if u := &r.Users[i]; which(u) && u.Revoked.IsZero() {
			u.Revoked = now
		}
	}
}
