package realm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// The servers of a cluster have a folder each, in which anybody may be given
// credentials, or lose them. What the folders know is put together: nobody who was
// revoked in one is let in by another, whatever came first. A private key never leaves
// its folder, so that whose tenant was made elsewhere can be let in here, and be given
// credentials only there.

// ErrForeign says that a realm is that of another fabric.
var ErrForeign = errors.New("it belongs to another fabric")

// Public is what others may know of the realm: all but the private keys.
func (r *Realm) Public() ([]byte, error) { return schema.Marshal(r) }

// Sum is the same for realms that know the same, however they came to know it.
func (r *Realm) Sum() string {
	h := sha256.New()
	tenants, users := slices.Clone(r.Tenants), slices.Clone(r.Users)
	slices.SortFunc(tenants, func(a, b Tenant) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(users, func(a, b User) int { return strings.Compare(a.Key, b.Key) })
	fmt.Fprintln(h, r.Operator.Key, r.System.Key)
	for _, t := range tenants {
		fmt.Fprintln(h, t.Key)
	}
	now := time.Now()
	for i := range users {
		if !users[i].forgotten(now) {
			fmt.Fprintln(h, users[i].Key, users[i].Revoked.Unix())
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Take adds to the realm in dir what another folder of the same fabric knows, in the
// form of [Realm.Public], and reports whether that was anything new.
func Take(ctx context.Context, dir string, public []byte) (news bool, err error) {
	theirs := &Realm{}
	if err = schema.Unmarshal(public, theirs); err == nil {
		err = theirs.sound()
	}
	if err != nil {
		return false, fmt.Errorf("cannot use the realm of another server: %w", err)
	}
	err = locked(ctx, dir, func() error {
		mine, err := Read(dir)
		if err != nil {
			return err
		}
		before := mine.Sum()
		if err := mine.merge(theirs); err != nil {
			return err
		}
		if mine.Sum() == before {
			return nil
		}
		news = true
		return mine.write()
	})
	return news, err
}

// merge adds what another realm knows.
func (r *Realm) merge(theirs *Realm) error {
	if theirs.Operator.Key != r.Operator.Key || theirs.System.Key != r.System.Key {
		return ErrForeign
	}
	for _, t := range theirs.Tenants {
		known, err := r.Tenant(t.Name)
		switch {
		case err != nil:
			r.Tenants = append(r.Tenants, t)
		case known.Key != t.Key:
			return fmt.Errorf("two servers created a tenant %s, with the keys %s and %s; create one of them again under another name, in a copy of that folder", t.Name, known.Key, t.Key)
		}
	}
	r.tidy(time.Now())
	before := r.revocations()
	for _, u := range theirs.Users {
		i := slices.IndexFunc(r.Users, func(o User) bool { return o.Key == u.Key })
		if i < 0 {
			r.Users = append(r.Users, u)
			continue
		}
		r.Users[i].Revoked = earlier(r.Users[i].Revoked, u.Revoked)
	}
	// As [Realm.user] wants them: the last of a name first.
	slices.SortStableFunc(r.Users, func(a, b User) int {
		return cmp.Or(b.Issued.Compare(a.Issued), a.Revoked.Compare(b.Revoked))
	})
	r.tidy(time.Now())
	return r.signChanged(before)
}

// revocations are how many there are of each tenant. They never get fewer by a merge.
func (r *Realm) revocations() map[string]int {
	n := map[string]int{}
	for i := range r.Users {
		if !r.Users[i].Revoked.IsZero() {
			n[r.Users[i].Tenant]++
		}
	}
	return n
}

// signChanged has the operator sign what is known now of the tenants of whom it is
// something else than before.
func (r *Realm) signChanged(before map[string]int) error {
	now := r.revocations()
	for i := range r.Tenants {
		if t := &r.Tenants[i]; now[t.Name] != before[t.Name] {
			if err := r.signTenant(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// earlier is the first of two times that are none if they are zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
