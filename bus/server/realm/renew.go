package realm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Renew replaces the credentials of a name with new ones for the same purpose, passes them to keep, which
// stores them, and then revokes the old ones. good is their lifetime; nil: that of the old ones, 0: unlimited.
//
// The key is new, because the realm does not have the old private key, and because an old key that may have
// leaked must not live longer.
func Renew(ctx context.Context, dir, tenant, name string, good *time.Duration, keep func(creds []byte) error) (User, error) {
	tenant = cmp.Or(tenant, DefaultTenant)
	var old, u User
	var made *signed
	err := change(ctx, dir, func(r *Realm) (err error) {
		if _, err := r.Tenant(tenant); err != nil {
			return err
		}
		found := r.user(tenant, name)
		switch {
		case found == nil:
			return notFound(tenant, name)
		case !found.Revoked.IsZero():
			return fmt.Errorf("the credentials of %s were revoked; create new ones with `broker creds add %s %s`", name, found.Role, name)
		}
		old, u = *found, *found
		made, err = r.issue(&u, lifetime(&old, good))
		return err
	})
	if err != nil {
		return User{}, err
	}
	ends := u.Key
	if err = made.hand(keep); err == nil {
		ends = old.Key
	}
	if rerr := revokeKey(ctx, dir, tenant, ends); err != nil || rerr != nil {
		return User{}, errors.Join(err, rerr)
	}
	return u, nil
}

// lifetime returns the lifetime of credentials that replace old ones.
func lifetime(old *User, good *time.Duration) time.Duration {
	switch {
	case good != nil:
		return *good
	case old.Expires.IsZero():
		return 0
	}
	return old.Expires.Sub(old.Issued)
}

// revokeKey revokes the credentials with one key.
func revokeKey(ctx context.Context, dir, tenant, key string) error {
	return change(ctx, dir, func(r *Realm) error {
		t, err := r.Tenant(tenant)
		if err != nil {
			return err
		}
		r.revoke(func(u *User) bool { return u.Key == key })
		return r.signTenant(t)
	})
}

// soonest bounds how long before their expiry credentials count as expiring soon.
const soonest = 7 * 24 * time.Hour

// Soon reports whether valid credentials expire soon: within a week, or within the last fifth of their
// lifetime if that is less.
func (u *User) Soon(now time.Time) bool {
	if u.Expires.IsZero() || u.Ended(now) {
		return false
	}
	return u.Expires.Sub(now) <= min(soonest, u.Expires.Sub(u.Issued)/5)
}
