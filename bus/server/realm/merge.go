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

// Each server of a cluster has its own folder, in which credentials may be issued or revoked. The folders are
// merged in any order: credentials that are revoked in one are revoked in all. Private keys never leave their
// folder. Another server accepts credentials of a tenant without its key, but cannot issue them.

// ErrForeign means that a realm belongs to another fabric.
var ErrForeign = errors.New("it belongs to another fabric")

// Public returns the realm without the private keys.
func (r *Realm) Public() ([]byte, error) { return schema.Marshal(r) }

// Sum returns a digest that is the same for realms with the same content, however they were merged.
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

// Take merges another folder's realm of the same fabric, in the form of [Realm.Public], into the realm in
// dir. It reports whether anything changed.
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

// merge adds the tenants, users and revocations of another realm.
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
	// Restore the order that [Realm.user] needs: the newest of a name first.
	slices.SortStableFunc(r.Users, func(a, b User) int {
		return cmp.Or(b.Issued.Compare(a.Issued), a.Revoked.Compare(b.Revoked))
	})
	r.tidy(time.Now())
	return r.signChanged(before)
}

// revocations counts the revocations per tenant. A merge never lowers them.
func (r *Realm) revocations() map[string]int {
	n := map[string]int{}
	for i := range r.Users {
		if !r.Users[i].Revoked.IsZero() {
			n[r.Users[i].Tenant]++
		}
	}
	return n
}

// signChanged signs the tenants whose revocations have changed.
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

// earlier returns the earlier of two times; a zero time is ignored.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
