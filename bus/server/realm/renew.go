package realm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Renew makes new credentials, with a new key, for what a name has some for, and has
// keep put them where they belong; then the old ones are revoked. good is how long the
// new ones are good: nil is as long as the old ones were, and 0 for ever.
//
// The key is a new one because the realm does not have the old one, only whoever got the
// credentials does; and because one that may have been seen should not be good for
// longer.
func Renew(ctx context.Context, dir, tenant, name string, good *time.Duration, keep func(creds []byte) error) (User, error) {
	if tenant == "" {
		tenant = DefaultTenant
	}
	var old, u User
	var made *signed
	err := change(ctx, dir, func(r *Realm) (err error) {
		if _, err := r.Tenant(tenant); err != nil {
			return err
		}
		found := r.user(tenant, name)
		switch {
		case found == nil:
			return nobody(tenant, name)
		case !found.Revoked.IsZero():
			return fmt.Errorf("the credentials of %s were revoked; create new ones with `broker creds add %s %s`", name, found.Role, name)
		}
		old, u = *found, *found
		made, err = r.issue(&u, lasting(&old, good))
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

// lasting is how long credentials are to be good that take the place of old ones.
func lasting(old *User, good *time.Duration) time.Duration {
	switch {
	case good != nil:
		return *good
	case old.Expires.IsZero():
		return 0
	}
	return old.Expires.Sub(old.Issued)
}

// revokeKey takes the credentials of one key away.
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

// soonest is how long before their end credentials are said to expire soon, at most.
const soonest = 7 * 24 * time.Hour

// Soon reports whether credentials that are good expire soon: within a week, or the last
// fifth of their time where that is less.
func (u *User) Soon(now time.Time) bool {
	if u.Expires.IsZero() || u.Ended(now) {
		return false
	}
	return u.Expires.Sub(now) <= min(soonest, u.Expires.Sub(u.Issued)/5)
}
